"""Bootstrap: the order of its requests, and the result of each response, valid or invalid."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv.connection import peer
from tests.core.runtime.kv.simulated import respond
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import CertificateAuthenticator, PasswordAuthenticator
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.bootstrap import (
    HELLO_SIZE_MAX,
    MECHANISMS_MAX,
    MECHANISMS_SIZE_MAX,
    Bootstrap,
    BootstrapFailure,
    FailureKind,
)
from triclinium_core.runtime.kv.connection.sasl import PLAIN_ONLY
from triclinium_core.runtime.kv.connection.states import ConnectionState

HELLO, MAP, LIST, AUTH, STEP, BUCKET, CONFIG_OF = (
    Opcode.HELLO,
    Opcode.GET_ERROR_MAP,
    Opcode.SASL_LIST_MECHS,
    Opcode.SASL_AUTH,
    Opcode.SASL_STEP,
    Opcode.SELECT_BUCKET,
    Opcode.GET_CLUSTER_CONFIG,
)


def play(bootstrap: Bootstrap, node: peer.Answering) -> list[list[Opcode]]:
    """Let ``node`` respond to each request in order, and return the opcodes in each write of the client."""
    writes: list[list[Opcode]] = []
    pending = peer.take_apart(bootstrap.start())
    writes.append([Opcode(request.opcode) for request in pending])
    while pending and bootstrap.failure is None:
        data = bootstrap.receive(peer.as_frame(node.answer(pending.pop(0))))
        if data:
            requests = peer.take_apart(data)
            writes.append([Opcode(request.opcode) for request in requests])
            pending += requests
    return writes


def first_burst(**changes: Any) -> dict[Opcode, Frame]:
    """Return the requests in the first write of the client, by opcode."""
    return {
        Opcode(request.opcode): request for request in peer.take_apart(peer.bootstrap_of(peer.plan(**changes)).start())
    }


def failure_of(bootstrap: Bootstrap) -> BootstrapFailure:
    """Return the failure of a bootstrap that has failed."""
    assert not bootstrap.is_done
    assert bootstrap.failure is not None
    assert "" != bootstrap.failure.text
    return bootstrap.failure


# Requests.

IN_ONE_GO = [HELLO, MAP, LIST, AUTH]
JOINING = [BUCKET, CONFIG_OF]
CERTIFICATE = CertificateAuthenticator("ada.pem")


@rows(
    ("changes", "writes"),
    [
        ({}, [IN_ONE_GO, [STEP], JOINING]),
        # PLAIN has no SASL step.
        ({"tls": True}, [IN_ONE_GO, JOINING]),
        # Without a bucket, the client requests the global config.
        ({"bucket": None}, [IN_ONE_GO, [STEP], [CONFIG_OF]]),
        # With ``hello_after_auth``, the client sends only SASL requests before authentication succeeds.
        ({"hello_after_auth": True}, [[LIST, AUTH], [STEP], [HELLO, MAP, *JOINING]]),
        # Without XERROR, the client does not request the error map (RFC 0013 "Negotiation").
        ({"xerror": False}, [[HELLO, LIST, AUTH], [STEP], JOINING]),
        # With a certificate, the client uses no SASL, so ``hello_after_auth`` has no effect.
        ({"tls": True, "authenticator": CERTIFICATE}, [[HELLO, MAP], JOINING]),
        ({"tls": True, "authenticator": CERTIFICATE, "bucket": None}, [[HELLO, MAP], [CONFIG_OF]]),
        ({"tls": True, "authenticator": CERTIFICATE, "hello_after_auth": True}, [[HELLO, MAP], JOINING]),
    ],
)
def test_bursts(changes: dict[str, Any], writes: list[list[Opcode]]) -> None:
    """The client sends all requests that need no earlier response in one write (C26), and the bootstrap completes."""
    bootstrap = peer.bootstrap_of(peer.plan(**changes))

    assert writes == play(bootstrap, peer.Answering())
    assert (True, frozenset(peer.FEATURES)) == (bootstrap.is_done, bootstrap.negotiated.features)
    assert ("xerror" not in changes) == (bootstrap.negotiated.error_map is not None)
    assert (None if writes[0] == [HELLO, MAP] else Status.SUCCESS) == bootstrap.sasl_status


def wanted(**changes: Any) -> set[int]:
    """Return the features that the client requests in HELLO."""
    value = first_burst(**changes)[HELLO].value
    return {int.from_bytes(value[at : at + 2], "big") for at in range(0, len(value), 2)}


def test_requested_features() -> None:
    """HELLO requests the features that the client uses; two options leave out compression and XERROR."""
    plain = {0x03, 0x04, 0x07, 0x08, 0x0A, 0x0B, 0x0C, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x14, 0x1D, 0x1E, 0x1F}
    expected = plain | {0x06, 0x17, 0x1C}

    assert expected == wanted()
    assert {0x0A, 0x13} == wanted() - wanted(compression=False)
    assert {HelloFeature.XERROR} == wanted() - wanted(xerror=False)


@rows("agent", ["test/1.0", "x" * 500, "ü" * 500, 'quo"te\\\n', "", "\ud800"])
def test_agent(agent: str) -> None:
    """HELLO contains at most 200 characters of the user agent and the connection id, as compact JSON (SDK-RFC 0035)."""
    key = first_burst(user_agent=agent)[HELLO].key

    assert {"a": agent[:200], "i": "0123456789abcdef/fedcba9876543210"} == json.loads(key)
    assert b'","i":"' in key


def test_error_map_version() -> None:
    """The client requests error map version 2 (decision C35)."""
    assert b"\x00\x02" == first_burst()[MAP].value


# Responses and results.


def test_negotiated() -> None:
    """After the bootstrap, features, mechanism, error map and config are those in the node's responses."""
    bootstrap = peer.bootstrap_of(peer.plan())
    play(bootstrap, peer.Answering())
    negotiated = bootstrap.negotiated

    assert frozenset(peer.FEATURES) == negotiated.features
    assert "SCRAM-SHA512" == negotiated.mechanism
    assert ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN") == negotiated.offered_mechanisms
    assert negotiated.error_map is not None
    assert (2, 9, {0x7FF0}) == (
        negotiated.error_map.version,
        negotiated.error_map.revision,
        set(negotiated.error_map.entries),
    )
    assert peer.CONFIG.encode() == negotiated.config
    assert (Status.SUCCESS, Status.SUCCESS) == (bootstrap.sasl_status, bootstrap.bucket_status)


