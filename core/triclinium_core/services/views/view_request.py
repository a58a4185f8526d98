"""Query of a view of a bucket.

Source: SDK-RFC 0051 "IBucket::ViewQuery".
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar
from urllib.parse import quote, urlencode

from triclinium_core.checks import check_choice, check_text, check_type
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.validation import check_bucket_name
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.paths import check_segment, path
from triclinium_core.services.service_request import HttpRequest, HttpResponse, ServiceRequest
from triclinium_core.services.views.options import DesignDocumentNamespace, ViewOptions
from triclinium_core.services.views.result import ViewMetaData, decode_meta_data


class ViewRequest(ServiceRequest, frozen=True, kw_only=True):
    """Request for rows of a view."""

    name: ClassVar[str] = "view_query"
    service: ClassVar[Service] = Service.VIEWS
    rows_of: ClassVar[str | None] = "rows"

    bucket_name: str
    design_document: str
    """Name of the design document, without the prefix ``dev_`` of its namespace."""
    view_name: str
    namespace: DesignDocumentNamespace = DesignDocumentNamespace.PRODUCTION
    options: ViewOptions = ViewOptions()

    def __post_init__(self) -> None:
        check_text(self.client_context_id, "client_context_id", empty=True)
        check_bucket_name(self.bucket_name)
        for name, value in (("design_document", self.design_document), ("view_name", self.view_name)):
            check_segment(value, name, printable=False)
        check_choice(self.namespace, "namespace", DesignDocumentNamespace)
        check_type(self.options, "options", ViewOptions)

    @property
    def idempotent(self) -> bool:
        """True: SDK-RFC 0049 "Idempotent Operation List" lists all view queries."""
        return True

    @property
    def bucket(self) -> str:
        """Bucket of the view. Only the bucket's nodes have the view."""
        return self.bucket_name

    @property
    def path(self) -> str:
        """Path of the view."""
        design_document = self.namespace.value + self.design_document
        return path(self.bucket_name, "_design", design_document, "_view", self.view_name)

    @property
    def has_body(self) -> bool:
        """Whether there are ``keys``, which are the body."""
        return self.options.keys is not None

    def encode(self, remaining: float) -> HttpRequest:
        """Return a GET, or a POST if there are ``keys``. The service supports no timeout, so none is sent."""
        # Encode a space as %20: the service reads a plus sign as itself, not as a space.
        query = urlencode(self.options.parameters, quote_via=quote, safe="")
        target = f"{self.path}?{query}" if query else self.path
        if self.options.keys is None:
            return HttpRequest("GET", target)
        return HttpRequest("POST", target, b'{"keys":' + self.options.keys + b"}")

    def decode(self, answer: HttpResponse) -> ViewMetaData:
        """Return the metadata in the response."""
        return decode_meta_data(answer)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, without keys."""
        return replace(
            ServiceRequest.error_context(self),
            bucket=self.bucket_name,
            http_method="GET" if self.options.keys is None else "POST",
            http_path=self.path,
            client_context_id=self.client_context_id or None,
            design_document=self.design_document,
            view=self.view_name,
        )
