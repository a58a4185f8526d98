"""The watched simulation: clients that break one law each are caught, and the client as it is passes beside them."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import TRAVEL, append, exists, get, remove, touch, upsert
from tests.core.testing.distorted import (
    AnswersFromMemory,
    Watched,
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
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    DocumentNotFoundException,
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.actions import (
    CloseStream,
    SendBytes,
)
from triclinium_core.kv.events import LossCause, TimePassed, Token
from triclinium_core.kv.operation.requests import Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import (
    Fault,
    drop_response,
    garble,
    hang_up,
    hang_up_after_applying,
    wrong_length,
)
from triclinium_core.testing.laws.submissions import Violation

TIMEOUT = 2.5
SERVER_TIME_SIZE = 3
"""Bytes at the beginning of each answer that say how long the server worked."""
DENIED = "was applied, and is said not to have been"


def test_the_client_as_it_is() -> None:
    """It keeps the laws while nothing happens and while everything does."""
    simulation = Watched()
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
    token = simulation.submit(append(simulation.model.marks.fragment()))

    with pytest.raises(Violation, match="APPEND.* b'ada' was applied 2 times, and asked for 1 times"):
        simulation.flow()
    assert token not in simulation.settled_at


@pytest.mark.parametrize("is_distorted", [False, True])
def test_write_is_sent_again_after_its_connection_was_lost(is_distorted: bool) -> None:
    """What may have been applied is not retried but fails."""
    simulation = ready(retries_what_fails if is_distorted else None)
    simulation.node.faults.next(Opcode.SET, hang_up_after_applying())
    token = simulation.submit(upsert(simulation.model.marks.fragment()))

    if is_distorted:
        with pytest.raises(Violation, match="is retried for SOCKET_CLOSED_WHILE_IN_FLIGHT: it may have been applied"):
            simulation.flow()
    else:
        simulation.flow()

        assert isinstance(simulation.errors[token], RequestCanceledException)


def test_read_is_sent_twice() -> None:
    """Nobody notices but those who count frames."""
    simulation = ready()
    simulation.check_frames()
    token = simulation.submit(get())
    stream, link = simulation.newest, simulation.links[simulation.newest]
    data = bytes(link.outgoing)
    simulation.hand_over(stream)
    replies = len(link.incoming)
    simulation.client.distort = lambda event, actions: [*actions, SendBytes(stream, data)]
    simulation.feed(TimePassed())
    simulation.client.distort = None
    simulation.hand_over(stream)
    # The second answer gets lost: it would be one to a request that was never made.
    del link.incoming[replies:]
    simulation.flow()

    assert token in simulation.errors
    with pytest.raises(Violation, match="GET b'ada' was sent 3 times; by its results and retries 2 to 2 times"):
        simulation.check_frames()


def test_write_is_acknowledged_and_lost() -> None:
    """Success is told of what was applied."""
    simulation = ready(acknowledges_at_once)

    with pytest.raises(Violation, match="is acknowledged, but the node has not applied it"):
        simulation.submit(upsert(simulation.model.marks.fragment()))


def test_bytes_that_are_no_frame() -> None:
    """They are not sent."""
    simulation = ready()
    stream = simulation.newest
    simulation.client.distort = lambda event, actions: [*actions, SendBytes(stream, b"GET / HTTP/1.1")]

    with pytest.raises(Violation, match=f"stream {stream}: the client sent no frame"):
        simulation.submit(get())


@pytest.mark.parametrize("is_distorted", [False, True])
def test_stale_read(is_distorted: bool) -> None:
    """A reader is told of the newest write."""
    simulation = ready(AnswersFromMemory() if is_distorted else None)
    simulation.store(upsert)
    simulation.serve(get())
    newest = simulation.store(upsert)

    if is_distorted:
        with pytest.raises(Violation, match=r"found what operation 2 \(upsert 'ada'\) wrote, but that was certainly"):
            simulation.serve(get())
    else:
        assert newest == content(simulation, simulation.serve(get()))


@pytest.mark.parametrize("is_quiet", [False, True])
def test_late_write(is_quiet: bool) -> None:
    """What nobody knows of may still be applied, but not after everything has come to rest."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SET, drop_response())
    simulation.serve(upsert(simulation.model.marks.fragment()))
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


def test_answer_that_fits_no_history() -> None:
    """What nobody wrote is not found."""
    simulation = ready()
    simulation.store(upsert)
    simulation.client.distort = always_finds(b"<7>")

    with pytest.raises(Violation, match="b'<7>' has b'<7>', which nobody wrote"):
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


def test_forged_answer_to_a_write() -> None:
    """Nobody knows of it then: the document may have got its expiry."""
    simulation = ready()
    simulation.store(upsert)
    simulation.node.faults.next(Opcode.TOUCH, wrong_length(announced=SERVER_TIME_SIZE))
    touched = simulation.serve(touch(1))
    simulation.flow_for(2.0)
    token = simulation.serve(get())

    assert touched in simulation.results
    assert isinstance(simulation.errors[token], DocumentNotFoundException)


def test_settled_twice() -> None:
    """A caller is told once."""
    simulation = ready(settles_twice)

    with pytest.raises(AssertionError, match="was settled twice"):
        simulation.serve(get())


