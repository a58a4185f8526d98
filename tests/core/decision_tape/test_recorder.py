"""Facts that a recorder keeps about a client."""

from __future__ import annotations

import gc
import hmac
import weakref
from collections.abc import Callable

import pytest

from tests.core.decision_tape.recorded import RecordedSimulation, facts_of
from tests.core.runtime.kv.simulated import HOTELS, get, node_options, upsert
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.decision_tape.replay import replay
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, Service
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing import FakeNode, FakeNodes, delay, drop_response, hang_up, temporary_failure


@pytest.mark.parametrize(
    "arguments",
    [(0,), (1_000_001,), ("1",), (1, "names", 1), (1, "pseudonym_key", b"short"), (1, "pseudonym_key", "x" * 32)],
)
def test_invalid_arguments_are_refused(arguments: tuple[object, ...]) -> None:
    """An invalid capacity, flag or key of pseudonyms raises, and the error does not show the key."""
    capacity, *rest = arguments

    with pytest.raises(InvalidArgumentException) as caught:
        DecisionRecorder(capacity, **dict([rest]) if rest else {})  # type: ignore[arg-type]

    assert "short" not in str(caught.value)


def test_a_full_ring_keeps_the_newest() -> None:
    """A ring keeps its capacity of the newest facts, and the tape has the number of lost ones."""
    simulation = RecordedSimulation(recorder := DecisionRecorder(5))
    for number in range(20):
        simulation.submit(get(f"k{number}"))
        simulation.run(0.1)
    *facts, end = facts_of(simulation.tape())

    assert list(range(16, 21)) == [operation.token for operation in simulation.operations()]
    assert 5 == len(facts) == len(recorder)
    assert isinstance(end, lines.End)
    assert end.lost == recorder.lost > 15


def test_each_ending_is_recorded_once() -> None:
    """A success, a failure, an abandoned and an open operation have one line each, with the facts of their attempt."""
    simulation = RecordedSimulation()
    simulation.submit(upsert("a", HOTELS))
    simulation.submit(get("missing"))
    simulation.run(0.1)
    simulation.node.faults.next(Opcode.SET, drop_response(), 2)
    left = simulation.submit(upsert("b"))
    simulation.submit(upsert("c"))
    simulation.flow()
    simulation.abandon(left)
    operations = sorted(simulation.operations(), key=lambda operation: operation.token)

    assert ["completed", "failed", "abandoned", "open"] == [operation.result for operation in operations]
    stored, missing, abandoned, still_open = operations
    assert ("travel", "inventory", "hotel") == (stored.bucket, stored.scope, stored.collection)
    assert "DocumentNotFoundException" == missing.error
    assert "cancelled" == abandoned.abandoned
    assert still_open.ended_at is None
    assert stored.ended_at is not None
    for operation in operations:
        sent = operation.steps[0]
        assert isinstance(sent, lines.Sent)
        assert operation.began_in_flight
        assert (sent.node, bool(sent.stream), bool(sent.opaque)) == ("127.0.0.1:11210", True, True)
        assert operation.submitted_at <= sent.at


def test_connections_and_breakers_are_recorded() -> None:
    """A connection's opening, bootstrap and loss are facts, and so is each state of its breaker."""
    simulation = RecordedSimulation()
    simulation.node.faults.next(Opcode.GET, hang_up())
    simulation.submit(get())
    simulation.run(3.0)
    simulation.node.faults.next(Opcode.GET, drop_response(), 25)
    for _ in range(25):
        simulation.submit(get())
    simulation.run(3.0)
    simulation.advance(5.0)
    simulation.flow()
    facts = facts_of(simulation.tape())
    events = [fact for fact in facts if isinstance(fact, lines.Connection) and fact.stream == 2]
    states = [str(fact.state.value) for fact in facts if isinstance(fact, lines.Breaker)]

    milestones = ["opening", "negotiating", "authenticating", "joining", "ready", "stream_lost", "lost"]
    assert milestones == [event.event for event in events]
    assert ("127.0.0.1:11210", "travel") == (events[0].node, events[0].bucket)
    assert [True] == [event.cause is not None for event in events if event.event == "stream_lost"]
    assert ["open", "half_open", "closed"] == states


def test_a_new_map_has_its_moved_vbuckets() -> None:
    """The removal of one of two nodes moves half of the vbuckets; the first map moves none."""
    nodes = FakeNodes(node_options(), 2)
    simulation = RecordedSimulation(node=nodes)
    simulation.submit(get())
    simulation.run(0.1)
    nodes.remove_node(1)
    simulation.submit(get())
    simulation.run(20.0)
    maps = [fact for fact in facts_of(simulation.tape()) if isinstance(fact, lines.ClusterMap) and fact.bucket]

    assert [0, 64] == [fact.moved for fact in maps]
    assert maps[0].revision < maps[1].revision


def test_numbers_replace_names() -> None:
    """If names are omitted, one number replaces each name on the whole tape."""
    simulation = RecordedSimulation(DecisionRecorder(1000, names=False))
    simulation.submit(get("k", HOTELS))
    simulation.submit(get("k", HOTELS))
    simulation.run(0.1)
    tape = simulation.tape()
    first, second = simulation.operations()

    assert (first.bucket, first.scope, first.collection) == (second.bucket, second.scope, second.collection)
    assert 3 == len({first.bucket, first.scope, first.collection})
    assert not any(name in tape for name in (b"travel", b"inventory", b"hotel"))


