"""Connections of one client: how they open, stay alive, are lost and reconnect."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import ONE, TWO, configs_asked, noops, refused
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action, OperationSubmitted
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Noop
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.runtime.kv.pool.connections import RECONNECT_BACKOFF
from triclinium_core.testing.fakes.faults import drop_response, hang_up, not_my_vbucket, status


def of_type(kind: type, actions: list[Action]) -> list[Action]:
    """Return the actions of one type."""
    return [action for action in actions if isinstance(action, kind)]


# Opening.


@pytest.mark.parametrize(
    ("connection_string", "expected"),
    [
        ("couchbase://h:11210", neutral.OpenStream(ONE, "h", 11210, False)),
        ("couchbases://h,i", neutral.OpenStream(ONE, "h", 11207, True)),
        ("couchbases://h?enable_dns_srv=false", neutral.OpenStream(ONE, "h", 11207, True)),
        ("memcached://h", neutral.OpenStream(ONE, "h", 11211, False)),
        ("couchbase://a:5,b", neutral.OpenStream(ONE, "a", 5, False)),
        ("couchbase://[::1]", neutral.OpenStream(ONE, "::1", 11210, False)),
    ],
)
def test_first_stream(connection_string: str, expected: neutral.OpenStream) -> None:
    """The first TimePassed event opens one stream without a bucket; later ones open none."""
    client = simulated.machine(connection_string)

    assert [expected] == list(client.handle(neutral.TimePassed(), 5.0))
    assert [] == list(client.handle(neutral.TimePassed(), 5.0))


def test_a_stream_for_each_bucket() -> None:
    """The first operation on a bucket opens a stream, and later operations on the bucket use it."""
    client = simulated.machine()
    opened = [
        len(
            of_type(
                neutral.OpenStream,
                [*client.handle(OperationSubmitted(neutral.Token(token), Get(Keyspace(bucket), "k")), 0.0)],
            )
        )
        for token, bucket in enumerate(["a", "b", "a", "b", "c"])
    ]

    assert [1, 1, 0, 0, 1] == opened
    assert ["a", "b", "c"] == [each.bucket for each in client.statistics().connections]


def test_streams_are_never_used_again() -> None:
    """Each attempt to connect has a new stream number."""
    simulation = refused()
    simulation.live(5.0)
    numbers = [action.stream for _, action in simulation.opened_at]

    assert [*range(1, len(numbers) + 1)] == numbers
    assert len(numbers) > 5


def test_seeds_take_turns() -> None:
    """The client tries the seeds one after the other, and then starts again with the first."""
    simulation = refused(options=simulated.client_options("couchbase://a,b:5,c"))
    simulation.live(2.0)

    assert [("a", 11210), ("b", 5), ("c", 11210), ("a", 11210), ("b", 5)] == [
        (action.host, action.port) for _, action in simulation.opened_at
    ][:5]


def test_connection_id() -> None:
    """The connection id has 16 hexadecimal digits of the client, a slash and 16 of the stream (SDK-RFC 0035)."""
    simulation = simulated.ready()
    ids = [json.loads(requests[0].key)["i"] for requests in simulation.requests.values()]
    clients, streams = zip(*(text.split("/") for text in ids), strict=True)

    assert {33} == {len(text) for text in ids}
    assert (1, 2) == (len(set(clients)), len(set(streams)))
    assert all(int(part, 16) >= 0 for part in (*clients, *streams))


def test_options_in_hello() -> None:
    """HELLO contains the program's user agent; with ``compression=False``, no compression is negotiated."""
    simulation = simulated.ready(options=simulated.client_options(user_agent="mine/2.0", compression=False))
    by_default = set(simulated.ready().connection().features)

    assert "mine/2.0" == json.loads(simulation.requests[ONE][0].key)["a"]
    assert {"SNAPPY", "SNAPPY_EVERYWHERE"} == by_default - set(simulation.connection().features)


# Reconnecting.


def delays(simulation: simulated.Recorded) -> list[float]:
    """Return the seconds between the attempts to open the connection without a bucket."""
    return [round(later - earlier, 9) for earlier, later in pairwise(at for at, _ in simulation.opened_at)]


