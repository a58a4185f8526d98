"""Analytics service: scripted responses and constants.

Source: SDK-RFC 0057; Couchbase Server documentation, "Analytics Service REST API".
"""

from __future__ import annotations

from msgspec.structs import replace

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import FakeAnswer, ServiceReply, unanswered
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.statements.select import read_select
from triclinium_core.testing.fakes.services.statements.sqlpp import NoSuchParameter, NotUnderstood, SqlReader, tokens_of
from triclinium_core.testing.fakes.services.statements.statement import (
    HINT,
    AskedStatement,
    read_statement,
    refused,
    reply_with,
)
from triclinium_core.testing.fakes.store.state import NodeState

_PATHS = (("analytics", "service"), ("query", "service"))


def script_key(node: NodeState, request: FakeRequest) -> str | None:
    """Return the key in the script: the statement, or None if the request has none."""
    return read_statement(request).statement if request.segments in _PATHS else None


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the analytics service."""
    match request.method, request.segments:
        case "GET", ("admin", "ping"):
            return ServiceReply(body=b"{}")
        case (("POST" | "GET"), path) if path in _PATHS:
            asked = read_statement(request)
            scripted = node.cluster.services.script.take(Service.ANALYTICS, asked.statement or "")
            found = _constants(asked) if scripted is None else scripted
            reply = reply_with(node, asked, found, metrics={"processedObjects": 0})
            return replace(reply, applied=scripted is not None or not found.errors)
        case _:
            return unanswered(Service.ANALYTICS, request, b"not found\n")


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without valid credentials."""
    # Source: SDK-RFC 0058, 6 AuthenticationFailure, Analytics: error range 20xxx.
    return reply_with(node, read_statement(request), refused(20000, "Unauthorized user.", status=401))


def _constants(asked: AskedStatement) -> FakeAnswer:
    statement = asked.statement or ""
    if asked.context:
        # Source: SDK-RFC 0058, 304 DataverseNotFound, Analytics: code 24034.
        return refused(24034, f"Cannot find dataverse with name {'/'.join(asked.context)}: {HINT}")
    try:
        select = read_select(SqlReader(tokens_of(statement), asked.parameters))
        if select.source is not None:
            raise NotUnderstood(".".join(select.source))
    except NotUnderstood as problem:
        # Source: SDK-RFC 0058, 8 ParsingFailure, Analytics: code 24000.
        return refused(24000, f"Syntax error near {str(problem)!r} in {statement!r}: {HINT}")
    except NoSuchParameter as problem:
        return refused(24001, f"Compilation error: no value for parameter: {problem}")
    return FakeAnswer(rows=select.rows(()))
