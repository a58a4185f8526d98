"""New credentials of an open client: the exchanges on its connections, and their results."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv.pool.credentials import CERTIFICATE, NEXT_TOKEN, ONE, SAME, TOKEN, change
from tests.core.runtime.kv.simulated import HOTELS, Recorded, client_options, get, ready, upsert
from tests.core.runtime.kv.test_cluster import MUTE
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action
from triclinium_core.kv.operation.inquiries import WaitUntilReady
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    TimeoutOptions,
)
from triclinium_core.retry import couchbase
from triclinium_core.runtime.kv.collection_ids import QUESTION_SECONDS
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.testing import delay, drop_response, status

SASL = (Opcode.SASL_AUTH, Opcode.SASL_STEP)


def opcodes(actions: list[Action], simulation: Recorded) -> list[int]:
    """Return the opcode of the last request of each stream on which the actions send bytes."""
    return [
        simulation.requests[action.stream][-1].opcode for action in actions if isinstance(action, neutral.SendBytes)
    ]


def states(simulation: Recorded) -> list[str]:
    """Return the states of the client's connections."""
    return [connection.state for connection in simulation.machine.statistics().connections]


# New credentials.


def test_ready_connections_authenticate_again() -> None:
    """Ready connections authenticate again on their streams; nonces differ and do not contain the event's nonce."""
    simulation = ready()
    before = len(simulation.commands(*SASL))
    actions = change(simulation, SAME)

    assert [Opcode.SASL_AUTH] * 2 == opcodes(actions, simulation)
    assert [ConnectionState.AUTHENTICATING.name] * 2 == states(simulation)
    nonces = [requests[-1].value for requests in simulation.requests.values()]
    assert 2 == len(set(nonces))
    assert not any(b"a-nonce-of-the-user-" in nonce for nonce in nonces)

    simulation.flow()

    assert [ConnectionState.READY.name] * 2 == states(simulation)
    assert before + 4 == len(simulation.commands(*SASL))
    assert 2 == len(simulation.opened_at)
    assert 2 == sum(text.endswith(" authenticated again") for text in simulation.log)


def test_no_two_exchanges_share_a_nonce() -> None:
    """Even if all events have the same entropy, no two exchanges have the same nonce, on any stream."""
    simulation = ready()
    for _ in range(3):
        change(simulation, SAME, nonce="nonce")
        simulation.flow()
    simulation.lose(simulation.newest)
    simulation.live(5.0)
    nonces = [
        request.value.partition(b",r=")[2]
        for requests in simulation.requests.values()
        for request in requests
        if request.opcode == Opcode.SASL_AUTH
    ]

    assert len(nonces) >= 9
    assert len(nonces) == len(set(nonces))


def test_new_operations_wait_for_the_exchange() -> None:
    """During an exchange, requests in flight get their responses and new operations wait; all complete."""
    simulation = ready()
    stream = simulation.newest
    simulation.node.faults.next(Opcode.GET, delay(0.5))
    before = simulation.submit(get("before"))
    simulation.flow()
    change(simulation, SAME)
    meanwhile = [simulation.submit(upsert(f"k{number}")) for number in range(3)]
    sent = [request.opcode for request in simulation.requests[stream]]

    assert [Opcode.GET, Opcode.SASL_AUTH] == sent[-2:]

    simulation.run()

    sent = [request.opcode for request in simulation.requests[stream]]
    assert [Opcode.SASL_AUTH, Opcode.SASL_STEP, Opcode.SELECT_BUCKET, *[Opcode.SET] * 3] == sent[-6:]
    assert set(meanwhile) <= set(simulation.results)
    assert before in simulation.settled_at
    assert [] == simulation.retries


def test_a_waiting_operation_can_be_abandoned() -> None:
    """If a waiting operation is abandoned during an exchange, the client does not send it afterwards."""
    simulation = ready()
    change(simulation, SAME)
    token = simulation.submit(upsert())
    simulation.abandon(token)
    simulation.flow()

    assert [] == simulation.commands(Opcode.SET)
    assert not simulation.machine.is_ambiguous(token)