@rows("order", [*permutations(range(4))])
def test_answers_in_any_order(order: tuple[int, ...]) -> None:
    """The client matches responses by opaque in any order, and is ready after the last one."""
    life, node = peer.Life(), peer.Answering()
    bootstrap = peer.bootstrap_of(peer.plan(hello_after_auth=True), life)
    pending = peer.take_apart(bootstrap.start())
    while len(pending) < 4:
        pending += peer.take_apart(bootstrap.receive(peer.as_frame(node.answer(pending.pop(0)))))
    answers = [node.answer(request) for request in pending]
    states: list[ConnectionState] = []
    for position in order:
        bootstrap.receive(peer.as_frame(answers[position]))
        states.append(life.state)

    assert [ConnectionState.JOINING] * 3 + [ConnectionState.READY] == states
    assert frozenset(peer.FEATURES) == bootstrap.negotiated.features
    assert bootstrap.negotiated.error_map is not None
    assert peer.CONFIG.encode() == bootstrap.negotiated.config


def test_not_ready_before_hello_is_answered() -> None:
    """The connection is not ready before the response to HELLO arrives, which decides whether keys have a prefix."""
    life, node = peer.Life(), peer.Answering()
    bootstrap = peer.bootstrap_of(peer.plan(tls=True), life)
    hello, *others = peer.take_apart(bootstrap.start())
    for request in others:
        for last in peer.take_apart(bootstrap.receive(peer.as_frame(node.answer(request)))):
            bootstrap.receive(peer.as_frame(node.answer(last)))

    assert (ConnectionState.JOINING, False) == (life.state, bootstrap.is_done)

    bootstrap.receive(peer.as_frame(node.answer(hello)))

    assert (ConnectionState.READY, True) == (life.state, bootstrap.is_done)
    assert frozenset(peer.FEATURES) == bootstrap.negotiated.features


