"""Query service: scripted responses, constants, prepared statements and indexes.

Source: SDK-RFC 0056; Couchbase Server documentation, "Query Service REST API".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.services.answers import FakeAnswer, ServiceReply, unanswered
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.script import normalized
from triclinium_core.testing.fakes.services.statements import sqlpp
from triclinium_core.testing.fakes.services.statements.explained import PROFILES, explained, profile_of
from triclinium_core.testing.fakes.services.statements.index_statements import (
    INDEX_STATEMENTS,
    IndexRefused,
    incarnation_of,
)
from triclinium_core.testing.fakes.services.statements.indexes import SYSTEM_INDEXES
from triclinium_core.testing.fakes.services.statements.plans import STALE_MESSAGES, FakePlan
from triclinium_core.testing.fakes.services.statements.select import Select, read_select
from triclinium_core.testing.fakes.services.statements.statement import (
    HINT,
    AskedStatement,
    read_statement,
    refused,
    reply_with,
)
from triclinium_core.testing.fakes.store.state import NodeState

READONLY = 1000
"""Query error E_SERVICE_READONLY."""
READONLY_MESSAGE = "The server or request is read-only and cannot accept this write statement."

WRITES = frozenset(
    {
        *("INSERT", "UPSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"),
        *("CREATE", "DROP", "ALTER", "BUILD", "GRANT", "REVOKE"),
    }
)
"""First words of statements that change data. A request that only prepares such a statement changes no data."""


def script_key(node: NodeState, request: FakeRequest) -> str | None:
    """Return the key in the script: the statement that the request executes, even if it names a plan; None without one.

    That is the request's own statement if it executes no other, because it only prepares one or names an unknown plan.
    """
    if request.segments != ("query", "service"):
        return None
    query = read_statement(request)
    name = query.prepared
    if name is None and query.statement is not None:
        reader = sqlpp.SqlReader(sqlpp.tokens_of(query.statement), query.parameters)
        try:
            match reader.peek().keyword:
                case "PREPARE" if query.auto_executes:
                    return _read_prepare(query.statement, reader)[1]
                case "EXECUTE":
                    name = _read_execute(reader)
        except sqlpp.NotUnderstood:
            # The service refuses the statement.
            return query.statement
    plan = None if name is None else node.cluster.services.plans.find(name)
    return query.statement if plan is None else plan.statement


def answer(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request to the query service."""
    match request.method, request.segments:
        case "GET", ("admin", "ping"):
            return ServiceReply(body=b'{"status":"OK"}')
        case (("POST" | "GET"), ("query", "service")):
            return _Execution(node, read_statement(request), is_get=request.method == "GET").reply()
        case _:
            return unanswered(Service.QUERY, request, b"404 page not found\n")


