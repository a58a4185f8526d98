"""Requests for queries, according to SDK-RFC 0056 "ICluster#Query"."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from tests.core.services.answers import answered
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.query import query_request
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceRequest
from triclinium_core.services.statement.parameters import Parameters, RawOptions
from triclinium_core.services.statement.statement_request import QueryContext

STATEMENT = "SELECT p.* FROM people p WHERE p.age > $age"


def members(request: ServiceRequest, remaining: float = math.inf) -> dict[str, object]:
    """Return the members of the request body."""
    decoded: dict[str, object] = msgspec.json.decode(request.encode(remaining).body)
    return decoded


def query(**options: Any) -> query_request.QueryRequest:
    """Return a query with these options."""
    return query_request.QueryRequest(statement=STATEMENT, **options)


def added(**options: Any) -> dict[str, object]:
    """Return the members that these options add to the body of a query or change in it."""
    plain = members(query())
    return {name: value for name, value in members(query(**options)).items() if (name, value) not in plain.items()}


def test_default_request() -> None:
    """The default request is a POST of a JSON object that disables metrics and has no members for other options."""
    sent = query(client_context_id="c1").encode(math.inf)

    assert ("POST", "/query/service", "application/json", ()) == (
        sent.method,
        sent.target,
        sent.content_type,
        sent.headers,
    )
    assert {"statement": STATEMENT, "client_context_id": "c1", "metrics": False} == msgspec.json.decode(sent.body)


@rows(
    ("options", "expected"),
    [
        ({"scan_consistency": query_request.QueryScanConsistency.REQUEST_PLUS}, {"scan_consistency": "request_plus"}),
        ({"scan_consistency": query_request.QueryScanConsistency.NOT_BOUNDED}, {}),
        ({"client_context_id": "foobar"}, {"client_context_id": "foobar"}),
        ({"max_parallelism": 1}, {"max_parallelism": "1"}),
        ({"max_parallelism": 0}, {"max_parallelism": "0"}),
        ({"pipeline_batch": 16}, {"pipeline_batch": "16"}),
        ({"pipeline_cap": 512}, {"pipeline_cap": "512"}),
        ({"scan_cap": 2**32 - 1}, {"scan_cap": "4294967295"}),
        ({"scan_wait": 1.0}, {"scan_wait": "1000ms"}),
        ({"profile": query_request.QueryProfile.OFF}, {}),
        ({"profile": query_request.QueryProfile.PHASES}, {"profile": "phases"}),
        ({"profile": query_request.QueryProfile.TIMINGS}, {"profile": "timings"}),
        ({"readonly": True}, {"readonly": True}),
        ({"readonly": False}, {}),
        ({"metrics": True}, {"metrics": True}),
        ({"preserve_expiry": True}, {"preserve_expiry": True}),
        ({"use_replica": True}, {"use_replica": "on"}),
        ({"use_replica": False}, {"use_replica": "off"}),
        ({"use_replica": None}, {}),
        ({"flex_index": True}, {"use_fts": True}),
        ({"adhoc": False}, {}),
        ({"query_context": QueryContext("travel", "inventory")}, {"query_context": "default:`travel`.`inventory`"}),
        ({"parameters": Parameters([1, "a"])}, {"args": [1, "a"]}),
        ({"parameters": Parameters([], {"age": 3, "$born": None})}, {"$age": 3, "$born": None}),
        ({"parameters": Parameters([5], {"age": 3})}, {"args": [5], "$age": 3}),
        ({"raw": RawOptions({"controls": True, "tximplicit": {}})}, {"controls": True, "tximplicit": {}}),
    ],
)
def test_options(options: dict[str, object], expected: dict[str, object]) -> None:
    """Each option has the RFC's member and type in the body."""
    assert expected == added(**options)


def test_consistent_with() -> None:
    """Sequence numbers are sent as numbers, vbuckets and their UUIDs as strings (SDK-RFC 0004)."""
    tokens = (MutationToken("default", 1, 2**64 - 1, 2**63), MutationToken("beer-sample", 25, 5678, 10))

    assert {
        "scan_consistency": "at_plus",
        "scan_vectors": {"default": {"1": [2**63, str(2**64 - 1)]}, "beer-sample": {"25": [10, "5678"]}},
    } == added(consistent_with=tokens)