# SASL.


def test_plain_message() -> None:
    """A PLAIN message is an empty authorization identity, user name and password, separated by NUL (RFC 4616)."""
    authenticator = PasswordAuthenticator("ädä", "pässword", ("PLAIN",))

    assert "\0ädä\0pässword".encode() == first_burst(authenticator=authenticator)[AUTH].value


def test_a_node_with_plain_only_gets_no_password() -> None:
    """Without TLS, the client does not send its password to a node that offers only PLAIN."""
    bootstrap, node = peer.bootstrap_of(peer.plan()), peer.Answering(mechanisms=("PLAIN",))
    sent = bootstrap.start()
    for request in peer.take_apart(sent):
        sent += bootstrap.receive(peer.as_frame(node.answer(request)))
        if bootstrap.failure is not None:
            break
    failure = failure_of(bootstrap)

    assert peer.PASSWORD.encode() not in sent
    assert FailureKind.UNPROVEN_NODE is failure.kind
    assert failure.text.endswith(f"; {PLAIN_ONLY}")
    assert PLAIN_ONLY == failure.advice
    assert bootstrap.sasl_status is None


def test_fallback_in_order_of_preference() -> None:
    """If the node does not offer the first mechanism, the client uses the best common one, and tries each once."""
    bootstrap = peer.bootstrap_of(peer.plan(tls=True))
    writes = play(bootstrap, peer.Answering(mechanisms=("SCRAM-SHA1", "SCRAM-SHA256")))

    assert bootstrap.is_done
    assert "SCRAM-SHA256" == bootstrap.negotiated.mechanism
    assert [[HELLO, MAP, LIST, AUTH], [AUTH], [STEP], [BUCKET, CONFIG_OF]] == writes


def test_fallback_to_plain() -> None:
    """If the node offers only PLAIN and the authenticator allows it, the client falls back to PLAIN and succeeds."""
    authenticator = PasswordAuthenticator(peer.USERNAME, peer.PASSWORD, ("SCRAM-SHA512", "PLAIN"))
    bootstrap = peer.bootstrap_of(peer.plan(authenticator=authenticator))
    play(bootstrap, peer.Answering(mechanisms=("PLAIN",)))

    assert bootstrap.is_done
    assert "PLAIN" == bootstrap.negotiated.mechanism


def test_fallback_ends() -> None:
    """If a node refuses the only mechanism that it offers, the bootstrap fails."""
    node = peer.Answering(mechanisms=("SCRAM-SHA1",), statuses={AUTH: Status.NOT_SUPPORTED})
    bootstrap = peer.bootstrap_of(peer.plan())
    writes = play(bootstrap, node)

    assert FailureKind.PROTOCOL is failure_of(bootstrap).kind
    assert [[HELLO, MAP, LIST, AUTH], [AUTH]] == writes


