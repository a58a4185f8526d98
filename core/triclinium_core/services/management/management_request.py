"""Common parts of management requests, such as method, path and form.

Source: SDK-RFC 0054.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar
from urllib.parse import urlencode

from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import Service, is_idempotent
from triclinium_core.services import service_request

FORM = "application/x-www-form-urlencoded"


class ManagementRequest(service_request.ServiceRequest, frozen=True, kw_only=True):
    """Base of the requests that manage a cluster. Only GET requests are idempotent."""

    method: ClassVar[str] = "GET"
    service: ClassVar[Service] = Service.MANAGEMENT

    @property
    def idempotent(self) -> bool:
        """Whether the request only reads (SDK-RFC 0049 "Idempotent Operation List")."""
        return is_idempotent(Service.MANAGEMENT, self.name, method=self.method)

    @property
    def target(self) -> str:
        """Path and query string, percent-encoded."""
        # Abstract: each subclass defines its target. The machine refuses a request without a name, such as this base.
        raise NotImplementedError

    def form(self) -> Mapping[str, str]:
        """Return the fields of the form in the body. An empty form sends no body."""
        return {}

    @property
    def has_body(self) -> bool:
        """Whether the form has fields: the form is the body."""
        return bool(self.form())

    def encode(self, remaining: float) -> service_request.HttpRequest:
        """Return the HTTP request of one attempt. The service accepts no timeout."""
        form = self.form()
        if not form:
            return service_request.HttpRequest(self.method, self.target)
        return service_request.HttpRequest(self.method, self.target, urlencode(form).encode("ascii"), content_type=FORM)

    def decode(self, answer: service_request.HttpResponse) -> service_request.ServiceResult:
        """Return an acknowledgement. Ignore the body."""
        return service_request.Acknowledged()

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its method and path."""
        return replace(
            service_request.ServiceRequest.error_context(self), http_method=self.method, http_path=self.target
        )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Convert InvalidArgumentException, raised for a value from the service, into MalformedAnswer.

    Raises:
        MalformedAnswer: the block raised InvalidArgumentException.
    """
    try:
        yield
    except errors.InvalidArgumentException as error:
        raise service_request.MalformedAnswer(f"an invalid {what}: {error.message}") from error


def check_password(value: object, parameter: str) -> str:
    """Return ``value`` if it is a valid password. No error message shows it.

    Raises:
        InvalidArgumentException: the value is not a string, is empty, or has a lone surrogate.
    """
    # Look for surrogates instead of encoding: the codec's error would contain the password.
    if not isinstance(value, str) or not value or any("\ud800" <= character <= "\udfff" for character in value):
        raise errors.InvalidArgumentException(
            f"{parameter}, whose value is not shown, must be a non-empty string without lone surrogates",
            parameter=parameter,
        )
    return value
