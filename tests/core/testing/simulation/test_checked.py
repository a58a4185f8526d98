"""The checked simulation: clients that break one law each are caught, and the client as it is passes beside them."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import TRAVEL, append, exists, get, remove, upsert
from tests.core.testing.distorted import (
    AnswersFromMemory,
    Distorted,
    acknowledges_at_once,
    always_finds,
    content,
    fails_when_abandoned,
    finds_nothing,
    is_always_ambiguous,
    is_never_ambiguous,
    loses_answers,
    never_closes,
    ready,
    retries_what_fails,
    sends_twice,
    settles_twice,
)
from triclinium_core.kv.actions import (
    CloseStream,
)
from triclinium_core.kv.operation.requests import Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import (
    Fault,
    drop_response,
    garble,
    hang_up_after_applying,
    wrong_length,
)
from triclinium_core.testing.oracle.submissions import Violation

TIMEOUT = 2.5
SERVER_TIME_SIZE = 3
"""Bytes at the beginning of each answer that say how long the server worked."""
DENIED = "was applied, and is said not to have been"


def test_the_client_as_it_is() -> None:
    """It keeps the laws while nothing happens and while everything does."""
    simulation = Distorted()
    simulation.tick()
    value = simulation.store(upsert)
    part = simulation.store(append)
    token = simulation.serve(get())
    simulation.flow_for(60.0)
    simulation.check_frames()

    assert value + part == content(simulation, token)
    assert simulation.is_healthy
    assert 60 == simulation.now == simulation.model.now


def test_noop_that_never_settles() -> None:
    """An operation without a document has a deadline too."""
    simulation = ready(loses_answers)
    token = simulation.submit(Noop(TRAVEL))
    simulation.flow_for(TIMEOUT + 1.0)

    with pytest.raises(Violation, match=f"operation {token} is open after its deadline"):
        simulation.tick()


def test_deadline_of_the_connection_string() -> None:
    """It goes before that of the options, for the client and for who watches it."""
    simulation = ready(connection_string="couchbase://127.0.0.1:11210?kv_timeout=10s")
    simulation.node.faults.next(Opcode.GET, drop_response())
    token = simulation.submit(get())
    simulation.flow_for(TIMEOUT + 1.0)
    simulation.tick()

    assert token not in simulation.settled_at

    simulation.flow_for(10.0)

    assert 10.0 == simulation.settled_at[token]


def test_write_is_sent_twice() -> None:
    """Then it is applied twice."""
    simulation = ready()
    simulation.store(upsert)
    simulation.client.distort = sends_twice
    token = simulation.submit(append(simulation.model.unique_values.fragment()))

    with pytest.raises(Violation, match="APPEND.* b'ada' was applied 2 times, and asked for 1 times"):
        simulation.flow()
    assert token not in simulation.settled_at


def test_write_is_sent_again_after_its_connection_was_lost() -> None:
    """What may have been applied is not retried but fails."""
    simulation = ready(retries_what_fails)
    simulation.node.faults.next(Opcode.SET, hang_up_after_applying())
    simulation.submit(upsert(simulation.model.unique_values.fragment()))

    with pytest.raises(Violation, match="is retried for SOCKET_CLOSED_WHILE_IN_FLIGHT: it may have been applied"):
        simulation.flow()


def test_write_is_acknowledged_and_lost() -> None:
    """Success is told of what was applied."""
    simulation = ready(acknowledges_at_once)

    with pytest.raises(Violation, match="is acknowledged, but the node has not applied it"):
        simulation.submit(upsert(simulation.model.unique_values.fragment()))


def test_stale_read() -> None:
    """A reader is told of the newest write."""
    simulation = ready(AnswersFromMemory())
    simulation.store(upsert)
    simulation.serve(get())
    simulation.store(upsert)

    with pytest.raises(Violation, match=r"found what operation 2 \(upsert 'ada'\) wrote, but that was certainly"):
        simulation.serve(get())


@pytest.mark.parametrize("is_quiet", [False, True])
def test_late_write(is_quiet: bool) -> None:
    """What nobody knows of may still be applied, but not after everything has come to rest."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SET, drop_response())
    simulation.serve(upsert(simulation.model.unique_values.fragment()))
    simulation.flow_for(TIMEOUT)
    if is_quiet:
        simulation.check_frames()
    simulation.store(upsert)
    simulation.client.distort = always_finds(b"<1>")

    if is_quiet:
        with pytest.raises(Violation, match=r"found what operation 2 \(upsert 'ada'\) wrote, but that was certainly"):
            simulation.serve(get())
    else:
        assert b"<1>" == content(simulation, simulation.serve(get()))