def test_the_next_token() -> None:
    """A new token replaces an old one with one message and one response."""
    simulation = ready(options=client_options(authenticator=TOKEN), tokens=(TOKEN.token, NEXT_TOKEN.token))
    change(simulation, NEXT_TOKEN)
    simulation.result(upsert())
    (_, last) = simulation.commands(Opcode.SASL_AUTH)[-2:]

    assert b"OAUTHBEARER" == last.key
    assert b"n,,\x01auth=Bearer d.e.f\x01\x01" in [request.value for request in simulation.requests[simulation.newest]]
    assert "OAUTHBEARER" == simulation.connection().sasl_mechanism


def test_a_mechanism_that_is_new_on_the_node() -> None:
    """If the node accepts tokens only after the connection was opened, the connection can still change to a token."""
    simulation = ready()
    simulation.nodes.set_credentials(tokens=[TOKEN.token])
    change(simulation, TOKEN)
    simulation.result(upsert())

    assert [] == simulation.closings()
    assert "OAUTHBEARER" == simulation.connection().sasl_mechanism


def test_a_mechanism_that_the_node_lacks() -> None:
    """If the node does not offer the mechanism, the connections close after one try, and the error has both lists."""
    simulation = ready()
    change(simulation, TOKEN)
    simulation.flow()

    assert 2 == len(simulation.closings())
    assert all("offers SCRAM-SHA512" in reason and "OAUTHBEARER" in reason for reason in simulation.closings())


@pytest.mark.parametrize("code", [couchbase.Status.AUTH_ERROR, couchbase.Status.AUTH_STALE])
@pytest.mark.parametrize("opcode", SASL)
def test_a_refusal_is_terminal(opcode: Opcode, code: couchbase.Status) -> None:
    """If the node refuses new credentials, connections close and operations fail immediately (RFC 0049; C6)."""
    simulation = ready()
    simulation.node.faults.always(opcode, status(code))
    change(simulation, SAME)
    error = simulation.failure(errors.AuthenticationFailureException, upsert())

    assert ("AUTHENTICATION_ERROR", 0.0) == (error.context.refused_reason, simulation.now)
    assert "refused the credentials of 'Administrator'" in str(error)
    assert ("expired" in str(error)) == (code is couchbase.Status.AUTH_STALE)
    assert [ConnectionState.LOST.name] * 2 == states(simulation)


def test_a_bucket_without_access_for_the_new_user() -> None:
    """The connection selects its bucket again with new credentials; a refusal fails operations on the bucket."""
    simulation = ready()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, status(couchbase.Status.NO_ACCESS))
    change(simulation, SAME)
    error = simulation.failure(errors.BucketAccessException, upsert())

    assert ("BUCKET_ACCESS_ERROR", 0.0) == (error.context.refused_reason, simulation.now)
    assert ["bucket 'travel' does not exist, or user 'Administrator' may not open it"] == simulation.closings()
    assert [ConnectionState.READY.name, ConnectionState.LOST.name] == states(simulation)


def test_a_bucket_without_access_for_the_replaced_user() -> None:
    """If credentials are replaced before their bucket refusal arrives, the newest are tried on the same stream."""
    simulation = ready(tokens=(TOKEN.token,))
    simulation.node.faults.next(Opcode.SELECT_BUCKET, status(couchbase.Status.NO_ACCESS))
    change(simulation, SAME)
    token = simulation.submit(upsert())
    while Opcode.SELECT_BUCKET != simulation.requests[simulation.newest][-1].opcode:
        simulation.hand_over(simulation.newest)
        simulation.deliver(simulation.newest)
    change(simulation, TOKEN)
    simulation.flow()

    assert token in simulation.results
    assert [] == simulation.closings()
    assert "OAUTHBEARER" == simulation.connection().sasl_mechanism


