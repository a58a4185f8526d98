"""Common parts of the query and analytics services: reading a statement, and sending its response.

Source: Couchbase Server documentation, "Query Service REST API", "Analytics Service REST API".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from triclinium_core.json_depth import bounded
from triclinium_core.testing.fakes.services.answers import FakeAnswer, ServiceReply, with_rows
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.statements.explained import duration
from triclinium_core.testing.fakes.services.statements.sqlpp import ParameterValues
from triclinium_core.testing.fakes.store.state import NodeState
from triclinium_core.testing.fakes.unsupported import PAGE

HINT = (
    "this fake service has no response to it; script one: nodes.script.answer(statement, FakeAnswer(rows=[...])), "
    f"or triclinium serve --script FILE; {PAGE} lists what the service does not support"
)

EXECUTION_SECONDS = 0.000_08
"""Execution time that the services report for every statement; the delays of a scripted response are added."""
ELAPSED_SECONDS = 0.000_1
"""Time that the services report from the arrival of a statement to its last row; the same delays are added."""

_TEXTS = frozenset({"statement", "prepared", "query_context", "client_context_id", "encoded_plan"})
"""Parameters whose values in a form are plain strings; all other values are decoded if they are JSON."""


_CONTEXT_NAME = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<plain>[^`.:]+))(?P<namespace>:?)")
"""Pattern of a name in a query context.

The syntax is not SQL++: backticks enclose a name literally (couchbase/query ``algebra/path.go``).
"""


class AskedStatement(msgspec.Struct, frozen=True):
    """A statement and its parameters, as a client sends them."""

    document: Mapping[str, object]
    """Parameters by name."""

    @property
    def statement(self) -> str | None:
        """Statement; None if the request has none, because it names a prepared statement or is invalid."""
        return self._text("statement")

    @property
    def prepared(self) -> str | None:
        """Name of the prepared statement to execute; None without one."""
        return self._text("prepared")

    @property
    def auto_executes(self) -> bool:
        """Whether to execute a statement immediately after its preparation."""
        return self.document.get("auto_execute") is True

    @property
    def context(self) -> tuple[str, ...]:
        """Bucket and scope that qualify an unqualified collection name; empty for none."""
        named = _CONTEXT_NAME.finditer(self._text("query_context") or "")
        return tuple(found["quoted"] or found["plain"] for found in named if not found["namespace"])

    @property
    def parameters(self) -> ParameterValues:
        """Values of the statement's parameters."""
        named = {name[1:]: value for name, value in self.document.items() if name.startswith("$")}
        positional = self.document.get("args")
        return ParameterValues(named, positional if isinstance(positional, list) else [])

    def _text(self, name: str) -> str | None:
        value = self.document.get(name)
        return value if isinstance(value, str) else None


def read_statement(request: FakeRequest) -> AskedStatement:
    """Return a statement and its parameters from any kind of request."""
    document = request.document()
    if document is not None:
        return AskedStatement(document)
    given = {**request.parameters, **request.form}
    return AskedStatement({name: value if name in _TEXTS else _decoded(value) for name, value in given.items()})


def _decoded(value: str) -> object:
    try:
        return msgspec.json.decode(bounded(value))
    except (ValueError, RecursionError):
        return value


def refused(code: int, message: str, *, status: int = 400) -> FakeAnswer:
    """Return a response that consists of one error."""
    return FakeAnswer(errors=[{"code": code, "msg": message}], http_status=status)


def reply_with(
    node: NodeState,
    request: AskedStatement,
    found: FakeAnswer,
    *,
    further: Mapping[str, object] | None = None,
    metrics: Mapping[str, object] | None = None,
    profile: Callable[[float], Mapping[str, object]] | None = None,
) -> ServiceReply:
    """Return the reply that sends ``found`` as a query or analytics response.

    Args:
        further: fields before the rows that only this service sends.
        metrics: metrics that only this service sends.
        profile: function that takes the execution time in seconds and returns the profile. Default: no profile.
    """
    before: dict[str, object] = {"requestID": node.cluster.services.new_request_id()}
    if isinstance(context_id := request.document.get("client_context_id"), str):
        before["clientContextID"] = context_id
    before |= {"signature": {"*": "*"}, **(further or {})}

    def after(count: int, size: int) -> Mapping[str, object]:
        document: dict[str, object] = {"errors": found.errors} if found.errors else {}
        document["status"] = ("errors" if count else "fatal") if found.errors else "success"
        if request.document.get("metrics", True) is not False:
            delays = found.seconds + max(count - 1, 0) * found.seconds_between_rows
            document["metrics"] = {
                "elapsedTime": duration(ELAPSED_SECONDS + delays),
                "executionTime": duration(EXECUTION_SECONDS + delays),
                "resultCount": count,
                "resultSize": size,
                **(metrics or {}),
            } | ({"errorCount": len(found.errors)} if found.errors else {})
        if profile is not None:
            document["profile"] = profile(EXECUTION_SECONDS + found.seconds)
        return document

    return with_rows(found, before=before, rows_key="results", after=after)
