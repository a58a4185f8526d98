"""The query service: scripted answers, constants, prepared statements and indexes.

Source: SDK-RFC 0056; Couchbase Server documentation, "Query Service REST API".
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.testing.fakes.services.answers import FakeAnswer, ServiceReply, with_rows
from triclinium_core.testing.fakes.services.plans import STALE_MESSAGES, FakePlan
from triclinium_core.testing.fakes.services.requests import FakeRequest
from triclinium_core.testing.fakes.services.select import read_select
from triclinium_core.testing.fakes.services.sqlpp import (
    NoSuchParameter,
    NotUnderstood,
    Parameters,
    SqlReader,
    SqlToken,
    tokens_of,
)
from triclinium_core.testing.fakes.store.state import NodeState

HINT = (
    "this fake query service has no answer to it; script one: nodes.script.answer(statement, FakeAnswer(rows=[...])), "
    "or triclinium serve --script FILE"
)


class QueryRequest(msgspec.Struct, frozen=True):
    """What a query asks for."""

    document: Mapping[str, object]
    """Its parameters by their names."""

    @property
    def statement(self) -> str | None:
        """The statement; None where a prepared one is named."""
        return self._text("statement")

    @property
    def prepared(self) -> str | None:
        """The name of the prepared statement to execute."""
        return self._text("prepared")

    @property
    def auto_executes(self) -> bool:
        """Whether a statement is to be executed as soon as it is prepared."""
        return self.document.get("auto_execute") is True

    @property
    def context(self) -> tuple[str, ...]:
        """Bucket and scope in which a lone name of a collection is looked for; empty for none."""
        context = self._text("query_context") or ""
        return tuple(name.strip("`") for name in context.rpartition(":")[2].split(".") if name)

    @property
    def parameters(self) -> Parameters:
        """The values of the statement's parameters."""
        named = {name[1:]: value for name, value in self.document.items() if name.startswith("$")}
        positional = self.document.get("args")
        return Parameters(named, positional if isinstance(positional, list) else [])

    def _text(self, name: str) -> str | None:
        value = self.document.get(name)
        return value if isinstance(value, str) else None


def read_query(request: FakeRequest) -> QueryRequest:
    """Return the parameters of a query, in whatever form they were sent."""
    document = request.document()
    if document is not None:
        return QueryRequest(document)
    given = {**request.parameters, **request.form}
    return QueryRequest({name: _decoded(name, value) for name, value in given.items()})


def _decoded(name: str, value: str) -> object:
    """Return the value of a parameter in a form: JSON, but for the texts."""
    if name in ("statement", "prepared", "query_context", "client_context_id", "encoded_plan"):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def said_in(node: NodeState, request: FakeRequest) -> str | None:
    """Return the statement that a request is about, also where it is named by its plan."""
    if request.segments != ("query", "service"):
        return None
    query = read_query(request)
    if query.prepared is not None:
        plan = node.cluster.services.plans.find(query.prepared)
        return None if plan is None else plan.statement
    return query.statement


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the query service."""
    match request.method, request.segments:
        case "GET", ("admin", "ping"):
            return ServiceReply(body=b'{"status":"OK"}')
        case (("POST" | "GET"), ("query", "service")):
            return _Execution(node, read_query(request)).reply()
        case _:
            return ServiceReply(status=404, body=b"404 page not found\n", content_type="text/plain", applied=False)


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without the right credentials."""
    # Source: query error 10000, E_DATASTORE_AUTHORIZATION.
    refusal = FakeAnswer(errors=[error(10000, "Authentication failure")], http_status=401)
    return _Execution(node, read_query(request)).reply_with(refusal)


def error(code: int, message: str, **fields: object) -> Mapping[str, object]:
    """Return an error as the service names it."""
    return {"code": code, "msg": message, **fields}