@pytest.mark.parametrize(("number", "share"), [(0.0, 1.0), (0.5, 0.9), (1.0 - 2**-53, 0.8)])
def test_backoff_between_attempts(number: float, share: float) -> None:
    """The backoff doubles up to one second; a random share is subtracted so that clients do not reconnect together."""
    simulation = refused(rng=ConstantRandom(number))
    simulation.live(6.0)
    doubling = [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]

    assert [pytest.approx(seconds * share) for seconds in doubling][:8] == delays(simulation)[:8]
    assert (0.01, 1.0, 2.0, 0.2) == (
        RECONNECT_BACKOFF.first,
        RECONNECT_BACKOFF.most,
        RECONNECT_BACKOFF.factor,
        RECONNECT_BACKOFF.jitter,
    )


def test_backoff_grows_for_streams_that_only_become_ready() -> None:
    """If a node closes each stream after its bootstrap, the backoff also grows."""
    simulation = simulated.Recorded()
    simulation.flow()
    for _ in range(8):
        simulation.lose(simulation.newest)
        simulation.live(1.0)

    assert [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0] == [
        pytest.approx((at - round(at - 0.45)) / 0.9) for at, _ in simulation.opened_at[1:8]
    ]


# Connect timeout.

BURST = (Opcode.HELLO, Opcode.GET_ERROR_MAP, Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH)


@pytest.mark.parametrize(
    ("opcode", "state"),
    [
        (None, "connecting"),
        (Opcode.HELLO, "negotiating"),
        (Opcode.SASL_AUTH, "authenticating"),
        (Opcode.SELECT_BUCKET, "joining"),
        (Opcode.GET_CLUSTER_CONFIG, "joining"),
    ],
)
def test_connect_deadline(opcode: Opcode | None, state: str) -> None:
    """If a bootstrap takes longer than the connect timeout, the client closes the stream and opens another."""
    simulation = simulated.Recorded()
    simulation.flow()
    token = simulation.submit(simulated.get())
    if opcode is None:
        simulation.advance(11.0)
    else:
        lost = BURST if opcode is Opcode.HELLO else (opcode,)
        for silent in lost:
            simulation.node.faults.next(silent, drop_response())
        simulation.live(11.0)
    closing = simulation.closings()[0]

    assert f"still {state} after 10 s" in closing
    assert {TWO} == {action.stream for action in simulation.actions if isinstance(action, neutral.CloseStream)}
    assert [10.0] == [round(at, 1) for at, _ in simulation.opened_at[2:3]]
    assert errors.UnambiguousTimeoutException is type(simulation.errors[token])
    assert ("HELLO" in closing) == (opcode is Opcode.HELLO)


def test_connect_deadline_of_the_options() -> None:
    """The connect timeout in the connection string overrides the program's timeout."""
    simulation = simulated.Recorded(
        options=simulated.client_options("couchbase://h?connect_timeout=3s", timeouts=TimeoutOptions(connect=9))
    )
    simulation.advance(4.0)

    assert ["still connecting after 3 s"] == simulation.closings()


# Ignored events.


def test_events_of_a_closed_stream_are_ignored() -> None:
    """After the client has closed a stream, events of the stream change nothing."""
    simulation = simulated.Recorded()
    simulation.advance(10.0)
    late = [
        simulation.machine.handle(event, simulation.now)
        for event in (
            neutral.StreamOpened(ONE, "nonce"),
            neutral.BytesReceived(ONE, b"nonsense"),
            neutral.StreamLost(ONE, neutral.LossCause.RESET),
        )
    ]

    assert [[], [], []] == [list(actions) for actions in late]


def test_opened_twice_and_bytes_before_opening() -> None:
    """The client ignores bytes of a stream that is not open yet, and a second event that opens it."""
    simulation = simulated.Recorded()
    simulation.tick()
    early = list(simulation.machine.handle(neutral.BytesReceived(ONE, b"nonsense"), 0.0))
    simulation.open(ONE)
    again = list(simulation.machine.handle(neutral.StreamOpened(ONE, "other"), 0.0))
    simulation.flow()

    assert [[], []] == [early, again]
    assert "READY" == simulation.connection(None).state


# Keep-alive.


def test_keep_alive() -> None:
    """An idle connection sends one NOOP per interval."""
    simulation = simulated.Recorded()
    simulation.flow()
    counts = []
    for _ in range(4):
        simulation.live(20.0)
        counts.append(noops(simulation, ONE))

    assert [1, 2, 3, 4] == counts
    assert [] == simulation.closings()


def test_silent_connection_is_closed() -> None:
    """If a NOOP gets no response in time, the client closes the connection and opens it again."""
    simulation = simulated.ready()
    simulation.node.faults.always(Opcode.NOOP, drop_response())
    simulation.live(22.4)
    before = simulation.closings()
    simulation.node.faults.clear()
    simulation.live(1.0)

    assert [] == before
    assert [True] * 2 == ["NOOP within 2.5 s" in reason for reason in simulation.closings()]
    assert "READY" == simulation.connection().state
    assert "ready" in simulation.log[-1]


