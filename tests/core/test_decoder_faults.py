"""Effects of a defect in each decoder; the tests plant an exception as the defect."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pytest

from tests.architecture.policy import ROOT
from tests.core.runtime.kv.simulated import HOTELS, found, get, ready, upsert
from tests.core.runtime.services.asking import Asking, asking
from tests.core.services.response_codes import ASKED
from triclinium_core import errors
from triclinium_core.contract.couchbase import KINDS_MAX, Action, FaultReports, OperationAbandoned
from triclinium_core.contract.neutral import CloseStream, ReportDecoderFault, StreamId, Token
from triclinium_core.decoder_faults import Decoder, unexpected
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Ping, WaitForNodes
from triclinium_core.kv.operation.operation_codec import decode_response
from triclinium_core.kv.operation.reports import PingResult
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.runtime.services.connection import HttpConnection
from triclinium_core.services.management.buckets import GetAllBuckets
from triclinium_core.services.management.collections import GetAllScopes
from triclinium_core.services.management.query_indexes import IndexKeyspace, drop_index
from triclinium_core.services.management.search_indexes import GetAllSearchIndexes
from triclinium_core.services.management.users import GetAllUsers
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.fakes.faults import hang_up, not_my_vbucket
from triclinium_core.testing.fakes.services.answers import FakeAnswer

pytestmark = pytest.mark.usefixtures("contain_decoder_faults")

SLOW_SECONDS = 100.0
"""Time in seconds that is longer than any timeout of these tests."""


@dataclass(frozen=True)
class Plant:
    """Decoder in which a test plants an exception, with a call that reaches the decoder."""

    decoder: Decoder
    target: str
    ask: Callable[[Asking], Token]
    error: type[errors.CouchbaseException] = errors.DecodingFailureException
    """Exception that the call raises when the decoder fails."""

    @property
    def breaks_bootstrap(self) -> bool:
        """True if no connection can become ready with the defect."""
        return self.decoder in (Decoder.CLUSTER_CONFIG, Decoder.ERROR_MAP)


def _query(*, adhoc: bool = True) -> Callable[[Asking], Token]:
    return lambda simulation: simulation.request(asking(adhoc=adhoc))


def _request(request: ServiceRequest) -> Callable[[Asking], Token]:
    return lambda simulation: simulation.request(request)


def _operation(operation: Operation) -> Callable[[Asking], Token]:
    return lambda simulation: simulation.submit(operation)


def _of_service(request: ServiceRequest) -> Plant:
    kind = type(request)
    method = "decode_in_steps" if "decode_in_steps" in vars(kind) else "decode"
    return Plant(Decoder.SERVICE_ANSWER, f"{kind.__module__}.{kind.__qualname__}.{method}", _request(request))


CORE = "triclinium_core"
LONG = upsert("long", value=b'"%s"' % (b"x" * 4096))
"""Write of a document that is long enough to be sent compressed."""
PLANTS: Sequence[Plant] = (
    Plant(
        Decoder.CLUSTER_CONFIG,
        f"{CORE}.runtime.kv.config_follower.parse_cluster_config",
        _operation(get()),
        errors.UnambiguousTimeoutException,
    ),
    Plant(
        Decoder.ERROR_MAP,
        f"{CORE}.retry.couchbase.parse_error_map",
        _operation(get()),
        errors.UnambiguousTimeoutException,
    ),
    Plant(
        Decoder.COMPRESSED_VALUE,
        f"{CORE}.runtime.kv.connection.connection.inflate",
        _operation(get("long")),
        errors.UnambiguousTimeoutException,
    ),
    Plant(Decoder.KEY_VALUE_RESULT, f"{CORE}.runtime.kv.carrier.decode_response", _operation(get("long"))),
    Plant(Decoder.KEY_VALUE_ERROR, f"{CORE}.runtime.kv.carrier.read_failure", _operation(get("missing"))),
    Plant(
        Decoder.COLLECTION_ID,
        f"{CORE}.runtime.kv.collection_lookups._decode_collection_id",
        _operation(get("k", HOTELS)),
        errors.UnambiguousTimeoutException,
    ),
    Plant(
        Decoder.COLLECTIONS_MANIFEST,
        f"{CORE}.client.health.node_waits.decode_manifest",
        lambda simulation: simulation.inquire(WaitForNodes("travel", manifest_uid=0)),
        errors.AmbiguousTimeoutException,
    ),
    Plant(Decoder.HTTP, f"{CORE}.runtime.services.connection.HttpConnection._begin", _query()),
    Plant(Decoder.ROWS, f"{CORE}.services.answer.rows.RowSplitter.feed", _query()),
    Plant(Decoder.ROWS, f"{CORE}.services.answer.rows.RowSplitter.finish", _query()),
    Plant(Decoder.SERVICE_VERDICT, f"{CORE}.retry.couchbase.tables.service_responses.classify", _query()),
    Plant(Decoder.QUERY_PLAN, f"{CORE}.services.query.query_request.QueryRequest.plan_of", _query(adhoc=False)),
    Plant(
        Decoder.CONTEXT_ID,
        f"{CORE}.services.answer.incoming_answer.foreign_id",
        _request(asking(client_context_id='an "id" with escapes')),
    ),
    Plant(
        Decoder.CONTEXT_ID,
        f"{CORE}.services.answer.incoming_answer.foreign_id_in",
        _request(drop_index(IndexKeyspace("travel"), "x")),
    ),
    *(_of_service(request) for _, request in ASKED.values()),
    _of_service(GetAllBuckets()),
    _of_service(GetAllScopes("travel")),
    _of_service(GetAllUsers()),
    _of_service(GetAllSearchIndexes()),
)


def boom(*args: object, **kwargs: object) -> NoReturn:
    """Raise an exception, as a decoder that has a defect does."""
    raise KeyError("planted")


def boom_in_steps(*args: object) -> Iterator[int]:
    """Raise an exception in the first step of a decoder that works in steps."""
    yield boom(*args)


def begin() -> Asking:
    """Return a simulation that has not started, whose node has a response for each service that returns rows."""
    simulation = Asking()
    row = {"id": "a", "index": "hotels", "key": None, "value": 1}
    for service, (said, _) in ASKED.items():
        simulation.nodes.script.answer(said, FakeAnswer(rows=[row]), service=service)
    return simulation


def outcome(simulation: Asking, token: Token) -> object:
    """Run until an operation or request completes, for at most ``SLOW_SECONDS``, and return its result or error."""
    simulation.run(SLOW_SECONDS)
    return simulation.errors.get(token) or {**simulation.results, **simulation.answers}[token]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.decoder.name}-{plant.target.rpartition('.')[0]}")
def test_a_defect_costs_one_connection(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in a decoder closes the connection, is reported once with its traceback, and fails only its own call."""
    simulation = begin()
    if not plant.breaks_bootstrap:
        # Write the compressed document before the defect, so that it is first inflated in the call under test.
        outcome(simulation, simulation.submit(LONG))
    with monkeypatch.context() as planted:
        planted.setattr(plant.target, boom_in_steps if plant.target.endswith("_in_steps") else boom)
        error = outcome(simulation, plant.ask(simulation))
        again = outcome(simulation, plant.ask(simulation))

    (report,) = simulation.decoder_faults
    assert [plant.error] * 2 == [type(error), type(again)]
    assert (plant.decoder, "KeyError") == report.fault.kind
    assert "boom" == traceback.extract_tb(report.fault.__traceback__)[-1].name
    assert report.stream in {action.stream for action in simulation.actions if isinstance(action, CloseStream)}
    for reported in (error, again):
        assert isinstance(reported, errors.CouchbaseException)
        assert str(report.fault) in f"{reported} {reported.context.last_dispatch_error} {reported.context.connections}"
    assert not isinstance(outcome(simulation, plant.ask(simulation)), errors.DecodingFailureException)
    assert not isinstance(outcome(simulation, simulation.submit(LONG)), errors.CouchbaseException)
    assert 1 == len(simulation.decoder_faults)