@rows(
    ("statuses", "values"),
    [
        ({}, {AUTH: b""}),
        ({}, {AUTH: b"nonsense"}),
        ({}, {AUTH: b"\xff"}),
        ({}, {AUTH: b"r=other-nonce,s=c2FsdA==,i=2"}),
        ({AUTH: Status.SUCCESS}, {}),
        ({AUTH: Status.SUCCESS}, {AUTH: b"v=AAAA"}),
        ({}, {STEP: b""}),
        ({}, {STEP: b"v=AAAA"}),
        ({STEP: Status.AUTH_CONTINUE}, {}),
    ],
)
def test_server_that_cannot_prove_itself(statuses: dict[Opcode, int], values: dict[Opcode, bytes]) -> None:
    """If a server does not prove that it knows the password, the bootstrap fails, and the client selects no bucket."""
    bootstrap = peer.bootstrap_of(peer.plan())
    writes = play(bootstrap, peer.Answering(statuses=statuses, values=values))
    failure = failure_of(bootstrap)

    assert FailureKind.UNPROVEN_NODE is failure.kind
    assert "SCRAM-SHA512" in failure.text
    assert [BUCKET, CONFIG_OF] not in writes
    assert peer.PASSWORD not in failure.text


@pytest.mark.parametrize(
    ("authenticator", "nonce"),
    [
        (PasswordAuthenticator("control\x07character", peer.PASSWORD), "client-nonce"),
        (PasswordAuthenticator("\u00ad", peer.PASSWORD), "client-nonce"),
        (PasswordAuthenticator("ada", peer.PASSWORD), ""),
    ],
)
def test_exchange_that_cannot_begin(authenticator: PasswordAuthenticator, nonce: str) -> None:
    """If SCRAM cannot use the credentials or the nonce, the bootstrap fails with the reason."""
    bootstrap = peer.bootstrap_of(peer.plan(authenticator=authenticator, nonce=nonce))
    bootstrap.start()

    assert failure_of(bootstrap).text.startswith("SCRAM-SHA512: ")


@pytest.mark.parametrize(
    ("options", "iterations", "is_done"),
    [
        *(({}, iterations, iterations >= 4000) for iterations in (1, 3999, 4000, 30_000)),
        *(({"scram_iterations_min": least}, 2, least <= 2) for least in (1, 2, 3)),
    ],
)
def test_too_few_iterations(options: dict[str, Any], iterations: int, is_done: bool) -> None:
    """If a node requests fewer iterations than the option, 4,000 by default, the client sends no proof and gives up."""
    authenticator = PasswordAuthenticator(peer.USERNAME, peer.PASSWORD, **options)
    bootstrap = peer.bootstrap_of(peer.plan(authenticator=authenticator))
    play(bootstrap, node := peer.Answering(iterations=iterations))

    assert is_done == bootstrap.is_done
    assert is_done == (Opcode.SASL_STEP in node.seen)
    assert 1 == node.seen.count(Opcode.SASL_AUTH)
    assert is_done or FailureKind.UNPROVEN_NODE is failure_of(bootstrap).kind


def test_a_second_mechanism_has_another_nonce() -> None:
    """If the client falls back to a second SCRAM mechanism, the nonce of this exchange differs."""
    bootstrap, pending, sent = peer.bootstrap_of(peer.plan()), [], []
    pending += peer.take_apart(bootstrap.start())
    node = peer.Answering(mechanisms=("SCRAM-SHA1",))
    while pending:
        request = pending.pop(0)
        sent += [request.value] if request.opcode == Opcode.SASL_AUTH else []
        pending += peer.take_apart(bootstrap.receive(peer.as_frame(node.answer(request))))

    assert bootstrap.is_done
    assert (2, 2) == (len(sent), len({message.partition(b"r=")[2] for message in sent}))


def test_mechanisms_are_unknown() -> None:
    """If the node lists no mechanisms, the client uses its best one; AUTH_ERROR then refuses the credentials."""
    taken, refused = peer.bootstrap_of(peer.plan()), peer.bootstrap_of(peer.plan())
    play(taken, peer.Answering(statuses={LIST: Status.UNKNOWN_COMMAND}))
    play(refused, peer.Answering(statuses={LIST: Status.UNKNOWN_COMMAND, AUTH: Status.AUTH_ERROR}))

    assert (True, ()) == (taken.is_done, taken.negotiated.offered_mechanisms)
    assert FailureKind.CREDENTIALS is failure_of(refused).kind


