"""One connection and its streams: all state transitions, bytes in pieces of any size, and faults of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv.connection.peer import PASSWORD, USERNAME, Answering, plan, take_apart
from tests.core.runtime.kv.simulated import respond
from tests.rows import rows
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request, encode_response, encode_server_request
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import CircuitBreakerOptions
from triclinium_core.runtime.kv.connection import connection_events
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.connection import UNSOLICITED_MAX, Connection
from triclinium_core.runtime.kv.connection.in_flight import Probe, Purpose
from triclinium_core.runtime.kv.connection.states import ConnectionState

ADDRESSES = (Address("a", 1), Address("b", 2), Address("c", 3))
NOOP = Opcode.NOOP
OTHER = PasswordAuthenticator(USERNAME, PASSWORD)


def machine() -> Connection:
    """Return a connection that has not opened a stream."""
    addresses = AddressCycle(ADDRESSES)
    return Connection("travel", addresses, dialect=Dialect(), circuit_breaker=CircuitBreakerOptions(), sending=[])


def opened(connection: Connection | None = None) -> tuple[Connection, list[Frame]]:
    """Open a stream of a connection, by default of a new one; return the connection and the requests that it sent."""
    connection = connection if connection is not None else machine()
    connection.connect()
    connection.stream_opened(plan(), 1.0)
    return connection, ordered(connection)


STEPS = frozenset(
    {
        Opcode.HELLO,
        Opcode.GET_ERROR_MAP,
        Opcode.SASL_LIST_MECHS,
        Opcode.SASL_AUTH,
        Opcode.SASL_STEP,
        Opcode.SELECT_BUCKET,
        Opcode.GET_CLUSTER_CONFIG,
    }
)
"""Opcodes of the requests of a bootstrap."""


def ordered(connection: Connection) -> list[Frame]:
    """Return the requests that the connection has sent since the last call."""
    data = b"".join(connection.in_flight.outgoing)
    connection.in_flight.outgoing.clear()
    return take_apart(data)


def play(
    connection: Connection, pending: list[Frame], peer: Answering, *, until: ConnectionState = ConnectionState.READY
) -> list[connection_events.News]:
    """Let ``peer`` respond until the connection has the state ``until`` or is unusable; return all events."""
    reported: list[connection_events.News] = []
    while connection.state is not until:
        news = connection.bytes_received(peer.answer(pending.pop(0)), 2.0)
        reported += news
        pending += ordered(connection)
        if news and isinstance(news[-1], connection_events.BecameUnusable):
            break
    return reported


def ready(connection: Connection | None = None) -> Connection:
    """Return a connection, by default a new one, after its bootstrap."""
    connection, pending = opened(connection)
    play(connection, pending, Answering())
    assert ConnectionState.READY is connection.state
    return connection


def send(connection: Connection, owner: int | Purpose, opcode: Opcode = NOOP) -> Frame:
    """Send a request, and return the frame that the node receives."""
    data = encode_request(opcode, opaque=connection.in_flight.next_opaque)
    connection.in_flight.send(Probe(owner) if isinstance(owner, int) else owner, data)
    (request,) = ordered(connection)
    return request


def unusable(news: Sequence[connection_events.News]) -> connection_events.BecameUnusable:
    """Return the last event, which must report that the connection is unusable."""
    assert isinstance(news[-1], connection_events.BecameUnusable)
    assert not any(isinstance(item, connection_events.BecameUnusable) for item in news[:-1])
    return news[-1]


# Transitions.


def in_state(state: ConnectionState) -> tuple[Connection, list[Frame]]:
    """Return a connection that has this state, with its unanswered requests."""
    if state is ConnectionState.LOST:
        return machine(), []
    if state is ConnectionState.CONNECTING:
        connection = machine()
        connection.connect()
        return connection, []
    connection, pending = opened()
    play(connection, pending, Answering(), until=state)
    return connection, pending


CALLS: dict[str, tuple[frozenset[ConnectionState], Callable[[Connection], object]]] = {
    "connect": (frozenset({ConnectionState.LOST}), lambda connection: connection.connect()),
    "stream_opened": (frozenset({ConnectionState.CONNECTING}), lambda connection: connection.stream_opened(None, 3.0)),
    "authenticate_again": (
        frozenset({ConnectionState.READY}),
        lambda connection: connection.authenticate_again(OTHER, tls=False, nonce="again"),
    ),
    "lost": (frozenset(ConnectionState), lambda connection: connection.lost("gone")),
}
"""Methods that the client calls, with the states that permit the call."""


@rows("call", CALLS)
@rows("state", ConnectionState)
def test_calls_in_all_states(state: ConnectionState, call: str) -> None:
    """If the state does not permit a call, the call raises; ``lost`` is permitted even for a lost connection."""
    connection, _ = in_state(state)
    allowed, act = CALLS[call]
    if state not in allowed:
        with pytest.raises(KeyError):
            act(connection)
        return
    act(connection)


def test_every_transition_happens() -> None:
    """Responses that arrive one by one or several at a time cause all transitions of a bootstrap."""
    seen: set[tuple[ConnectionState, ConnectionState]] = set()
    for count in range(1, 8):
        connection, pending = opened()
        peer = Answering()
        states = [connection.state]
        while pending and connection.state is not ConnectionState.READY:
            asked, pending = pending[:count], pending[count:]
            connection.bytes_received(b"".join(map(peer.answer, asked)), 2.0)
            pending += ordered(connection)
            states.append(connection.state)
        seen |= {*pairwise(states)}

    assert {
        (ConnectionState.NEGOTIATING, ConnectionState.AUTHENTICATING),
        (ConnectionState.AUTHENTICATING, ConnectionState.AUTHENTICATING),
        (ConnectionState.AUTHENTICATING, ConnectionState.JOINING),
        (ConnectionState.JOINING, ConnectionState.JOINING),
        (ConnectionState.JOINING, ConnectionState.READY),
    } <= seen


# Bootstrap.


def test_events_of_a_bootstrap() -> None:
    """A bootstrap reports the result of SASL, the selected bucket and that the connection is ready, in this order."""
    connection, pending = opened()
    news = play(connection, pending, Answering())

    assert [connection_events.SaslAnswered, connection_events.BucketSelected, connection_events.BecameReady] == [
        type(item) for item in news
    ]
    assert connection_events.SaslAnswered(0) == news[0]
    assert connection_events.BucketSelected("travel", 0) == news[1]
    assert connection_events.BecameReady(losses=0) == news[2]
    assert Dialect(frozenset({HelloFeature.XERROR, HelloFeature.COLLECTIONS, HelloFeature.JSON})) == connection.dialect


def test_bootstrap_that_cannot_begin() -> None:
    """If a bootstrap cannot begin, the connection reports that it is unusable, with the reason."""
    connection = machine()
    connection.connect()
    news = connection.stream_opened(plan(nonce=""), 1.0)

    assert [connection_events.BecameUnusable] == [type(item) for item in news]
    assert "nonce" in unusable(news).text


# Requests, responses and invalid bytes.


@pytest.mark.parametrize(
    ("opaque_off", "opcode"), [(1, NOOP), (0, Opcode.GET), (1, Opcode.GET)], ids=["opaque", "opcode", "both"]
)
def test_answer_to_nothing(opaque_off: int, opcode: Opcode) -> None:
    """The connection ignores a limited number of unsolicited responses, and closes the stream after one more."""
    connection = ready()
    request = send(connection, 7)
    stray = encode_response(opcode, opaque=request.opaque + opaque_off)
    news = connection.bytes_received(stray * UNSOLICITED_MAX + respond(request), 3.0)

    assert [*[connection_events.Strayed] * UNSOLICITED_MAX, connection_events.Answered] == [type(item) for item in news]

    stray = encode_response(opcode, opaque=send(connection, 8).opaque + opaque_off)

    assert [connection_events.Strayed, connection_events.BecameUnusable] == [
        type(item) for item in connection.bytes_received(stray, 4.0)
    ]


def test_the_next_stream_has_its_own_allowance() -> None:
    """The number of unsolicited responses starts at 0 for each stream."""
    connection = ready()
    stray = encode_response(NOOP, opaque=0)
    connection.bytes_received(stray * UNSOLICITED_MAX, 3.0)
    connection.lost("gone")

    assert [connection_events.Strayed] == [type(item) for item in ready(connection).bytes_received(stray, 5.0)]


def test_answered_twice() -> None:
    """The connection uses the first response to a request, and ignores any number of later ones."""
    connection = ready()
    request = send(connection, 7)
    news = connection.bytes_received(respond(request) * (2 + UNSOLICITED_MAX), 3.0)

    assert [connection_events.Answered, *[connection_events.Strayed] * (1 + UNSOLICITED_MAX)] == [
        type(item) for item in news
    ]


def test_a_bootstrap_that_is_answered_twice() -> None:
    """If a node responds twice to a bootstrap, later requests do not get the second responses."""
    connection, pending = opened()
    peer = Answering()
    answers = [peer.answer(request) for request in pending]
    news = [*connection.bytes_received(answers[0] * 2, 2.0)]
    play(connection, pending[1:], peer)
    noop = send(connection, 7)
    news += connection.bytes_received(b"".join(answers) * UNSOLICITED_MAX + respond(noop), 3.0)

    assert [*[connection_events.Strayed] * (1 + UNSOLICITED_MAX * len(answers)), connection_events.Answered] == [
        type(item) for item in news
    ]


def test_bytes_without_a_frame_do_not_count() -> None:
    """Bytes count as a sign of life only with a complete frame: a false length swallows all later responses."""
    connection = ready()
    first, second = send(connection, 7), send(connection, 8)
    swallowing = bytearray(respond(first))
    swallowing[8:12] = (100_000).to_bytes(4, "big")
    connection.bytes_received(respond(second), 5.0)

    assert [] == connection.bytes_received(bytes(swallowing), 9.0)
    assert [] == connection.bytes_received(respond(first), 11.0)
    assert 5.0 == connection.received.at


def test_server_requests_during_bootstrap() -> None:
    """If the node sends requests during a bootstrap, the bootstrap still completes."""
    connection, pending = opened()
    peer = Answering()
    question = encode_server_request(0x01, opaque=pending[0].opaque)
    while connection.state is not ConnectionState.READY:
        connection.bytes_received(question + peer.answer(pending.pop(0)), 2.0)
        pending += ordered(connection)

    assert ConnectionState.READY is connection.state


@rows(
    ("data", "words"),
    [
        (b"\x80" + bytes(23), "not a valid frame"),
        (b"\x08" + bytes(23), "not a valid frame"),
        (b"\x83" + bytes(23), "not a valid frame"),
        (b"\x00", "not a valid frame"),
        (b"\x81\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00" + bytes(12), "do not fit"),
        (b"\x81\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff" + bytes(12), "the maximum is"),
        (b"\x18\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00" + bytes(12), "do not fit"),
    ],
)
@rows("state", [ConnectionState.NEGOTIATING, ConnectionState.JOINING, ConnectionState.READY])
def test_no_frame(state: ConnectionState, data: bytes, words: str) -> None:
    """A wrong magic or an invalid length ends the stream, however the bytes are cut."""
    whole, _ = in_state(state)
    pieces, _ = in_state(state)
    news: Sequence[connection_events.News] = []
    for position in range(len(data)):
        news = pieces.bytes_received(data[position : position + 1], 3.0)
        if news:
            break

    assert words in unusable(whole.bytes_received(data + b"trailing", 3.0)).text
    assert words in unusable(news).text


def test_no_hint_for_a_peer_that_has_spoken() -> None:
    """If a node has sent a frame, a later error gives no hint about another protocol."""
    connection, pending = opened()
    data = Answering().answer(pending[0]) + b"HTTP/1.1 400 Bad Request\r\n"
    split, first = opened()
    split.bytes_received(Answering().answer(first[0]), 2.0)

    assert "HTTP" not in unusable(connection.bytes_received(data, 2.0)).text
    assert "HTTP" not in unusable(split.bytes_received(b"HTTP/1.1 400 Bad Request\r\n", 2.0)).text


def test_hint_again_on_the_next_stream() -> None:
    """An error on a new stream can give a hint again, because another kind of server may be at the next address."""
    connection = ready()
    connection.lost("reset")
    opened(connection)

    assert "HTTP port" in unusable(connection.bytes_received(b"HTTP/1.1 400\r\n", 3.0)).text


# Losing a stream.


def test_a_new_stream_knows_nothing_of_the_old() -> None:
    """When a stream is lost, the connection drops its features, its partial frame and its opaques."""
    connection = ready()
    connection.bytes_received(respond(send(connection, 1))[:-1], 3.0)
    connection.lost("reset")
    connection.connect()

    assert frozenset() == connection.dialect.features
    assert frozenset() == connection.negotiated.features
    assert () == tuple(connection.lost("again"))
    assert connection is ready(connection)


def test_failed_attempts() -> None:
    """The count of failed streams starts again only after a stream that received a response to a request."""
    connection = machine()
    counts = []
    for outcome in ("refused", "opened", "ready", "proven", "refused", "opened", "ready"):
        connection.connect()
        if outcome != "refused":
            connection.stream_opened(plan(), 1.0)
            pending = ordered(connection)
            if outcome != "opened":
                play(connection, pending, Answering())
            if outcome == "proven":
                connection.bytes_received(respond(send(connection, 1)), 2.0)
        connection.lost(outcome)
        counts.append(connection.history.failures)

    assert [1, 2, 3, 0, 1, 2, 3] == counts


# Arbitrary bytes and frames.


def signature(news: Sequence[connection_events.News]) -> list[object]:
    """Return the parts of events that a test can compare."""
    shown: list[object] = []
    for item in news:
        match item:
            case connection_events.Answered(request, frame):
                shown.append((request.owner, frame.status, frame.value))
            case connection_events.BecameUnusable(text):
                shown.append(text)
            case _:
                shown.append(type(item))
    return shown


def script(connection: Connection, pending: list[Frame]) -> bytes:
    """Return valid responses to the pending requests or, if the connection is ready, to five new ones."""
    peer = Answering()
    if connection.state is not ConnectionState.READY:
        return b"".join(map(peer.answer, pending))
    return b"".join(respond(send(connection, token), value=b"v" * token) for token in range(5))


@given(
    state=st.sampled_from([ConnectionState.NEGOTIATING, ConnectionState.READY]),
    cuts=st.lists(st.integers(0, 1_000), max_size=8),
    damage=st.none() | st.tuples(st.integers(0, 1_000), st.binary(min_size=1, max_size=30)),
)
def test_any_cut(state: ConnectionState, cuts: list[int], damage: tuple[int, bytes] | None) -> None:
    """Apart from hints about another protocol, the events are the same for all cuts of the bytes, valid or not."""
    whole, pending = in_state(state)
    pieces, _ = in_state(state)
    data = script(whole, pending)
    if state is ConnectionState.READY:
        script(pieces, [])
    if damage is not None:
        position, nonsense = damage
        position %= len(data)
        data = data[:position] + nonsense + data[position + len(nonsense) :]
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})

    reported: list[connection_events.News] = []
    for start, end in pairwise(bounds):
        reported += pieces.bytes_received(data[start:end], 2.0)
        if reported and isinstance(reported[-1], connection_events.BecameUnusable):
            break

    assert [text for text in signature(whole.bytes_received(data, 2.0)) if not is_hinted(text)] == [
        text for text in signature(reported) if not is_hinted(text)
    ]


def is_hinted(text: object) -> bool:
    """Return whether a text has a hint; a hint depends on the cut, because it needs the first bytes in one piece."""
    return isinstance(text, str) and "no frame" in text


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0x81, 0x18, 0x82]),
            st.sampled_from([*Opcode]),
            st.integers(0, 8),
            st.integers(0, 0x100),
            st.integers(0, 7),
            st.binary(max_size=8),
        ),
        max_size=8,
    ),
    st.sampled_from(
        [ConnectionState.NEGOTIATING, ConnectionState.AUTHENTICATING, ConnectionState.JOINING, ConnectionState.READY]
    ),
)
def test_frames_that_are_well_formed_nonsense(
    frames: list[tuple[int, int, int, int, int, bytes]], state: ConnectionState
) -> None:
    """In any state, frames with arbitrary fields cause no requests other than those of a bootstrap."""
    connection, _ = in_state(state)
    if state is ConnectionState.READY:
        for token in range(4):
            send(connection, token)
    data = b""
    for magic, opcode, opaque, status, datatype, value in frames:
        frame = encode_response(opcode, opaque=opaque, status=status, datatype=datatype, value=value)
        data += bytes([magic]) + frame[1:]
    for position in range(0, len(data), 7):
        news = connection.bytes_received(data[position : position + 7], 2.0)
        if news and isinstance(news[-1], connection_events.BecameUnusable):
            break
        for request in ordered(connection):
            assert request.opcode in STEPS
