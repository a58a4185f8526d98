"""Base of requests that send a statement to the query or the analytics service.

Source: SDK-RFC 0056 "ICluster#Query", "IScope#Query"; SDK-RFC 0057 "ICluster#AnalyticsQuery".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_text, check_type
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.validation import check_bucket_name, check_name
from triclinium_core.services.json_values import encode_members
from triclinium_core.services.service_request import HttpRequest, IdentifiedRequest
from triclinium_core.services.statement.go_durations import go_duration
from triclinium_core.services.statement.identifiers import query_identifier
from triclinium_core.services.statement.parameters import Parameters, RawOptions
from triclinium_core.shown import STATEMENT_SHOWN_MAX, total_repr

MEMBERS: Mapping[str, str] = {
    "args": "positional_parameters",
    "client_context_id": "client_context_id",
    "query_context": "the query of a scope",
    "readonly": "readonly",
    "scan_consistency": "scan_consistency",
    "statement": "the statement",
    "timeout": "TimeoutOptions(query=...) or TimeoutOptions(analytics=...), whose rest the service gets",
}
"""Members of the requests of both services that ``raw`` must not set, each with what to use instead."""


class QueryContext(msgspec.Struct, frozen=True):
    """Scope in which a statement finds collections by name alone.

    Raises:
        InvalidArgumentException: a name is invalid.
    """

    bucket: str
    scope: str

    def __post_init__(self) -> None:
        check_bucket_name(self.bucket)
        check_name(self.scope, "scope")

    def written(self, identifier: Callable[[str], str]) -> str:
        """Return the scope as text for a service, with each name as an identifier of that service."""
        return f"default:{identifier(self.bucket)}.{identifier(self.scope)}"


class StatementRequest(IdentifiedRequest, frozen=True, kw_only=True):
    """Base of requests in SQL++. ``repr`` shows no value of a parameter."""

    rows_of: ClassVar[str | None] = "results"
    path: ClassVar[str] = ""
    members: ClassVar[Mapping[str, str]] = MEMBERS

    statement: str
    parameters: Parameters = Parameters()
    query_context: QueryContext | None = None
    """Scope of the statement; None if the statement names buckets."""
    readonly: bool = False
    """Whether the service refuses a statement that changes anything. A readonly request is idempotent."""
    raw: RawOptions = RawOptions()

    def __post_init__(self) -> None:
        check_text(self.client_context_id, "client_context_id", empty=True)
        check_text(self.statement, "statement")
        if self.statement.isspace():
            raise errors.InvalidArgumentException(
                "the statement is blank; pass a statement in SQL++", parameter="statement"
            )
        check_type(self.parameters, "parameters", Parameters)
        if self.query_context is not None:
            check_type(self.query_context, "query_context", QueryContext)
        check_flag(self.readonly, "readonly")
        check_type(self.raw, "raw", RawOptions)
        self.raw.check_unknown(self.members)

    @total_repr
    def __repr__(self) -> str:
        names = ", ".join(self.parameters.names)
        return f"{type(self).__name__}({self.statement!r}, parameters=<{names}>)"

    @property
    def idempotent(self) -> bool:
        """Whether the request is readonly."""
        return self.readonly

    def identifier(self, name: str) -> str:
        """Return a name as an identifier of the service."""
        return query_identifier(name)

    def options(self) -> dict[str, object]:
        """Return the members of the request that contain the options. Omit options that are not set."""
        return {"readonly": True} if self.readonly else {}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the additional headers of the request. Default: none."""
        return ()

    def statement_members(self) -> dict[str, object]:
        """Return the members of the request that contain the statement."""
        return {"statement": self.statement}

    @property
    def has_body(self) -> bool:
        """True: the body contains the statement."""
        return True

    def encode(self, remaining: float, context_id: str = "") -> HttpRequest:
        """Return the request as one JSON object. Its timeout is ``remaining``, so the service stops with the client."""
        members, options = self.statement_members(), self.options()
        context_id = context_id or self.client_context_id
        if context_id:
            members["client_context_id"] = context_id
        timeout = go_duration(max(remaining, 0.001))
        if timeout is not None:
            members["timeout"] = timeout
        if self.query_context is not None:
            members["query_context"] = self.query_context.written(self.identifier)
        members |= options | self.parameters.members() | self.raw.members()
        return HttpRequest("POST", self.path, encode_members(members), headers=self.headers())

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with only the names of its parameters."""
        return ErrorContext(
            service=str(self.service),
            operation=self.name,
            idempotent=self.readonly,
            bucket=self.query_context.bucket if self.query_context is not None else None,
            scope=self.query_context.scope if self.query_context is not None else None,
            http_method="POST",
            http_path=self.path,
            client_context_id=self.client_context_id or None,
            statement=self.statement[:STATEMENT_SHOWN_MAX],
            parameters=self.parameters.names,
        )