def unauthorized(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Answer a request without valid credentials."""
    # Source: query error 10000, E_DATASTORE_AUTHORIZATION.
    return reply_with(node, read_statement(request), refused(10000, "Authentication failure", status=401))


class _Execution:
    """One query, from its parameters to its reply."""

    def __init__(self, node: NodeState, query: AskedStatement, *, is_get: bool) -> None:
        self._node = node
        self._query = query
        self._is_readonly = is_get or query.document.get("readonly") is True
        self._services = node.cluster.services
        self._further: dict[str, object] = {}
        """Additional fields of the response."""
        self._is_scripted = False
        self._select_run: Select | None = None
        """SELECT that was executed; None for any other statement."""

    def reply(self) -> ServiceReply:
        """Return the reply."""
        if self._query.prepared is not None:
            found = self._execute(self._query.prepared)
        elif self._query.statement is None:
            found = refused(1050, "No statement or prepared value")
        else:
            found = self._answer(self._query.statement)
        kind = self._query.document.get("profile")
        profile = partial(self._profile, kind) if isinstance(kind, str) and kind in PROFILES else None
        reply = reply_with(self._node, self._query, found, further=self._further, profile=profile)
        return replace(reply, applied=self._is_scripted or not found.errors)

    def _answer(self, statement: str) -> FakeAnswer:
        tokens = sqlpp.tokens_of(statement)
        if self._is_readonly and tokens and tokens[0].keyword in WRITES:
            return refused(READONLY, READONLY_MESSAGE, status=403)
        scripted = self._services.script.take(Service.QUERY, statement)
        if scripted is not None:
            self._is_scripted = True
            return scripted
        try:
            return self._understand(statement, tokens)
        except sqlpp.NotUnderstood as problem:
            return refused(3000, f"syntax error near {str(problem)!r} in {statement!r}: {HINT}")
        except sqlpp.NoSuchParameter as problem:
            return refused(5010, f"Error evaluating projection. - cause: No value for parameter: {problem}")
        except IndexRefused as refusal:
            return refused(refusal.code, refusal.message, status=refusal.status)

    def _understand(self, statement: str, tokens: list[sqlpp.SqlToken]) -> FakeAnswer:
        reader = sqlpp.SqlReader(tokens, self._query.parameters)
        match tokens[0].keyword if tokens else "":
            case "PREPARE":
                return self._prepare(statement, reader)
            case "EXECUTE":
                return self._execute(_read_execute(reader))
            case "EXPLAIN":
                return self._explain(statement, reader)
            case "SELECT":
                self._select_run = select = self._read_select(reader)
                return FakeAnswer(rows=select.rows(self._indexes()))
            case word if word in INDEX_STATEMENTS:
                self._services.indexes.forget_dropped(partial(incarnation_of, self._node))
                INDEX_STATEMENTS[word](self._node, self._query.context, statement, reader)
                return FakeAnswer()
            case _:
                raise sqlpp.NotUnderstood(tokens[0].text if tokens else "")

    def _read_select(self, reader: sqlpp.SqlReader) -> Select:
        select = read_select(reader)
        if select.source not in (None, SYSTEM_INDEXES):
            raise sqlpp.NotUnderstood(".".join(select.source or ()))
        return select

    def _explain(self, statement: str, reader: sqlpp.SqlReader) -> FakeAnswer:
        """Run EXPLAIN STATEMENT. The statement is a SELECT, or scripted; its scripted response is not used up."""
        reader.expect("EXPLAIN")
        explainee = statement[reader.peek().start :]
        select = None
        if reader.is_at_end or not self._services.script.has(Service.QUERY, explainee):
            select = self._read_select(reader)
        return FakeAnswer(rows=[explained(normalized(explainee), select)])

    def _profile(self, kind: str, seconds: float) -> Mapping[str, object]:
        options, wall = self._node.options, self._node.documents.wall_seconds
        host = str(Address(options.host, options.service_ports.get(Service.MANAGEMENT, 0)))
        return profile_of(kind, self._select_run, seconds=seconds, wall_seconds=wall, host=host)

    def _indexes(self) -> list[Mapping[str, object]]:
        self._services.indexes.forget_dropped(partial(incarnation_of, self._node))
        return self._services.indexes.documents(self._node.documents.now)

    def _prepare(self, statement: str, reader: sqlpp.SqlReader) -> FakeAnswer:
        name, prepared = _read_prepare(statement, reader)
        plan = self._services.plans.prepare(prepared, name)
        if self._query.auto_executes:
            self._further["prepared"] = plan.name
            return self._answer(plan.statement)
        return FakeAnswer(rows=[_described(plan)])

    def _execute(self, name: str) -> FakeAnswer:
        plans = self._services.plans
        code = plans.stale_code(name)
        if code is not None:
            return refused(code, STALE_MESSAGES[code].format(name=name), status=404 if code == 4040 else 400)
        plan = plans.find(name)
        assert plan is not None
        return self._answer(plan.statement)


def _read_prepare(statement: str, reader: sqlpp.SqlReader) -> tuple[str | None, str]:
    """Return the name, if any, and the statement in PREPARE [FORCE] [NAME FROM|AS] STATEMENT."""
    reader.expect("PREPARE")
    reader.take("FORCE")
    name = reader.take_name_before("FROM", "AS")
    if reader.is_at_end:
        raise sqlpp.NotUnderstood(statement)
    return name, statement[reader.peek().start :]


def _read_execute(reader: sqlpp.SqlReader) -> str:
    """Return the name in EXECUTE NAME."""
    reader.expect("EXECUTE")
    name = reader.read_text()
    reader.end()
    return name


def _described(plan: FakePlan) -> Mapping[str, object]:
    return {
        "encoded_plan": plan.encoded,
        "name": plan.name,
        "operator": {"#operator": "Sequence"},
        "signature": {"*": "*"},
        "text": plan.statement,
    }