def test_credentials_replaced_before_the_bucket_refusal() -> None:
    """If credentials are replaced during a bootstrap, a refusal of the bucket fails no operation and is retried."""
    simulation = Recorded(tokens=(TOKEN.token,))
    simulation.node.faults.next(Opcode.SELECT_BUCKET, status(couchbase.Status.NO_ACCESS))
    simulation.flow()
    token = simulation.submit(upsert(), retry_strategy=couchbase.FastFailOnTerminalErrorRetryStrategy())
    stream = simulation.newest
    while all(Opcode.SELECT_BUCKET != request.opcode for request in simulation.requests[stream]):
        simulation.open(stream) if not simulation.links[stream].is_open else simulation.hand_over(stream)
        simulation.deliver(stream)
    change(simulation, TOKEN)
    simulation.run()

    assert token in simulation.results


def test_other_refusals_are_not_terminal() -> None:
    """If an exchange fails for another reason, the client opens a new stream with the new credentials."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SASL_AUTH, status(couchbase.Status.TEMPORARY_FAILURE), times=2)
    change(simulation, SAME)
    simulation.result(upsert())

    assert all("failed: TEMPORARY_FAILURE [0x86]" in reason for reason in simulation.closings())
    assert 4 == len(simulation.opened_at)


def test_in_flight_on_a_refused_connection() -> None:
    """If a refusal closes the connection, a write in flight is ambiguous, as on any closed stream (decision C24)."""
    simulation = ready()
    token, _ = simulation.submit_in_flight(upsert())
    simulation.node.faults.always(Opcode.SASL_AUTH, status(couchbase.Status.AUTH_ERROR))
    change(simulation, SAME)
    simulation.flow()
    error = simulation.error(errors.RequestCanceledException, token)

    assert "SOCKET_CLOSED_WHILE_IN_FLIGHT" == error.context.refused_reason


@pytest.mark.parametrize("code", [couchbase.Status.NO_BUCKET, couchbase.Status.AUTH_STALE])
def test_a_response_that_closes_during_an_exchange(code: couchbase.Status) -> None:
    """If a response closes the connection, the client sends nothing more on it, even after a challenge."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET, status(code))
    token = simulation.submit(get())
    stream = simulation.newest
    change(simulation, SAME)
    simulation.hand_over(stream)
    simulation.deliver(stream)
    left = [action for action in simulation.actions if isinstance(action, neutral.SendBytes | neutral.CloseStream)]

    assert neutral.CloseStream is type(left[-1])
    simulation.live(1.0)
    assert token in simulation.settled_at
    assert [ConnectionState.READY.name] * 2 == states(simulation)


def test_an_exchange_that_is_not_answered() -> None:
    """If the node does not respond to an exchange, the connection is closed after the connect timeout."""
    simulation = ready(options=client_options(timeouts=TimeoutOptions(connect=1.0)))
    simulation.node.faults.next(Opcode.SASL_AUTH, drop_response(), times=2)
    change(simulation, SAME)
    simulation.live(1.0)

    assert ["still authenticating after 1 s"] * 2 == simulation.closings()

    simulation.result(upsert())


def test_the_time_is_that_of_one_exchange() -> None:
    """After an exchange has completed, its timer does not close the connection."""
    simulation = ready(options=client_options(timeouts=TimeoutOptions(connect=1.0, keep_alive_interval=math.inf)))
    change(simulation, SAME)
    simulation.live(10.0)

    assert [] == simulation.closings()


