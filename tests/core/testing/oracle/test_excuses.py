"""Events of nodes and streams, some of which excuse a failure of a client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.testing.asked import at, get
from tests.core.testing.books import STREAM, is_suspect, logged
from tests.core.testing.node_client import ready_client
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.retry.couchbase import CircuitBreakerOptions, Status
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fault_catalogue import HARMLESS_STATUSES, INVALIDATING_STATUSES
from triclinium_core.testing.oracle.excuses import Excuses, Revision
from triclinium_core.testing.oracle.ledger import Ledger
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Submission

OTHER_STREAM = STREAM + 1
REPLY = encode_response(Opcode.GET, opaque=1, value=b"<1>")

HARMLESS: tuple[faults.CommandFault, ...] = (
    faults.Delay(2.5),
    faults.DropResponse(),
    faults.AnswerNotMyVbucket(),
    *(faults.AnswerStatus(code) for code in HARMLESS_STATUSES),
)
HARMFUL: tuple[faults.CommandFault, ...] = (
    faults.HangUpBeforeApplying(),
    faults.HangUpAfterApplying(),
    faults.HangUpMidReply(),
    faults.Garble(),
    faults.WrongLength(),
    *(faults.AnswerStatus(code) for code in INVALIDATING_STATUSES),
    faults.AnswerStatus(Status.SUCCESS),
)


@pytest.fixture
def nodes() -> FakeNodes:
    """Return a small cluster whose first node has the tests' document."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128), nodes=3)
    nodes.move(range(128), to=0)
    return nodes


@pytest.fixture
def excuses(nodes: FakeNodes) -> Excuses:
    """Return the collection of excuses of the cluster's clients, which is empty at first."""
    return Excuses(nodes, Model(), Ledger({}), CircuitBreakerOptions())


@rows("fault", HARMLESS)
def test_fault_that_spares_the_stream(excuses: Excuses, fault: faults.CommandFault) -> None:
    """A fault that strikes one command of a caller excuses neither other operations nor the end of the stream."""
    excuses.struck(logged(Opcode.GET, fault), at(3), 0)

    assert excuses.newest_at([0, 1]) < at(0)
    assert not is_suspect(excuses)


@rows(
    ("fault", "opcode"),
    [
        *((fault, Opcode.GET) for fault in HARMFUL),
        *((faults.DropResponse(), opcode) for opcode in (Opcode.HELLO, Opcode.NOOP, Opcode.GET_COLLECTION_ID, 0x77)),
    ],
)
def test_fault_that_breaks_the_stream(excuses: Excuses, fault: faults.CommandFault, opcode: int) -> None:
    """A fault that breaks a stream, or strikes the client's own request, excuses all operations on that node."""
    excuses.struck(logged(opcode, fault), at(3), 1)

    assert at(3) == excuses.newest_at([0, 1])
    assert excuses.newest_at([0]) < at(0)
    assert is_suspect(excuses)
    assert not is_suspect(excuses, OTHER_STREAM)


def test_problem_excuses_only_its_node(excuses: Excuses) -> None:
    """A problem of one node excuses operations on that node only; a problem without a node excuses all operations."""
    excuses.out_of_order(2, [OTHER_STREAM], at(4))
    excuses.lost(at(2), 0)

    assert [at(2), at(4)] == [excuses.newest_at([node]) for node in (0, 2)]
    assert is_suspect(excuses, OTHER_STREAM)

    excuses.lost(at(5), None)

    assert at(5) == excuses.newest_at([1])


@pytest.mark.parametrize("before", [b"", REPLY], ids=["first", "second"])
@pytest.mark.parametrize("size", [1, 23, 24, len(REPLY) - 1])
def test_stuck(excuses: Excuses, before: bytes, size: int) -> None:
    """A stream is stuck while its bytes end within a frame. Bytes that start no frame break the stream immediately."""
    excuses.delivered(STREAM, before + REPLY[:size], 1, at(2))

    assert excuses.is_stuck(STREAM)
    assert not excuses.is_stuck(OTHER_STREAM)

    excuses.delivered(STREAM, REPLY[size:], 1, at(3))

    assert not excuses.is_stuck(STREAM)
    assert not excuses.is_broken(STREAM)

    excuses.delivered(STREAM, b"\x7e", 1, at(4))

    assert excuses.is_broken(STREAM)
    assert not excuses.is_broken(OTHER_STREAM)
    assert excuses.newest_at([1]) < at(0)