def test_lost_document() -> None:
    """What was acknowledged is there; once it was removed it need not be."""
    simulation = ready()
    simulation.store(upsert)
    removal = simulation.serve(remove())
    simulation.serve(get())
    simulation.store(upsert)
    simulation.client.distort = finds_nothing

    assert removal in simulation.results
    with pytest.raises(Violation, match="found no document, but one was certainly there"):
        simulation.serve(get())


def test_forged_answer() -> None:
    """An answer whose length was forged may be read as anything; without that fault it must be what was written."""
    simulation = ready()
    simulation.store(upsert)
    simulation.node.faults.next(Opcode.GET, wrong_length(announced=SERVER_TIME_SIZE + 5))
    token = simulation.serve(get())
    simulation.flow_for(1.0)

    assert b"<" == content(simulation, token)
    assert not simulation.model.open

    simulation.client.distort = always_finds(b"<")

    with pytest.raises(Violation, match="b'<' is not what was written"):
        simulation.serve(get())


def test_settled_twice() -> None:
    """A caller is told once."""
    simulation = ready(settles_twice)

    with pytest.raises(AssertionError, match="was settled twice"):
        simulation.serve(get())


def test_settled_after_it_was_abandoned() -> None:
    """A caller who has left is told nothing."""
    simulation = ready(fails_when_abandoned)
    token = simulation.submit(get())

    with pytest.raises(Violation, match=r"operation 2 \(get 'ada'\) is settled although its caller has left"):
        simulation.abandon(token)


def test_abandoning_what_was_applied() -> None:
    """The client says that nobody knows."""
    simulation = ready()
    simulation.client.denies = True
    token = simulation.submit(upsert(simulation.model.unique_values.fragment()))
    simulation.hand_over(simulation.newest)

    with pytest.raises(Violation, match=DENIED):
        simulation.abandon(token)


def test_timeout_of_what_was_applied() -> None:
    """It is ambiguous."""
    simulation = ready(is_never_ambiguous)
    simulation.node.faults.next(Opcode.SET, drop_response())
    simulation.serve(upsert(simulation.model.unique_values.fragment()))

    with pytest.raises(Violation, match=DENIED):
        simulation.flow_for(TIMEOUT)


def test_timeout_of_a_read() -> None:
    """A read changes nothing, so nothing about it is ambiguous."""
    simulation = ready(is_always_ambiguous)
    simulation.node.faults.next(Opcode.GET_META, drop_response())
    simulation.serve(exists())

    with pytest.raises(Violation, match="changes nothing, and still its timeout is called ambiguous"):
        simulation.flow_for(TIMEOUT)


def test_time_that_stands_still() -> None:
    """A client is due when something is due, and once."""
    simulation = ready()
    for _ in range(1_000):
        simulation.tick()
    simulation.now += 0.1
    simulation.tick()
    simulation.client.stands_still = True

    with pytest.raises(Violation, match=r"at 0\.100000 s the client is due again and again"):
        simulation.flow()


@pytest.mark.parametrize("fault", [garble(), wrong_length()], ids=repr)
def test_reading_on(fault: Fault) -> None:
    """A stream that holds what is no frame is closed."""
    simulation = ready(never_closes)
    simulation.node.faults.next(Opcode.GET, fault)
    simulation.submit(get())

    with pytest.raises(Violation, match=f"the client goes on reading stream {simulation.newest}"):
        simulation.flow()


def test_closing_for_no_reason() -> None:
    """A stream that works stays."""
    simulation = ready()
    stream = simulation.newest
    simulation.client.distort = lambda event, actions: [*actions, CloseStream(stream, "it was Monday")]

    with pytest.raises(Violation, match=f"stream {stream} was ended though nothing was wrong with it: it was Monday"):
        simulation.submit(get())


def test_node_that_hangs_up() -> None:
    """A node hangs up because of a fault, or because of what the client sent."""
    simulation = ready()
    stream = simulation.newest
    simulation.links[stream].is_hung_up = True

    with pytest.raises(Violation, match=f"stream {stream} was ended though .*: the node hung up"):
        simulation.flow()