def test_keep_alive_of_the_options() -> None:
    """The options set the keep-alive interval and its timeout; with an infinite interval no NOOP is sent."""
    eager = simulated.Recorded(
        options=simulated.client_options(timeouts=TimeoutOptions(keep_alive_interval=5, keep_alive=1))
    )
    lazy = simulated.Recorded(
        options=simulated.client_options(timeouts=TimeoutOptions(keep_alive_interval=float("inf")))
    )
    for simulation in (eager, lazy):
        simulation.flow()
        simulation.node.faults.always(Opcode.NOOP, drop_response())
        simulation.live(6.5)

    assert [True] == ["NOOP within 1 s" in reason for reason in eager.closings()]
    assert ([], float("inf")) == (lazy.closings(), lazy.machine.wakeup)


def test_sign_of_life_beside_the_end() -> None:
    """If a response closes the stream, a NOOP response after it does not start a keep-alive timer."""
    simulation = simulated.ready(options=simulated.client_options(timeouts=TimeoutOptions(connect=600)))
    simulation.node.faults.always(Opcode.NOOP, drop_response())
    simulation.live(20.0)
    noop = simulation.requests[TWO][-1]
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, Status.AUTH_STALE) + simulated.respond(noop), TWO)
    simulation.advance(0.1)
    stream = simulation.newest
    # The simulation regards the next stream as open, but the client never receives ``StreamOpened``.
    simulation.links[stream].is_open = True
    simulation.live(60.0)

    assert Opcode.NOOP == noop.opcode
    assert "the status invalidates the connection" == simulation.closings()[0]
    assert ("CONNECTING", []) == (simulation.connection().state, simulation.requests[stream])


# Texts and reports.


def test_tls_failure() -> None:
    """With the default strategy, operations fail with the TLS library's text until TLS succeeds again (decision C6)."""
    simulation = simulated.Recorded(options=simulated.client_options("couchbases://127.0.0.1:11207"))
    token = simulation.submit(simulated.get())
    simulation.feed(neutral.StreamLost(ONE, neutral.LossCause.TLS, "certificate has expired"))
    error = simulation.error(errors.TlsException, token)

    assert "TLS_ERROR" == error.context.refused_reason
    assert "127.0.0.1:11207: TLS failed (certificate has expired)" == error.context.last_dispatch_error

    simulation.links.clear()
    simulation.live(0.1)
    again = simulation.submit(simulated.get())
    simulation.run()

    assert "DocumentNotFoundException" == type(simulation.errors[again]).__name__


def test_no_hint_once_it_was_ready() -> None:
    """If a node was ready before and restarts, the log does not mention memcached."""
    simulation = simulated.ready()
    simulation.lose(TWO)
    simulation.node.faults.always(Opcode.HELLO, hang_up())
    simulation.live(1.0)

    assert "closed by the server" in simulation.log[-1]
    assert not any("memcached" in line for line in simulation.log)


def test_error_map_problems_are_reported_once() -> None:
    """If an error map is corrupt or missing, the connection becomes ready, and this is reported once (decision C18)."""
    corrupt, none = simulated.Recorded(), simulated.Recorded(error_map=None)
    corrupt.node.faults.always(Opcode.GET_ERROR_MAP, status(Status.SUCCESS, b"corrupt"))
    for simulation in (corrupt, none):
        simulation.flow()
    corrupt.finish(Noop(simulated.TRAVEL))

    assert 2 == len(corrupt.links)
    assert ["the node's error map is corrupt", "ready", "ready"] == [
        line.split(" ", 2)[2].partition(":")[0] for line in corrupt.log
    ]
    assert "the node has no error map: UNKNOWN_COMMAND [0x81]" in none.log[0]
    assert (None, None) == (corrupt.connection(None).error_map_version, none.connection(None).error_map_version)


# Closing and reopening.


def test_renegotiation_without_xerror() -> None:
    """If the client is set to renegotiate, a corrupt error map closes the stream; the next omits XERROR (RFC 0013)."""
    simulation = simulated.Recorded(options=simulated.client_options(renegotiate_on_corrupt_error_map=True))
    simulation.node.faults.always(Opcode.GET_ERROR_MAP, status(Status.SUCCESS, b"corrupt"))
    simulation.flow()
    simulation.live(1.0)

    assert 1 == len(simulation.closings())
    assert "READY" == simulation.connection(None).state
    assert "XERROR" not in simulation.connection(None).features
    assert Opcode.GET_ERROR_MAP not in {request.opcode for request in simulation.requests[TWO]}