@rows(
    ("remaining", "timeout"),
    [(75.0, "75000ms"), (0.0123, "13ms"), (0.0, "1ms"), (-1.0, "1ms"), (math.inf, None), (1e300, None)],
)
def test_timeout(remaining: float, timeout: str | None) -> None:
    """The body has the remaining time as its timeout, at least 1 ms, or none if that time is infinite or huge."""
    assert timeout == members(query(), remaining).get("timeout")


def test_service_and_idempotence() -> None:
    """The request is for the query service, streams its rows, and is idempotent only if it is readonly."""
    assert (Service.QUERY, "query", "results", False) == (
        query_request.QueryRequest.service,
        query_request.QueryRequest.name,
        query_request.QueryRequest.rows_of,
        query().idempotent,
    )
    assert query(readonly=True).idempotent
    assert query(adhoc=False, readonly=True).idempotent


@rows(
    ("use_replica", "needed"),
    [(None, set()), (True, {ClusterCapability.READ_FROM_REPLICA}), (False, {ClusterCapability.READ_FROM_REPLICA})],
)
def test_required_capabilities(use_replica: bool | None, needed: set[ClusterCapability]) -> None:
    """Only a request that sets ``use_replica``, true or false, requires a cluster that supports reads from replicas."""
    assert needed == query(use_replica=use_replica).required_capabilities


def test_error_context() -> None:
    """The error context has the statement and the parameters' names, but not their values."""
    request = query(
        client_context_id="c1",
        parameters=Parameters(["s3cret"], {"age": "s3cret"}),
        query_context=QueryContext("travel", "inventory"),
    )

    assert request.error_context() == ErrorContext(
        service="query",
        operation="query",
        idempotent=False,
        client_context_id="c1",
        statement=STATEMENT,
        bucket="travel",
        scope="inventory",
        parameters=("$1", "$age"),
        http_method="POST",
        http_path="/query/service",
    )
    assert "s3cret" not in f"{request!r}{request.encode(1)!r}"


TOKEN = MutationToken("b", 1, 2, 3)


@rows(
    ("parameter", "values"),
    [
        ("statement", ("", " \n", b"SELECT 1", "\ud800")),
        ("client_context_id", (5,)),
        ("parameters", ({"age": 5},)),
        ("query_context", ("travel.inventory",)),
        ("scan_consistency", ("request_plus",)),
        ("consistent_with", ([TOKEN], ("token",))),
        ("profile", ("timings",)),
        ("scan_wait", (-1, math.inf, 1e11)),
        ("raw", ({"controls": True},)),
        ("plan", ("p1",)),
        ("use_replica", ("on",)),
        *((flag, (1,)) for flag in ("adhoc", "readonly", "metrics", "flex_index", "preserve_expiry")),
        *((number, (-1, 2**32, True, "1", 1.5)) for number in query_request.NUMBERS),
    ],
)
def test_invalid_arguments(parameter: str, values: tuple[object, ...]) -> None:
    """An invalid argument raises an error with its name when the request is created."""
    for value in values:
        refused(parameter, query_request.QueryRequest, **{"statement": STATEMENT, parameter: value})
    refused(
        "scan_consistency",
        query,
        scan_consistency=query_request.QueryScanConsistency.NOT_BOUNDED,
        consistent_with=(TOKEN,),
    )


@rows("names", [("", "inventory"), ("travel", "a`b"), ("tra`vel", "inventory"), (None, "inventory")])
def test_invalid_query_contexts(names: tuple[str, str]) -> None:
    """A query context with a missing name, or with a backtick, is refused."""
    with pytest.raises(errors.InvalidArgumentException):
        QueryContext(*names)


def test_raw_options_do_not_override_members() -> None:
    """A raw option is refused if it has the name of a member that triclinium sends."""
    everything = query(
        client_context_id="c1",
        readonly=True,
        consistent_with=(TOKEN,),
        profile=query_request.QueryProfile.TIMINGS,
        flex_index=True,
        preserve_expiry=True,
        use_replica=True,
        scan_wait=1.0,
        metrics=True,
        query_context=QueryContext("b", "s"),
        parameters=Parameters([1], {"age": 1}),
        **dict.fromkeys(query_request.NUMBERS, 1),
    )
    requests = (
        everything,
        everything.preparation(enhanced=True),
        everything.with_plan(query_request.PreparedPlan("p1", "plan")),
    )
    written = {name for request in requests for name in members(request, 75.0)}

    assert set(query_request.QueryRequest.members) | {"$age"} == written
    for name in written:
        refused("raw", query, raw=RawOptions({name: 1}))


