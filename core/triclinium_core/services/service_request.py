"""Base of all requests to services: values that encode themselves and decode their responses.

The package of each service defines its requests. A request is checked when it is created.

Source: the RFCs of the services.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import ClassVar, TypeVar, cast

import msgspec

from triclinium_core.error_context import ErrorContext
from triclinium_core.json_depth import shallow
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import one_line, total_repr

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Decoding in steps. It yields the units of work of the next step, and returns the value."""


def all_steps(steps: Steps[T]) -> T:
    """Run all steps, and return the value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


class HttpRequest(msgspec.Struct, frozen=True):
    """HTTP request without the headers that the connection adds, such as host, credentials and length.

    ``repr`` does not show the body, only its size: the body may contain parameters and passwords.
    """

    method: str
    target: str
    """Path and query string, percent-encoded ASCII."""
    body: bytes = b""
    content_type: str = "application/json"
    """Content type of the body. Unused without a body."""
    headers: tuple[tuple[str, str], ...] = ()
    carries_credentials: bool = True
    """Whether the connection adds its ``authorization`` header."""

    @total_repr
    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.target}, body=<{len(self.body)} bytes>)"


Encoding = Callable[[Callable[[], HttpRequest]], tuple[HttpRequest, float]]
"""Function that calls its argument, which encodes a payload, and returns the result and the duration in seconds."""


class HttpResponse(msgspec.Struct, frozen=True):
    """Whole response to one HTTP request."""

    status: int
    body: bytes
    """Body. If the response has rows, an empty array replaces them."""

    def body_as(self, kind: type[T]) -> T:
        """Return the JSON body as a value of ``kind``.

        Raises:
            MalformedAnswer: the body cannot be converted to ``kind``.
        """
        try:
            return msgspec.json.decode(shallow(self.body), type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            text = f"status {self.status} with a body in an unexpected format: {one_line(str(error))}"
            raise MalformedAnswer(text) from error


class MalformedAnswer(ValueError):
    """Exception for an invalid response of a service. The message describes the fault."""


class ServiceResult(msgspec.Struct, frozen=True):
    """Base of the results of requests."""


class Listing(ServiceResult, frozen=True, kw_only=True):
    """Base of lists of rows that are read one by one."""

    unread: int = 0
    """Number of rows that were left out because they are unreadable, for the log."""


class Acknowledged(ServiceResult, frozen=True):
    """Result of a request that succeeded and returns nothing."""


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all requests. Creating a request raises InvalidArgumentException for an invalid argument.

    ``name`` is the name of the request in errors, reports and tables. ``rows_of`` is the key of the array of rows in
    the response; None if the response is read whole. Rows are returned as they arrive.
    """

    name: ClassVar[str] = ""
    service: ClassVar[Service] = Service.MANAGEMENT
    rows_of: ClassVar[str | None] = None

    client_context_id: str = ""
    """Name of the request in the server's logs, if the service supports one."""

    @property
    def idempotent(self) -> bool:
        """Whether the request may be sent again at any stage."""
        return False

    @property
    def has_body(self) -> bool:
        """Whether ``encode`` encodes a payload, so that its duration is worth reporting."""
        return False

    @property
    def passwords(self) -> tuple[str, ...]:
        """Passwords in the request, which its error must not repeat."""
        return ()

    @property
    def bucket(self) -> str | None:
        """Bucket whose nodes alone can process the request; None if any node with the service can."""
        return None

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """Required capabilities of the cluster. Without them the request is not sent: FeatureNotAvailableException."""
        return frozenset()

    def encode(self, remaining: float) -> HttpRequest:
        """Return the HTTP request of one attempt.

        Args:
            remaining: seconds until the deadline of the request, for the service's own timeout; ``inf`` for no limit.
        """
        # Abstract: each subclass encodes its request. The machine refuses a request without a name, such as this base.
        raise NotImplementedError

    def decode(self, answer: HttpResponse) -> ServiceResult:
        """Return the result in a response without an error.

        Raises:
            MalformedAnswer: the body is not a response of the service to this request.
        """
        # Abstract: each subclass decodes its response. The machine refuses a request without a name, such as this base.
        raise NotImplementedError

    def decode_in_steps(self, answer: HttpResponse) -> Steps[ServiceResult]:
        """Decode in steps, so that a long list does not block the event loop. By default, decode in one step.

        Raises:
            MalformedAnswer: as in ``decode``.
        """
        yield from ()
        return self.decode(answer)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its service, name and idempotence."""
        return ErrorContext(service=str(self.service), operation=self.name, idempotent=self.idempotent)


class IdentifiedRequest(ServiceRequest, frozen=True, kw_only=True):
    """Base of requests whose client context id the service repeats in its response."""

    def encode(self, remaining: float, context_id: str = "") -> HttpRequest:
        """Return the HTTP request of one attempt.

        Args:
            remaining: as in ``ServiceRequest``.
            context_id: client context id of the attempt. Empty uses the id of the request, if it has one.
        """
        # Abstract, as in ServiceRequest.
        raise NotImplementedError