def test_a_connection_without_configs_is_closed() -> None:
    """If a connection responds to operations but to no config request, the client closes it after about 10 seconds."""
    simulation = simulated.ready()
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, drop_response())
    simulation.node.faults.always(Opcode.GET, not_my_vbucket(with_config=False))
    tokens = []
    while not simulation.closings() and simulation.now < 30.0:
        tokens.append(simulation.submit(simulated.get()))
        simulation.live(1.0)

    assert ["10 s"] == [reason[-4:] for reason in simulation.closings()]
    assert 10.0 <= simulation.now <= 14.0

    simulation.node.faults.clear()

    assert simulation.finish(simulated.get()) in simulation.settled_at


def test_a_busy_client_keeps_an_unread_connection() -> None:
    """If the config response may be among unread bytes, a busy client does not close the connection for its absence."""
    simulation = simulated.ready()
    _, first = simulation.submit_in_flight(simulated.get())
    _, second = simulation.submit_in_flight(simulated.get("other"))
    simulation.inject(simulated.respond(first, Status.NOT_MY_VBUCKET))
    asked = configs_asked(simulation)
    simulation.swallow(TWO)
    simulation.now += SECONDS_MAX + 1
    simulation.inject(simulated.respond(second, Status.NOT_MY_VBUCKET))

    assert 2 == asked
    assert [] == simulation.closings()


def test_a_full_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If abandoned requests fill a connection and get no response, the client closes it after 10 seconds."""
    monkeypatch.setattr("triclinium_core.runtime.kv.connection.in_flight.REQUESTS_MAX", 20)
    simulation = simulated.ready()
    simulation.node.faults.always(Opcode.GET, drop_response())
    for _ in range(20):
        simulation.abandon(simulation.submit(simulated.get()))
    simulation.flow()
    refused = simulation.submit(simulated.upsert())
    simulation.live(11.0)
    late = simulation.submit(simulated.upsert())
    simulation.live(1.0)

    assert "UnambiguousTimeoutException" == type(simulation.errors[refused]).__name__
    assert ["has left 20 requests unanswered for 10 s"] == simulation.closings()
    assert late in simulation.results


@pytest.mark.parametrize("opcode", [Opcode.HELLO, Opcode.SASL_AUTH])
def test_only_a_denied_bucket_is_not_reopened(opcode: Opcode) -> None:
    """If the node responds with status 0x24 to HELLO or SASL_AUTH, the client opens the connection again."""
    simulation = simulated.Recorded()
    simulation.node.faults.next(opcode, status(Status.NO_ACCESS))
    simulation.flow()
    simulation.live(5.0)

    assert ConnectionState.READY.name == simulation.connection(None).state


# Several responses in one chunk of bytes.


def two_in_flight() -> tuple[simulated.Recorded, list[neutral.Token], list[Frame]]:
    """Return a simulation with two reads in flight, their tokens and their requests."""
    simulation = simulated.ready()
    pairs = [simulation.submit_in_flight(simulated.get(key)) for key in "ab"]
    return simulation, [token for token, _ in pairs], [request for _, request in pairs]


def test_answers_behind_one_that_closes() -> None:
    """A response after one that closes the stream still counts; if both close the stream, it is closed once."""
    simulation, tokens, requests = two_in_flight()
    simulation.inject(simulated.respond(requests[0], Status.AUTH_STALE) + simulated.found(requests[1]))
    other, more, others = two_in_flight()
    other.inject(b"".join(simulated.respond(request, Status.AUTH_STALE) for request in others))

    assert (True, True) == (tokens[0] in simulation.errors, tokens[1] in simulation.results)
    assert (set(more), 1) == (set(other.errors), len(other.closings()))


def test_wrong_opcode_to_a_write() -> None:
    """A response with another opcode does not complete a write; the right response does, or the write times out."""
    simulation = simulated.ready()
    (first, request), (second, other) = (simulation.submit_in_flight(simulated.upsert(key)) for key in "ab")
    simulation.inject(b"".join(encode_response(Opcode.GET, opaque=each.opaque) for each in (request, other)))
    simulation.inject(simulated.respond(request))
    simulation.live(simulated.TIMEOUT)

    assert first in simulation.results
    simulation.error(errors.AmbiguousTimeoutException, second)
    assert (2, []) == (simulation.machine.statistics().orphans, simulation.closings())