def test_late_bytes_of_a_fault(excuses: Excuses) -> None:
    """Bytes of a fault that arrive late also excuse operations that were submitted after it struck."""
    excuses.struck(logged(Opcode.GET, faults.WrongLength()), at(1), 1)
    excuses.delivered(STREAM, REPLY, 1, at(2))

    assert at(1) == excuses.newest_at([1])

    excuses.delivered(STREAM, REPLY[:-1], 1, at(3))

    assert at(3) == excuses.newest_at([1])
    assert excuses.newest_at([0]) < at(0)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (lambda nodes: nodes.kill(1), lambda nodes: nodes.revive(1)),
        (lambda nodes: nodes.cut_off(1), lambda nodes: nodes.rejoin(1)),
        (lambda nodes: nodes.cut_off(1, [7]), lambda nodes: nodes.rejoin(1)),
        (lambda nodes: nodes.slow_down(1, 0.1), lambda nodes: nodes.slow_down(1, 0)),
        (lambda nodes: (nodes.hold_config(1), nodes.rebalance()), lambda nodes: nodes.release_config(1)),
    ],
    ids=["dead", "cut off", "cut off from one", "slow", "stale"],
)
def test_out_of_order(
    nodes: FakeNodes, excuses: Excuses, begin: Callable[[FakeNodes], object], end: Callable[[FakeNodes], object]
) -> None:
    """A node that is out of order excuses operations up to the first check after its recovery."""
    before = excuses.look(), excuses.is_out_of_order(1)
    begin(nodes)
    while_it_lasts = excuses.look(), excuses.is_out_of_order(1)
    end(nodes)
    afterwards = excuses.look(), excuses.is_out_of_order(1)

    assert [(set(), False), ({1}, True), ({1}, False)] == [before, while_it_lasts, afterwards]
    assert set() == excuses.look()


def test_node_that_delays_commands_behind_others(nodes: FakeNodes, excuses: Excuses) -> None:
    """A delayed read excuses no other operation, unless a command behind it must be completed in order."""
    client = ready_client(nodes[0])
    nodes[0].faults.next(Opcode.GET, faults.delay(3.0))
    client.send(client.encode_of(Opcode.GET, "ada"))
    alone = excuses.look()
    client.send(client.encode(Opcode.NOOP))
    behind = excuses.look()
    client.wait(3.0)
    at_its_end = excuses.look()
    client.wait(3.1)
    excuses.look()

    assert (set(), {0}, {0}, set()) == (alone, behind, at_its_end, excuses.look())


def test_nodes_that_a_client_may_contact(nodes: FakeNodes, excuses: Excuses) -> None:
    """A client may contact each node that has had the document since its config; a map without one is an excuse."""

    def ask(token: int, known: Revision | None) -> Submission:
        submission = Submission(token, get(), at(1))
        excuses.submitted(submission, ill={2}, known=known)
        return submission

    first = ask(1, nodes.map.version)
    nodes.move(range(128), to=1)
    excuses.look()
    second = ask(2, nodes.map.version)
    nodes.move(range(128), to=None)
    excuses.look()
    nodes.hold_config(0)
    nodes.move(range(128), to=2)
    excuses.look()
    third, unknowing = ask(3, nodes.map.version), ask(4, None)
    nodes.release_config(0)
    late = ask(5, None)

    assert [{0, 1, 2}, {1, 2}, {2}, {0, 1, 2}] == [
        excuses.nodes_asked(submission) for submission in (first, second, third, unknowing)
    ]
    assert [True, True, False, True, False] == [
        excuses.had_no_node(submission) for submission in (first, second, third, unknowing, late)
    ]