class _Execution:
    """One query from its parameters to its reply."""

    def __init__(self, node: NodeState, query: QueryRequest) -> None:
        self._node = node
        self._query = query
        self._services = node.cluster.services
        self._further: dict[str, object] = {}
        """Fields that stand beside the rows."""
        self._is_scripted = False

    def reply(self) -> ServiceReply:
        """Return the reply."""
        if self._query.prepared is not None:
            return self.reply_with(self._execute(self._query.prepared))
        if self._query.statement is None:
            return self.reply_with(refused(1050, "No statement or prepared value"))
        return self.reply_with(self._answer(self._query.statement))

    def reply_with(self, found: FakeAnswer) -> ServiceReply:
        """Return the reply that gives an answer."""
        before: dict[str, object] = {"requestID": self._services.new_request_id()}
        if isinstance(context_id := self._query.document.get("client_context_id"), str):
            before["clientContextID"] = context_id
        before["signature"] = {"*": "*"}
        before |= self._further

        def after(count: int, size: int) -> Mapping[str, object]:
            document: dict[str, object] = {"errors": found.errors} if found.errors else {}
            document["status"] = ("errors" if count else "fatal") if found.errors else "success"
            if self._query.document.get("metrics", True) is not False:
                seconds = found.seconds + max(count - 1, 0) * found.seconds_between_rows
                elapsed = f"{seconds * 1000:.6f}ms"
                document["metrics"] = {
                    "elapsedTime": elapsed,
                    "executionTime": elapsed,
                    "resultCount": count,
                    "resultSize": size,
                } | ({"errorCount": len(found.errors)} if found.errors else {})
            return document

        reply = with_rows(found, before=before, rows_key="results", after=after)
        return replace(reply, applied=self._is_scripted or not found.errors)

    def _answer(self, statement: str) -> FakeAnswer:
        scripted = self._services.script.take(Service.QUERY, statement)
        if scripted is not None:
            self._is_scripted = True
            return scripted
        tokens = tokens_of(statement)
        try:
            match [token.keyword for token in tokens[:1]]:
                case ["PREPARE"]:
                    return self._prepare(statement, tokens)
                case ["EXECUTE"]:
                    return self._execute_by_statement(tokens)
                case ["SELECT"]:
                    return self._select(tokens)
                case _:
                    raise NotUnderstood(tokens[0].text if tokens else "")
        except NotUnderstood as problem:
            return refused(3000, f"syntax error near {str(problem)!r} in {statement!r}: {HINT}")
        except NoSuchParameter as problem:
            return refused(5010, f"Error evaluating projection. - cause: No value for parameter: {problem}")

    def _select(self, tokens: list[SqlToken]) -> FakeAnswer:
        select = read_select(SqlReader(tokens, self._query.parameters))
        if select.source is not None:
            raise NotUnderstood(".".join(select.source))
        return FakeAnswer(rows=select.rows(()))

    def _prepare(self, statement: str, tokens: list[SqlToken]) -> FakeAnswer:
        """PREPARE [FORCE] [NAME FROM|AS] STATEMENT."""
        reader = SqlReader(tokens, self._query.parameters)
        reader.expect("PREPARE")
        reader.take("FORCE")
        name = reader.take_name_before("FROM", "AS")
        if reader.is_at_end:
            raise NotUnderstood(statement)
        plan = self._services.plans.prepare(statement[reader.peek().start :], name)
        if self._query.auto_executes:
            self._further["prepared"] = plan.name
            return self._answer(plan.statement)
        return FakeAnswer(rows=[_described(plan)])

    def _execute_by_statement(self, tokens: list[SqlToken]) -> FakeAnswer:
        reader = SqlReader(tokens, self._query.parameters)
        reader.expect("EXECUTE")
        name = reader.read_text()
        reader.end()
        return self._execute(name)

    def _execute(self, name: str) -> FakeAnswer:
        plans = self._services.plans
        code = plans.stale_code(name)
        if code is not None:
            return refused(code, STALE_MESSAGES[code].format(name=name), status=404 if code == 4040 else 400)
        plan = plans.find(name)
        assert plan is not None
        return self._answer(plan.statement)


def refused(code: int, message: str, *, status: int = 400) -> FakeAnswer:
    """Return the answer that is one error."""
    return FakeAnswer(errors=[error(code, message)], http_status=status)


def _described(plan: FakePlan) -> Mapping[str, object]:
    return {
        "encoded_plan": plan.encoded,
        "name": plan.name,
        "operator": {"#operator": "Sequence"},
        "signature": {"*": "*"},
        "text": plan.statement,
    }