@pytest.mark.parametrize("value", [b"\xff\xfe SCRAM-SHA512", b"  SCRAM-SHA512  ", b"A " * 100_000, b"A" * 100_000, b""])
def test_odd_lists(value: bytes) -> None:
    """The client ignores mechanism names that it cannot read, and reads a list only up to a limit."""
    bootstrap = peer.bootstrap_of(peer.plan())
    play(bootstrap, peer.Answering(values={LIST: value}))

    assert bootstrap.is_done
    assert MECHANISMS_SIZE_MAX >= len(" ".join(bootstrap.negotiated.offered_mechanisms))


def test_mechanisms_with_other_names_are_dropped() -> None:
    """The client keeps a limited number of mechanism names, and only names that have the form of RFC 4422."""
    bootstrap = peer.bootstrap_of(peer.plan())
    listed = b"SCRAM-SHA512 \x1b]0;owned\x07\x1b[2J\x1b[31mFAKE scram-sha1 [red] " + b"Q" * 21 + b" X_1" * 100
    play(bootstrap, peer.Answering(values={LIST: listed}))

    assert ("SCRAM-SHA512", *["X_1"] * (MECHANISMS_MAX - 1)) == bootstrap.negotiated.offered_mechanisms


# HELLO and error map.


@pytest.mark.parametrize("status", [Status.NOT_SUPPORTED, Status.INVALID_ARGUMENTS, Status.TEMPORARY_FAILURE, 0xABCD])
def test_hello_refused(status: int) -> None:
    """If the node refuses HELLO, the bootstrap fails as a protocol failure whose text has the status."""
    bootstrap = peer.bootstrap_of(peer.plan())
    play(bootstrap, peer.Answering(statuses={HELLO: status}))
    failure = failure_of(bootstrap)

    assert (FailureKind.PROTOCOL, status) == (failure.kind, failure.status)
    assert f"0x{status:02x}" in failure.text


@rows("size", [0, 2, 8, 1, 3, 21, HELLO_SIZE_MAX + 2])
def test_features_of_any_size(size: int) -> None:
    """A HELLO response needs an even number of bytes up to a limit, and may have no, unknown or repeated features."""
    bootstrap = peer.bootstrap_of(peer.plan())
    play(bootstrap, peer.Answering(values={HELLO: b"\x7f" * size}))

    if size % 2 or size > HELLO_SIZE_MAX:
        assert f"{size} bytes" in failure_of(bootstrap).text
    else:
        assert bootstrap.is_done
        assert frozenset({0x7F7F} if size else ()) == bootstrap.negotiated.features


CORRUPT = (b"", b"\xff", b"[]", b"{", peer.ERROR_MAP.encode()[:-1], b'{"version":3,"revision":1,"errors":{}}')


@rows("renegotiate", [False, True])
@rows("document", CORRUPT)
def test_corrupt_error_map(document: bytes, renegotiate: bool) -> None:
    """If the error map is corrupt, the bootstrap continues without the map (C18), or fails with the option to
    renegotiate.
    """
    bootstrap = peer.bootstrap_of(peer.plan(renegotiate_on_corrupt_error_map=renegotiate))
    play(bootstrap, peer.Answering(values={MAP: document}))

    if renegotiate:
        assert FailureKind.CORRUPT_ERROR_MAP is failure_of(bootstrap).kind
    else:
        assert (True, None) == (bootstrap.is_done, bootstrap.negotiated.error_map)
        assert "corrupt" in (bootstrap.negotiated.error_map_problem or "")
        assert HelloFeature.XERROR in bootstrap.negotiated.features