def test_every_decoder_has_a_plant() -> None:
    """Each decoder with a guard has an entry in the table, except the one that runs in the caller's task."""
    assert set(Decoder) - {Decoder.ROW} == {plant.decoder for plant in PLANTS}


@pytest.mark.native
def test_every_guard_is_used() -> None:
    """Each decoder is named by a guard in the sources, and each guard names a decoder."""
    guards = [
        decoder
        for folder in ("core", "trio_client")
        for path in (ROOT / folder).rglob("*.py")
        for decoder in re.findall(r"unexpected\((?:decoder_faults\.)?Decoder\.(\w+)", path.read_text())
    ]

    assert {decoder.name for decoder in Decoder} == set(guards)


def test_others_on_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one of three reads in flight meets a defect, it fails; a second completes, and the third is sent again."""
    simulation = ready()
    simulation.result(upsert("lost"))
    first, second = (simulation.submit_in_flight(get(key)) for key in "ab")
    lost, _ = simulation.submit_in_flight(get("lost"))
    monkeypatch.setattr("triclinium_core.runtime.kv.carrier.decode_response", fails_for("a", decode_response))
    simulation.inject(found(first[1]) + found(second[1]))
    simulation.run()

    assert errors.DecodingFailureException is type(simulation.errors[first[0]])
    assert {second[0], lost} <= simulation.results.keys()
    assert 1 == simulation.machine.statistics().retries_by_reason[RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT]


def test_a_config_behind_not_my_vbucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a config in a NOT_MY_VBUCKET response meets a defect, the connection closes and the operation is retried."""
    simulation = ready()
    simulation.result(upsert())
    simulation.node.faults.next(Opcode.GET, not_my_vbucket())
    with monkeypatch.context() as planted:
        planted.setattr("triclinium_core.runtime.kv.config_follower.parse_cluster_config", boom)
        token = simulation.submit(get())
        simulation.flow()

    simulation.run()
    assert token in simulation.results
    assert [Decoder.CLUSTER_CONFIG] == [report.fault.kind[0] for report in simulation.decoder_faults]