@pytest.mark.parametrize("is_distorted", [False, True])
def test_settled_after_it_was_abandoned(is_distorted: bool) -> None:
    """A caller who has left is told nothing."""
    simulation = ready(fails_when_abandoned if is_distorted else None)
    token = simulation.submit(get())

    if is_distorted:
        with pytest.raises(Violation, match=r"operation 2 \(get 'ada'\) is settled although its caller has left"):
            simulation.abandon(token)
    else:
        simulation.abandon(token)
        simulation.flow()

        assert token not in simulation.settled_at


@pytest.mark.parametrize("denies", [False, True])
def test_abandoning_what_was_applied(denies: bool) -> None:
    """The client says that nobody knows."""
    simulation = ready()
    simulation.client.denies = denies
    token = simulation.submit(upsert(simulation.model.marks.fragment()))
    simulation.hand_over(simulation.newest)

    if denies:
        with pytest.raises(Violation, match=DENIED):
            simulation.abandon(token)
    else:
        simulation.abandon(token)
        simulation.flow()

        assert token not in simulation.settled_at


def test_abandoning_twice() -> None:
    """The second time says nothing, nor does it of an operation that was settled, or concerns no document."""
    simulation = ready()
    tokens = [simulation.serve(get()), simulation.submit(upsert(simulation.model.marks.fragment()))]
    tokens += [simulation.submit(Noop(get().keyspace)), Token(99)]
    simulation.hand_over(simulation.newest)
    simulation.abandon(tokens[1])
    simulation.client.denies = True
    for token in tokens:
        simulation.abandon(token)
    simulation.flow()

    assert {tokens[0], 1} == simulation.settled_at.keys()


@pytest.mark.parametrize("is_distorted", [False, True])
def test_timeout_of_what_was_applied(is_distorted: bool) -> None:
    """It is ambiguous."""
    simulation = ready(is_never_ambiguous if is_distorted else None)
    simulation.node.faults.next(Opcode.SET, drop_response())
    token = simulation.serve(upsert(simulation.model.marks.fragment()))

    if is_distorted:
        with pytest.raises(Violation, match=DENIED):
            simulation.flow_for(TIMEOUT)
    else:
        simulation.flow_for(TIMEOUT)

        assert isinstance(simulation.errors[token], AmbiguousTimeoutException)


@pytest.mark.parametrize("is_distorted", [False, True])
def test_timeout_of_a_read(is_distorted: bool) -> None:
    """A read changes nothing, so nothing about it is ambiguous."""
    simulation = ready(is_always_ambiguous if is_distorted else None)
    simulation.node.faults.next(Opcode.GET_META, drop_response())
    token = simulation.serve(exists())

    if is_distorted:
        with pytest.raises(Violation, match="changes nothing, and still its timeout is called ambiguous"):
            simulation.flow_for(TIMEOUT)
    else:
        simulation.flow_for(TIMEOUT)

        assert isinstance(simulation.errors[token], UnambiguousTimeoutException)


@pytest.mark.parametrize("is_distorted", [False, True])
def test_operation_that_never_settles(is_distorted: bool) -> None:
    """After its deadline nobody waits any more."""
    simulation = ready(loses_answers if is_distorted else None)
    simulation.flow_for(100.0)
    simulation.node.faults.next(Opcode.GET, drop_response())
    token = simulation.serve(get())
    simulation.tick()
    simulation.flow_for(TIMEOUT)
    simulation.tick()

    if is_distorted:
        with pytest.raises(Violation, match=r"operation 2 \(get 'ada'\) is open after its deadline"):
            simulation.flow_for(60.0)
    else:
        simulation.flow_for(60.0)

        assert 100.0 + TIMEOUT == simulation.settled_at[token]


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
    for distort in (None, never_closes):
        simulation = ready(distort)
        stream = simulation.newest
        simulation.node.faults.next(Opcode.GET, fault)
        simulation.submit(get())

        if distort is None:
            simulation.flow()

            assert stream not in simulation.links
        else:
            with pytest.raises(Violation, match=f"the client goes on reading stream {stream}"):
                simulation.flow()


def test_closing_for_no_reason() -> None:
    """A stream that works stays."""
    simulation = ready()
    stream = simulation.newest
    simulation.client.distort = lambda event, actions: [*actions, CloseStream(stream, "it was Monday")]

    with pytest.raises(Violation, match=f"stream {stream} was ended though nothing was wrong with it: it was Monday"):
        simulation.submit(get())


@pytest.mark.parametrize("is_struck", [True, False])
def test_node_that_hangs_up(is_struck: bool) -> None:
    """A node hangs up because of a fault, or because of what the client sent."""
    simulation = ready()
    stream = simulation.newest
    if is_struck:
        simulation.node.faults.next(Opcode.GET, hang_up())
        simulation.serve(get())

        assert stream not in simulation.links
    else:
        simulation.links[stream].is_hung_up = True
        with pytest.raises(Violation, match=f"stream {stream} was ended though .*: the node hung up"):
            simulation.flow()


def test_connection_that_is_reset() -> None:
    """That is the network's doing, and nobody's fault."""
    simulation = ready()
    stream = simulation.newest
    simulation.lose(stream, LossCause.RESET)
    simulation.flow_for(1.0)

    assert stream not in simulation.links
    assert simulation.is_healthy