def test_a_nonsense_proof_is_not_trusted() -> None:
    """If the server sends no valid proof, the client closes the connection."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SASL_STEP, status(couchbase.Status.SUCCESS), times=2)
    change(simulation, SAME)
    simulation.flow()

    assert all("SCRAM-SHA512" in reason for reason in simulation.closings())
    assert 2 == len(simulation.closings())


@given(
    opcode=st.sampled_from(SASL),
    code=st.sampled_from([*couchbase.Status]) | st.integers(0, 0xFFFF),
    body=st.binary(max_size=40) | st.just(b"r=a-nonce,s=c2FsdA==,i=2"),
    authenticator=st.sampled_from((SAME, TOKEN)),
)
def test_any_answer(opcode: Opcode, code: int, body: bytes, authenticator: Authenticator) -> None:
    """After any response to new credentials, nothing raises, and the client recovers."""
    simulation = ready(tokens=(TOKEN.token,))
    simulation.node.faults.next(opcode, status(code, body=body), times=2)
    change(simulation, authenticator)
    simulation.flow()
    simulation.node.faults.clear()
    simulation.live(5.0)

    simulation.result(upsert())
    assert [ConnectionState.READY.name] * 2 == states(simulation)


def test_answers_in_pieces() -> None:
    """An exchange succeeds even if its bytes arrive one by one in both directions."""
    simulation = ready()
    token = simulation.submit(get())
    change(simulation, SAME)
    while any(link.outgoing or link.incoming for link in simulation.links.values()):
        for stream in [*simulation.links]:
            simulation.hand_over(stream, 1)
            simulation.deliver(stream, 1)

    assert token in simulation.settled_at
    assert [ConnectionState.READY.name] * 2 == states(simulation)


def test_a_certificate_is_for_new_connections() -> None:
    """Only new connections use a new certificate; the open ones continue unchanged."""
    options = client_options("couchbases://127.0.0.1:11207", authenticator=CERTIFICATE)
    simulation = Recorded(options=options, tls_port=11207)
    simulation.tick()
    simulation.open(ONE)
    simulation.node.certificate_shown(ONE, ["ada"])
    simulation.flow()
    actions = change(simulation, CertificateAuthenticator("next.pem"))

    assert [] == actions
    assert [] == simulation.commands(Opcode.SASL_LIST_MECHS, *SASL)
    assert [ConnectionState.READY.name] == states(simulation)


def test_a_new_certificate_reconnects_immediately() -> None:
    """If TLS refused the old certificate, a new one makes the client reconnect immediately."""
    options = client_options("couchbases://127.0.0.1:11207", authenticator=CERTIFICATE)
    simulation = Recorded(options=options, tls_port=11207)
    simulation.tick()
    simulation.lose(ONE, neutral.LossCause.TLS)
    actions = change(simulation, CertificateAuthenticator("next.pem"))

    assert [neutral.OpenStream(neutral.StreamId(2), "127.0.0.1", 11207, True)] == actions


# Configs, NOOPs, circuit breakers and id requests around an exchange.


def test_a_config_that_is_announced_meanwhile() -> None:
    """If the node announces a config during an exchange, the client requests the config afterwards."""
    simulation = ready()
    change(simulation, SAME)
    simulation.nodes.set_config_revision(9)
    simulation.tick()
    simulation.deliver(simulation.newest)
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    asked = [request.opcode for request in simulation.requests[simulation.newest]]

    assert Opcode.SASL_AUTH == asked[-1]

    simulation.flow()

    assert (1, 9) == simulation.connection().config_revision
    assert before < len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))


@pytest.mark.parametrize(
    ("config_after", "between", "before", "exchange"),
    [
        pytest.param(0.3, 0.1, 0.1, 0.5, id="an older config arrives during the exchange"),
        pytest.param(0.02, 0.01, 0.03, 0.05, id="the exchange prevents the request"),
    ],
)
def test_an_announced_config_not_yet_received(
    config_after: float, between: float, before: float, exchange: float
) -> None:
    """If a config that is announced before an exchange does not arrive by its end, the client requests it later."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, delay(config_after), times=2)
    simulation.nodes.set_config_revision(9)
    simulation.live(between)
    simulation.nodes.set_config_revision(10)
    simulation.live(before)
    simulation.node.faults.next(Opcode.SASL_AUTH, delay(exchange), times=2)
    change(simulation, SAME)
    simulation.live(5.0)

    assert [ConnectionState.READY.name] * 2 == states(simulation)
    assert (1, 10) == simulation.connection().config_revision