@pytest.mark.parametrize(
    ("service", "target"),
    [
        (Service.KV, "triclinium_core.runtime.kv.config_follower.parse_cluster_config"),
        (Service.QUERY, "triclinium_core.services.ping_request.PingQuery.decode"),
        (Service.SEARCH, "triclinium_core.runtime.services.connection.HttpConnection._begin"),
    ],
)
def test_a_ping_names_the_defect(service: Service, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a defect breaks the connection to a node, the report of a ping has the defect."""
    simulation = begin()
    monkeypatch.setattr(target, boom)
    result = outcome(simulation, simulation.inquire(Ping("travel", report_id="r", service_types=(service,))))

    assert isinstance(result, PingResult)
    assert "KeyError('planted')" in str([found.error for found in result.endpoints[service]])


def test_the_end_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """If reading the end of a stream that ends a response meets a defect, the defect is reported and the request fails."""
    simulation = begin()
    simulation.nodes[0].faults.next(Service.QUERY, hang_up())
    ends = HttpConnection.ends_with_stream

    def ends_with_defect(connection: HttpConnection) -> bool:
        monkeypatch.setattr("h11.Connection.next_event", boom)
        return ends(connection)

    monkeypatch.setattr(HttpConnection, "ends_with_stream", ends_with_defect)
    error = outcome(simulation, simulation.request(asking()))

    assert errors.DecodingFailureException is type(error)
    assert [Decoder.HTTP] == [report.fault.kind[0] for report in simulation.decoder_faults]


@pytest.mark.parametrize("is_whole", [False, True])
def test_rows_with_a_defect(is_whole: bool) -> None:
    """If the caller's decoder of rows has a defect, the connection closes, even if the response is complete."""
    simulation = begin()
    simulation.takes_rows = False
    rows = [{"n": number} for number in range(1 if is_whole else 200_000)]
    simulation.nodes.script.answer("SELECT many", FakeAnswer(rows=rows), service=Service.QUERY)
    token = simulation.request(asking("SELECT many"))
    simulation.live(0.1)
    assert simulation.rows[token]
    simulation.feed(OperationAbandoned(token, unexpected(Decoder.ROW, KeyError("planted"))))

    (report,) = simulation.decoder_faults
    (endpoint,) = (each for each in simulation.machine.statistics().endpoints if each.service is Service.QUERY)
    assert report.stream in {action.stream for action in simulation.actions if isinstance(action, CloseStream)}
    assert 0 == endpoint.open


def test_kinds_are_reported_once_and_bounded() -> None:
    """Each kind of fault is reported once, up to a limit; a kind is an exception class in one decoder."""
    emitted: list[Action] = []
    reports = FaultReports(emit=emitted.append)
    for number in range(2 * KINDS_MAX):
        kind = type(f"Error{number}", (Exception,), {})
        for decoder in (Decoder.ROWS, Decoder.HTTP, Decoder.ROWS):
            reports.report(StreamId(1), "n:1", unexpected(decoder, kind()))

    assert KINDS_MAX == len(emitted)
    assert [Decoder.ROWS, Decoder.HTTP] * 3 == [
        report.fault.kind[0] for report in emitted[:6] if isinstance(report, ReportDecoderFault)
    ]


class Unshowable(Exception):
    """Exception whose repr raises another exception."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "error", [ValueError("a\nb\x1b[31m" + "x" * 100_000), Unshowable(), MemoryError(), RecursionError()]
)
def test_a_fault_is_one_short_line(error: Exception) -> None:
    """For any exception, the text of the fault is one short and printable line."""
    text = str(unexpected(Decoder.HTTP, error))

    assert text.isprintable()
    assert len(text) < 500


def fails_for(key: str, decode: Callable[..., Result]) -> Callable[..., Result]:
    """Return a decoder that raises an exception for responses about this key, and else calls ``decode``."""
    return lambda operation, *args, **kwargs: boom() if operation.key == key else decode(operation, *args, **kwargs)