def test_pseudonyms_name_keys() -> None:
    """With pseudonyms, operations and error contexts have the HMAC of their key, under the key of the recorder."""
    secret = bytes(range(32))
    recorder = DecisionRecorder(1000, pseudonym_key=secret)
    simulation = RecordedSimulation(recorder)
    token = simulation.submit(get("ada"))
    simulation.run(0.1)
    (operation,) = simulation.operations()

    expected = hmac.new(secret, b"ada", "sha256").hexdigest()[:32]
    assert recorder.pseudonym is not None
    assert expected == recorder.pseudonym("ada") == operation.key
    assert expected == simulation.errors[token].context.key_pseudonym


def test_a_recorded_operation_frees_its_value() -> None:
    """A recorder keeps neither the value nor the client context of an ended operation alive."""

    class Context(dict[str, object]):
        """Mapping that can be weakly referenced."""

    context = Context(user="data")
    alive = weakref.ref(context)
    simulation = RecordedSimulation()
    simulation.node.faults.next(Opcode.SET, hang_up())
    simulation.submit(upsert("k", value=b"x" * 1000), client_context=context)
    del context
    simulation.run(5.0)
    simulation.refusals.clear()
    simulation.retries.clear()
    simulation.errors.clear()
    gc.collect()

    assert len(simulation.recorder)
    assert alive() is None
    assert not [found for found in gc.get_objects() if type(found) is bytes and found == b"x" * 1000]


def test_a_query_has_no_statement() -> None:
    """A query has its name, its service and the events of its retry machine, but not its statement."""
    simulation = RecordedSimulation(node=FakeNode())
    simulation.request(QueryRequest(statement="SELECT 1 AS secret"))
    simulation.run(0.1)
    tape = simulation.tape()
    (operation,) = simulation.operations()

    assert ("query", "query", "completed") == (operation.name, str(operation.service), operation.result)
    assert isinstance(operation.steps[-1], lines.ServiceResponded)
    assert b"SELECT" not in tape
    assert b"secret" not in tape


def test_pings_are_not_recorded() -> None:
    """A ping of a service is on the tape neither while it is open nor after its response or its failure."""
    node = FakeNode()
    simulation = RecordedSimulation(node=node)
    node.faults.next(Service.QUERY, delay(0.2))
    node.faults.next(Service.QUERY, hang_up())
    recorded = []
    for _ in range(2):
        simulation.inquire(Ping(None, "i", (Service.QUERY,)))
        for _ in range(2):
            simulation.run(0.15)
            recorded.append(simulation.operations())

    assert [[], [], [], []] == recorded
    assert 2 == len(simulation.results)


@pytest.mark.parametrize("is_query", [False, True])
def test_an_attempt_has_the_time_of_its_dispatch(is_query: bool) -> None:
    """An operation that waits for a connection has the time of its first dispatch, even if that attempt failed."""
    node = FakeNode() if is_query else FakeNode(node_options())
    node.faults.next(Opcode.HELLO, delay(0.7), 5)
    node.faults.next(Opcode.SET, temporary_failure())
    simulation = RecordedSimulation(node=node)
    if is_query:
        simulation.request(QueryRequest(statement="SELECT 1"))
    else:
        simulation.submit(upsert())
    simulation.run(2.0)
    (operation,) = simulation.operations()

    assert isinstance(operation.steps[0], lines.Sent)
    assert 0.0 == operation.submitted_at
    assert pytest.approx(0.7) == operation.steps[0].at


class Array(float):
    """Subclass of ``float``, as an array library may return."""


class Hostile(type):
    """Metaclass whose classes have no readable name."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


class Backoff:
    """Backoff that cannot be compared."""

    def __call__(self, retry_attempts: int, rng: object, /) -> float:
        """Return a delay."""
        return 0.01

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


class Fickle:
    """Strategy whose method cannot be read again after the first retry."""

    reads = 0

    def __getattr__(self, name: str) -> object:
        if name != "retry_after" or (reads := self.reads) >= 3:
            raise RuntimeError
        self.reads = reads + 1
        return lambda request, reason: RetryAction.after(10**25, within=Array(1000))


@pytest.mark.parametrize(
    "make",
    [
        Hostile("Nameless", (BestEffortRetryStrategy,), {}),
        lambda: BestEffortRetryStrategy(Backoff()),
        Fickle,
    ],
    ids=["name", "backoff", "method"],
)
def test_no_code_of_users_runs_while_writing(make: Callable[[], BestEffortRetryStrategy]) -> None:
    """A strategy that raises outside of its calls, or that returns unusual numbers, is recorded like any other."""
    simulation = RecordedSimulation()
    simulation.node.faults.next(Opcode.SET, temporary_failure())
    simulation.submit(upsert(), retry_strategy=make())
    simulation.run(5.0)
    (operation,) = simulation.operations()

    assert not operation.strategy.is_default
    assert isinstance(operation.steps[1], lines.Responded)
    assert replay(operation) is None