# -- Prepared statements.


PREPARABLE = query_request.QueryRequest(
    statement=STATEMENT,
    client_context_id="c1",
    adhoc=False,
    readonly=True,
    parameters=Parameters([], {"age": 30}),
    query_context=QueryContext("travel", "inventory"),
)
ALWAYS = {
    "client_context_id": "c1",
    "timeout": "75000ms",
    "metrics": False,
    "query_context": "default:`travel`.`inventory`",
    "readonly": True,
    "$age": 30,
}


def test_enhanced_preparation() -> None:
    """An enhanced PREPARE also executes the statement and streams its rows."""
    preparation = PREPARABLE.preparation(enhanced=True)

    assert {"statement": f"PREPARE {STATEMENT}", "auto_execute": True, **ALWAYS} == members(preparation, 75.0)
    assert "results" == preparation.rows_of
    assert preparation.idempotent


@rows(
    ("prepared", "plan"),
    [
        ({"prepared": "[127.0.0.1:8091]p1"}, query_request.PreparedPlan("[127.0.0.1:8091]p1")),
        *(({"prepared": wrong}, None) for wrong in ("", 5, None)),
        ({}, None),
    ],
)
def test_plan_of_enhanced_preparation(prepared: dict[str, object], plan: query_request.PreparedPlan | None) -> None:
    """If an enhanced PREPARE returns a name, the plan has this name; otherwise there is no plan."""
    assert plan == PREPARABLE.plan_of(answered({"status": "success", "results": [], **prepared}))


def test_plain_preparation() -> None:
    """A plain PREPARE is a separate idempotent request, whose response has the name and the plan."""
    preparation = PREPARABLE.preparation(enhanced=False)
    answer = {"results": [{"name": "p1", "encoded_plan": "H4sI", "operator": {}}], "status": "success"}

    assert isinstance(preparation, query_request.PrepareRequest)
    assert {"statement": f"PREPARE {STATEMENT}", **ALWAYS} == members(preparation, 75.0)
    assert query_request.PreparedPlan("p1", "H4sI") == preparation.decode(answered(answer))
    assert (None, True) == (preparation.rows_of, preparation.idempotent)
    assert PREPARABLE.error_context() == preparation.error_context()


@rows(
    "body",
    [
        b"",
        b"[]",
        b'{"results":{}}',
        b'{"results":[]}',
        b'{"results":[{"name":""}]}',
        b'{"results":[{"encoded_plan":"x"}]}',
        b'{"results":[{"name":"a"},{"name":"b"}]}',
    ],
)
def test_malformed_plan(body: bytes) -> None:
    """A response without exactly one named plan raises MalformedAnswer; for an enhanced PREPARE, a non-object does."""
    with pytest.raises(MalformedAnswer):
        PREPARABLE.preparation(enhanced=False).decode(HttpResponse(200, body))
    if not body.startswith(b"{"):
        with pytest.raises(MalformedAnswer):
            PREPARABLE.plan_of(HttpResponse(200, body))


@rows(
    ("plan", "said"),
    [
        (query_request.PreparedPlan("p1", "H4sI"), {"prepared": "p1", "encoded_plan": "H4sI"}),
        (query_request.PreparedPlan("p1"), {"prepared": "p1"}),
    ],
)
def test_with_plan(plan: query_request.PreparedPlan, said: dict[str, object]) -> None:
    """A request with a plan sends the plan, the options and the parameters of the query, but not its statement."""
    assert {**said, **ALWAYS} == members(PREPARABLE.with_plan(plan), 75.0)


def test_plan_key() -> None:
    """Two requests have equal plan keys if and only if statement, query context and kind of index are equal."""
    other = msgspec.structs.replace(PREPARABLE, parameters=Parameters(), readonly=False, client_context_id="c2")
    kinds = {
        request.plan_key
        for request in (
            PREPARABLE,
            other,
            PREPARABLE.with_plan(query_request.PreparedPlan("p1")),
            msgspec.structs.replace(PREPARABLE, query_context=None),
            msgspec.structs.replace(PREPARABLE, flex_index=True),
            msgspec.structs.replace(PREPARABLE, statement="SELECT 1"),
        )
    }

    assert PREPARABLE.plan_key == other.plan_key
    assert 4 == len(kinds)