@rows("renegotiate", [False, True])
@rows("status", [Status.UNKNOWN_COMMAND, Status.KEY_NOT_FOUND, 0xABCD])
def test_no_error_map(status: int, renegotiate: bool) -> None:
    """If a node has no error map, the bootstrap continues, even with the option to renegotiate after a corrupt one."""
    bootstrap = peer.bootstrap_of(peer.plan(renegotiate_on_corrupt_error_map=renegotiate))
    play(bootstrap, peer.Answering(statuses={MAP: status}))

    assert (True, None) == (bootstrap.is_done, bootstrap.negotiated.error_map)
    assert f"0x{status:02x}" in (bootstrap.negotiated.error_map_problem or "")


# Bucket and config.


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.NO_ACCESS, "does not exist, or user 'ada' may not open it"),
        (Status.KEY_NOT_FOUND, "not on this node yet"),
        (Status.NOT_SUPPORTED, "NOT_SUPPORTED [0x83]"),
        (Status.CONFIG_ONLY, "0x0d"),
        (0xABCD, "unknown status [0xabcd]"),
    ],
)
def test_bucket_refused(status: int, words: str) -> None:
    """If the node refuses the bucket, the failure has the status (decision C7) and a text that explains the status."""
    bootstrap = peer.bootstrap_of(peer.plan())
    play(bootstrap, peer.Answering(statuses={BUCKET: status}))
    failure = failure_of(bootstrap)

    assert (FailureKind.BUCKET, status) == (failure.kind, failure.status)
    assert status == bootstrap.bucket_status
    assert "'travel'" in failure.text
    assert words in failure.text


@pytest.mark.parametrize("status", [Status.KEY_NOT_FOUND, Status.UNKNOWN_COMMAND, Status.NO_BUCKET, 0xABCD])
def test_no_config(status: int) -> None:
    """If the node sends no config, a bootstrap with a bucket fails, and a bootstrap without a bucket completes."""
    with_bucket, without = peer.bootstrap_of(peer.plan()), peer.bootstrap_of(peer.plan(bucket=None))
    for bootstrap in (with_bucket, without):
        play(bootstrap, peer.Answering(statuses={CONFIG_OF: status}))

    assert status == failure_of(with_bucket).status
    assert without.is_done
    assert without.negotiated.config is None


# Invalid responses.


def after(count: int) -> tuple[Bootstrap, list[Frame]]:
    """Return a bootstrap after ``count`` valid responses, with its unanswered requests."""
    bootstrap, node = peer.bootstrap_of(peer.plan()), peer.Answering()
    pending = peer.take_apart(bootstrap.start())
    for _ in range(count):
        pending += peer.take_apart(bootstrap.receive(peer.as_frame(node.answer(pending.pop(0)))))
    return bootstrap, pending


@rows("count", range(7))
def test_at_every_step(count: int) -> None:
    """The bootstrap awaits only unanswered requests; after a response with another opcode it fails and awaits none."""
    bootstrap, pending = after(count)
    awaited = [opaque for opaque in range(bootstrap.last_opaque + 2) if bootstrap.awaits(opaque)]
    bootstrap.receive(Frame(0x81, Opcode.GET, 0, 0, pending[0].opaque, 0, b"", b"", b"", b""))

    assert [request.opaque for request in pending] == awaited
    assert "0x00" in failure_of(bootstrap).text
    assert not any(map(bootstrap.awaits, awaited))


@given(
    st.integers(0, 6),
    st.integers(0, 0xFFFF) | st.sampled_from([0, 0x21]),
    st.binary(max_size=60) | st.sampled_from([peer.ERROR_MAP.encode(), peer.CONFIG.encode(), b"v=AAAA", b"SCRAM-SHA1"]),
    st.binary(max_size=30),
)
def test_garbage_at_every_step(count: int, status: int, value: bytes, extras: bytes) -> None:
    """At each step any response continues the bootstrap, or fails it with a text of limited length."""
    bootstrap, pending = after(count)
    data = bootstrap.receive(peer.as_frame(respond(pending[0], status, value=value, extras=extras)))

    if bootstrap.failure is not None:
        assert b"" == data
        assert 600 > len(failure_of(bootstrap).text)
    else:
        peer.take_apart(data)