def test_polls_go_on() -> None:
    """A connection whose config poll is due during an exchange continues to poll after it."""
    simulation = ready(features=MUTE)
    simulation.live(2.0)
    simulation.node.faults.next(Opcode.SASL_AUTH, delay(1.0), times=2)
    change(simulation, SAME)
    simulation.live(1.5)
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    simulation.live(25.0)

    assert 2 * 10 == len(simulation.commands(Opcode.GET_CLUSTER_CONFIG)) - before


def test_signs_of_life_go_on() -> None:
    """After an exchange, the connection continues to send keep-alive NOOPs."""
    simulation = ready(options=client_options(timeouts=TimeoutOptions(keep_alive_interval=2.0)))
    simulation.node.faults.always(Opcode.NOOP, delay(0.2))
    simulation.live(2.1)
    simulation.node.faults.clear()
    simulation.node.faults.always(Opcode.SASL_AUTH, delay(0.3))
    change(simulation, SAME)
    simulation.live(0.5)
    before = len(simulation.commands(Opcode.NOOP))
    simulation.live(4.0)

    assert before + 2 <= len(simulation.commands(Opcode.NOOP))


def test_a_breaker_goes_on() -> None:
    """A circuit breaker that opened before an exchange sends its canary, and closes."""
    breaker = couchbase.CircuitBreakerOptions(volume_threshold=1, error_threshold_percentage=1.0, sleep_window=1.0)
    simulation = ready(options=client_options(circuit_breaker=breaker, timeouts=TimeoutOptions(kv=0.5)))
    simulation.node.faults.next(Opcode.SET, drop_response())
    simulation.finish(upsert())
    simulation.node.faults.next(Opcode.SASL_AUTH, delay(2.0), times=2)
    change(simulation, SAME)
    simulation.live(3.0)
    simulation.result(upsert())


def test_a_lost_collection_id_is_requested_again() -> None:
    """If an id request becomes overdue during an exchange, the client repeats it afterwards."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET_COLLECTION_ID, drop_response())
    token = simulation.submit(upsert(keyspace=HOTELS))
    simulation.flow()
    simulation.node.faults.next(Opcode.SASL_AUTH, delay(QUESTION_SECONDS + 0.1), times=2)
    change(simulation, SAME)
    simulation.run()

    assert token in simulation.results
    assert simulation.now < 3 * QUESTION_SECONDS


# Nodes that do not prove that they know the password.


def refused_text(error: errors.CouchbaseException) -> str:
    """Return the last dispatch error in the context of the error."""
    return error.context.last_dispatch_error or ""


@rows(
    ("opcode", "answer"),
    [
        (Opcode.SASL_STEP, status(couchbase.Status.SUCCESS, body=b"v=QQ==")),
        (Opcode.SASL_STEP, status(couchbase.Status.SUCCESS)),
        (Opcode.SASL_AUTH, status(couchbase.Status.SUCCESS)),
        (Opcode.SASL_AUTH, status(couchbase.Status.AUTH_CONTINUE, body=b"nonsense")),
    ],
)
def test_a_node_that_proves_nothing(opcode: Opcode, answer: Any) -> None:
    """If a node has no valid proof, operations and waits fail before their timeout, with its address and the reason."""
    simulation = Recorded()
    simulation.node.faults.always(opcode, answer)
    tokens = [
        simulation.submit(get()),
        simulation.inquire(WaitUntilReady(None)),
        simulation.inquire(WaitUntilReady("travel")),
    ]
    simulation.flow()

    for token in tokens:
        error = simulation.error(errors.AuthenticationFailureException, token)
        assert "AUTHENTICATION_ERROR" == error.context.refused_reason
        assert refused_text(error).startswith("127.0.0.1:11210: SCRAM-SHA512: ")
