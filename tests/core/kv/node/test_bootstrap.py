"""The bootstrap: what is said in which order, and what becomes of every answer, the impossible ones too."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.kv.node.peer import (
    CONFIG,
    ERROR_MAP,
    FEATURES,
    PASSWORD,
    USERNAME,
    Answering,
    as_frame,
    features_value,
    plan,
    respond,
    take_apart,
)
from tests.rows import rows
from triclinium_core.kv.node.bootstrap import (
    HELLO_SIZE_MAX,
    MECHANISMS_SIZE_MAX,
    Bootstrap,
    BootstrapFailure,
    FailureKind,
)
from triclinium_core.kv.node.scram import MECHANISMS as SCRAM_MECHANISMS
from triclinium_core.kv.node.states import NodeState
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import Authenticator, CertificateAuthenticator, JwtAuthenticator, PasswordAuthenticator
from triclinium_core.retry.kv_status import Status

HELLO, MAP, LIST, AUTH, STEP, BUCKET, CONFIG_OF = (
    Opcode.HELLO,
    Opcode.GET_ERROR_MAP,
    Opcode.SASL_LIST_MECHS,
    Opcode.SASL_AUTH,
    Opcode.SASL_STEP,
    Opcode.SELECT_BUCKET,
    Opcode.GET_CLUSTER_CONFIG,
)
NAMED_PLAIN = PasswordAuthenticator(USERNAME, PASSWORD, ("PLAIN",))


def play(bootstrap: Bootstrap, node: Answering) -> list[list[Opcode]]:
    """Let ``node`` answer everything in the order asked, and return the opcodes of every write of the client."""
    writes: list[list[Opcode]] = []
    pending = take_apart(bootstrap.start())
    writes.append([Opcode(request.opcode) for request in pending])
    while pending and bootstrap.failure is None:
        data = bootstrap.receive(as_frame(node.answer(pending.pop(0))))
        if data:
            requests = take_apart(data)
            writes.append([Opcode(request.opcode) for request in requests])
            pending += requests
    return writes


def first_burst(**changes: Any) -> dict[Opcode, Frame]:
    """Return the requests of the first write, by opcode."""
    return {Opcode(request.opcode): request for request in take_apart(Bootstrap(plan(**changes)).start())}


def failure_of(bootstrap: Bootstrap) -> BootstrapFailure:
    """Return why a bootstrap failed; it must not think that it is done."""
    assert NodeState.LOST is bootstrap.state
    assert not bootstrap.is_done
    assert bootstrap.failure is not None
    assert "" != bootstrap.failure.text
    return bootstrap.failure


# What is said.


def test_bursts() -> None:
    """Four questions in one write, the SASL step, and two more in one write (decision C26)."""
    bootstrap = Bootstrap(plan())
    states = [bootstrap.state]
    writes = play(bootstrap, Answering())
    states.append(bootstrap.state)

    assert [[HELLO, MAP, LIST, AUTH], [STEP], [BUCKET, CONFIG_OF]] == writes
    assert [NodeState.NEGOTIATING, NodeState.READY] == states
    assert bootstrap.is_done


def test_bursts_with_plain() -> None:
    """PLAIN needs no step."""
    assert [[HELLO, MAP, LIST, AUTH], [BUCKET, CONFIG_OF]] == play(Bootstrap(plan(tls=True)), Answering())


def test_bursts_without_a_bucket() -> None:
    """Nothing is selected, but a global config is asked for."""
    assert [[HELLO, MAP, LIST, AUTH], [STEP], [CONFIG_OF]] == play(Bootstrap(plan(bucket=None)), Answering())


def test_bursts_with_hello_after_auth() -> None:
    """The escape hatch: nothing but SASL comes before authentication."""
    bootstrap = Bootstrap(plan(hello_after_auth=True))

    assert NodeState.AUTHENTICATING is bootstrap.state
    assert [[LIST, AUTH], [STEP], [HELLO, MAP, BUCKET, CONFIG_OF]] == play(bootstrap, Answering())
    assert bootstrap.is_done
    assert frozenset(FEATURES) == bootstrap.negotiated.features


@pytest.mark.parametrize("hello_after_auth", [False, True])
@pytest.mark.parametrize("bucket", [None, "travel"])
def test_bursts_with_a_certificate(bucket: str | None, hello_after_auth: bool) -> None:
    """TLS has shown it, so not a word of SASL is said; HELLO comes first, for there is nothing that it could follow."""
    authenticator = CertificateAuthenticator("ada.pem")
    bootstrap = Bootstrap(plan(tls=True, authenticator=authenticator, bucket=bucket, hello_after_auth=hello_after_auth))
    states = [bootstrap.state]
    writes = play(bootstrap, Answering())

    assert [[HELLO, MAP], [*([BUCKET] if bucket else []), CONFIG_OF]] == writes
    assert [NodeState.NEGOTIATING] == states
    assert bootstrap.is_done
    assert (None, None) == (bootstrap.negotiated.mechanism, bootstrap.sasl_status)


def test_bursts_with_a_token() -> None:
    """One message, and no step."""
    bootstrap = Bootstrap(plan(tls=True, authenticator=JwtAuthenticator("a.b.c")))
    pending = take_apart(bootstrap.start())
    for request in pending:
        bootstrap.receive(as_frame(respond(request, value=b"OAUTHBEARER" if request.opcode == LIST else b"")))

    assert [HELLO, MAP, LIST, AUTH] == [request.opcode for request in pending]
    assert b"OAUTHBEARER" == pending[-1].key
    assert NodeState.JOINING is bootstrap.state
    assert "OAUTHBEARER" == bootstrap.negotiated.mechanism


@pytest.mark.parametrize(
    ("authenticator", "words"),
    [
        (JwtAuthenticator("a.b.c"), "does not exist, or the user of the token may not open it"),
        (CertificateAuthenticator(), "does not exist, or the user of the certificate may not open it"),
        (PasswordAuthenticator(USERNAME, PASSWORD), "does not exist, or user 'ada' may not open it"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whose_bucket_it_is_not(authenticator: Authenticator, words: str) -> None:
    """The error says who was refused, as far as that is known."""
    bootstrap = Bootstrap(plan(tls=True, authenticator=authenticator))
    node = Answering(statuses={BUCKET: Status.NO_ACCESS, AUTH: Status.SUCCESS})
    play(bootstrap, node)

    assert FailureKind.BUCKET is failure_of(bootstrap).kind
    assert words in failure_of(bootstrap).text


def test_bursts_without_xerror() -> None:
    """Who does not ask for XERROR has no use for the map (RFC 0013 "Negotiation")."""
    bootstrap = Bootstrap(plan(xerror=False))

    assert [[HELLO, LIST, AUTH], [STEP], [BUCKET, CONFIG_OF]] == play(bootstrap, Answering())
    assert bootstrap.negotiated.error_map is None
    assert bootstrap.negotiated.error_map_problem is None


def test_opaques_differ() -> None:
    """Every request has its own."""
    opaques = [request.opaque for request in take_apart(Bootstrap(plan()).start())]

    assert len(opaques) == len(set(opaques))


def wanted(**changes: Any) -> set[int]:
    """Return the features that HELLO asks for."""
    value = first_burst(**changes)[HELLO].value
    return {int.from_bytes(value[at : at + 2], "big") for at in range(0, len(value), 2)}


def test_features_asked_for() -> None:
    """Those that are really used: new configs are announced, and the server's time is told."""
    plain = {0x03, 0x04, 0x07, 0x08, 0x0A, 0x0B, 0x0C, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x14, 0x1D, 0x1E, 0x1F}
    expected = plain | {0x06, 0x17, 0x1C}

    assert expected == wanted()
    assert {0x0A, 0x13} == wanted() - wanted(compression=False)
    assert {HelloFeature.XERROR} == wanted() - wanted(xerror=False)


def test_agent_is_compact_json() -> None:
    """Agent and connection id, without whitespace (SDK-RFC 0035)."""
    assert b'{"a":"test/1.0","i":"0123456789abcdef/fedcba9876543210"}' == first_burst()[HELLO].key


@pytest.mark.parametrize("agent", ["x" * 500, "ü" * 500, 'quo"te\\\n', "", "\ud800"], ids=ascii)
def test_agent_is_cut(agent: str) -> None:
    """At most 200 characters, and JSON whatever they are."""
    key = first_burst(user_agent=agent)[HELLO].key

    assert agent[:200] == json.loads(key)["a"]


def test_error_map_version() -> None:
    """Version 2 at most (decision C35)."""
    assert b"\x00\x02" == first_burst()[MAP].value


def test_bucket_is_selected_by_name() -> None:
    """The key of SELECT_BUCKET."""
    bootstrap = Bootstrap(plan(tls=True, bucket="beer-sample"))
    last = b""
    for request in take_apart(bootstrap.start()):
        last = bootstrap.receive(as_frame(Answering().answer(request)))

    assert [b"beer-sample", b""] == [request.key for request in take_apart(last)]


# What comes out.


def test_negotiated() -> None:
    """Features, mechanism, error map and config are what the node said."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering())
    negotiated = bootstrap.negotiated

    assert frozenset(FEATURES) == negotiated.features
    assert "SCRAM-SHA512" == negotiated.mechanism
    assert ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN") == negotiated.offered_mechanisms
    assert negotiated.error_map is not None
    assert (2, 9, {0x7FF0}) == (
        negotiated.error_map.version,
        negotiated.error_map.revision,
        set(negotiated.error_map.entries),
    )
    assert CONFIG.encode() == negotiated.config
    assert (Status.SUCCESS, Status.SUCCESS) == (bootstrap.sasl_status, bootstrap.bucket_status)


def test_states_on_the_way() -> None:
    """One after the other, each after the answer that leads there."""
    bootstrap, node = Bootstrap(plan()), Answering()
    states: list[NodeState] = []
    pending = take_apart(bootstrap.start())
    while pending:
        data = bootstrap.receive(as_frame(node.answer(pending.pop(0))))
        states.append(bootstrap.state)
        pending += take_apart(data)

    assert [HELLO, MAP, LIST, AUTH, STEP, BUCKET, CONFIG_OF] == node.seen
    assert [NodeState.AUTHENTICATING] * 4 + [NodeState.JOINING] * 2 + [NodeState.READY] == states


@rows("order", [*permutations(range(4))])
def test_answers_in_any_order(order: tuple[int, ...]) -> None:
    """Answers are matched by opaque, and the connection is ready when all of them are there, not before."""
    bootstrap, node = Bootstrap(plan(hello_after_auth=True)), Answering()
    pending = take_apart(bootstrap.start())
    while len(pending) < 4:
        pending += take_apart(bootstrap.receive(as_frame(node.answer(pending.pop(0)))))
    answers = [node.answer(request) for request in pending]
    states: list[NodeState] = []
    for position in order:
        bootstrap.receive(as_frame(answers[position]))
        states.append(bootstrap.state)

    assert [NodeState.JOINING] * 3 + [NodeState.READY] == states
    assert frozenset(FEATURES) == bootstrap.negotiated.features
    assert bootstrap.negotiated.error_map is not None
    assert CONFIG.encode() == bootstrap.negotiated.config


def test_not_ready_before_hello_is_answered() -> None:
    """Without its answer nobody knows whether keys have a prefix."""
    bootstrap, node = Bootstrap(plan(tls=True)), Answering()
    hello, *others = take_apart(bootstrap.start())
    for request in others:
        for last in take_apart(bootstrap.receive(as_frame(node.answer(request)))):
            bootstrap.receive(as_frame(node.answer(last)))

    assert NodeState.JOINING is bootstrap.state

    bootstrap.receive(as_frame(node.answer(hello)))

    assert bootstrap.is_done
    assert frozenset(FEATURES) == bootstrap.negotiated.features


@pytest.mark.parametrize("hello_after_auth", [False, True])
def test_the_oldest_question(*, hello_after_auth: bool) -> None:
    """It is known at each step which one has no answer, and whether the peer has said anything."""
    bootstrap, node = Bootstrap(plan(hello_after_auth=hello_after_auth)), Answering()
    requests, seen = take_apart(bootstrap.start()), []
    while requests:
        seen.append((bootstrap.unanswered, bootstrap.has_heard))
        requests += take_apart(bootstrap.receive(as_frame(node.answer(requests.pop(0)))))

    assert [(opcode, number > 0) for number, opcode in enumerate(node.seen)] == seen
    assert bootstrap.unanswered is None


# SASL.


class Refusing(Answering):
    """A node that finds the proof, or the password, wrong."""

    def answer(self, request: Frame) -> bytes:
        """Refuse the SASL step, and PLAIN at once."""
        if request.opcode == STEP or request.key == b"PLAIN":
            return respond(request, Status.AUTH_ERROR)
        return super().answer(request)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
@pytest.mark.parametrize("tls", [False, True])
def test_every_scram(mechanism: str, tls: bool) -> None:
    """Where it is named, or the only one that is offered."""
    named = Bootstrap(plan(tls=tls, authenticator=PasswordAuthenticator(USERNAME, PASSWORD, (mechanism,))))
    play(named, Answering())
    offered = Bootstrap(plan(tls=tls))
    writes = play(offered, Answering(mechanisms=(mechanism,)))

    assert (True, True) == (named.is_done, offered.is_done)
    assert (mechanism, mechanism) == (named.negotiated.mechanism, offered.negotiated.mechanism)
    assert (mechanism == "SCRAM-SHA512" and not tls) == ([AUTH] not in writes)


@pytest.mark.parametrize(
    ("tls", "allowed", "expected"),
    [
        (False, None, ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1")),
        (True, None, ("PLAIN", "SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1")),
        (False, ("PLAIN",), ("PLAIN",)),
        (True, ("SCRAM-SHA256", "PLAIN"), ("SCRAM-SHA256", "PLAIN")),
    ],
)
def test_mechanisms(tls: bool, allowed: tuple[str, ...] | None, expected: tuple[str, ...]) -> None:
    """PLAIN only over TLS, unless it is named; what is named is taken in its order."""
    chosen = plan(tls=tls, authenticator=PasswordAuthenticator(USERNAME, PASSWORD, allowed))

    assert expected == chosen.mechanisms
    assert expected[0].encode() == first_burst(tls=tls, authenticator=chosen.authenticator)[AUTH].key


def test_plain_message() -> None:
    """An empty authorization identity, user name and password, with NUL between them (RFC 4616)."""
    authenticator = PasswordAuthenticator("ädä", "pässword", ("PLAIN",))

    assert "\0ädä\0pässword".encode() == first_burst(authenticator=authenticator)[AUTH].value


def test_the_password_travels_in_plain_only_where_it_may() -> None:
    """Without TLS a server that offers only PLAIN does not get it."""
    bootstrap, node = Bootstrap(plan()), Answering(mechanisms=("PLAIN",))
    sent = bootstrap.start()
    for request in take_apart(sent):
        sent += bootstrap.receive(as_frame(node.answer(request)))
        if bootstrap.failure is not None:
            break
    failure = failure_of(bootstrap)

    assert PASSWORD.encode() not in sent
    assert FailureKind.PROTOCOL is failure.kind
    assert "PLAIN needs TLS" in failure.text
    assert bootstrap.sasl_status is None


def test_fallback_in_order_of_preference() -> None:
    """The first mechanism that both sides have; each is tried once."""
    bootstrap = Bootstrap(plan(tls=True))
    writes = play(bootstrap, Answering(mechanisms=("SCRAM-SHA1", "SCRAM-SHA256")))

    assert bootstrap.is_done
    assert "SCRAM-SHA256" == bootstrap.negotiated.mechanism
    assert [[HELLO, MAP, LIST, AUTH], [AUTH], [STEP], [BUCKET, CONFIG_OF]] == writes


def test_fallback_to_plain() -> None:
    """After a SCRAM that was refused nothing of it is left over."""
    authenticator = PasswordAuthenticator(USERNAME, PASSWORD, ("SCRAM-SHA512", "PLAIN"))
    bootstrap = Bootstrap(plan(authenticator=authenticator))
    play(bootstrap, Answering(mechanisms=("PLAIN",)))

    assert bootstrap.is_done
    assert "PLAIN" == bootstrap.negotiated.mechanism


def test_nothing_in_common() -> None:
    """The error tells both lists."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(mechanisms=("GSSAPI", "OAUTHBEARER")))
    failure = failure_of(bootstrap)

    assert FailureKind.PROTOCOL is failure.kind
    assert "GSSAPI, OAUTHBEARER" in failure.text
    assert "SCRAM-SHA512, SCRAM-SHA256, SCRAM-SHA1" in failure.text


def test_fallback_ends() -> None:
    """A server that refuses what it offers is not asked for ever."""
    node = Answering(mechanisms=("SCRAM-SHA1",), statuses={AUTH: Status.NOT_SUPPORTED})
    bootstrap = Bootstrap(plan())
    writes = play(bootstrap, node)

    assert FailureKind.PROTOCOL is failure_of(bootstrap).kind
    assert [[HELLO, MAP, LIST, AUTH], [AUTH]] == writes


@pytest.mark.parametrize(
    "authenticator", [PasswordAuthenticator(USERNAME, "wrong"), PasswordAuthenticator("bob", PASSWORD)]
)
@pytest.mark.parametrize("tls", [False, True])
def test_wrong_credentials(authenticator: PasswordAuthenticator, tls: bool) -> None:
    """0x20 of a mechanism that is offered (decision C6)."""
    bootstrap = Bootstrap(plan(tls=tls, authenticator=authenticator))
    play(bootstrap, Refusing())
    failure = failure_of(bootstrap)

    assert BootstrapFailure(FailureKind.CREDENTIALS, failure.text, Status.AUTH_ERROR) == failure
    assert Status.AUTH_ERROR == bootstrap.sasl_status
    assert repr(authenticator.username) in failure.text
    assert "wrong" not in failure.text


@pytest.mark.parametrize(("opcode", "status"), [(STEP, Status.SUCCESS), (AUTH, Status.AUTH_CONTINUE)])
@pytest.mark.parametrize("message", [b"e=invalid-proof", b"e=other-error", b"v=AAAA,e=failed"])
def test_credentials_that_scram_itself_refuses(opcode: Opcode, status: Status, message: bytes) -> None:
    """What the message says counts, not the status that it comes with (decision C6)."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={opcode: status}, values={opcode: message}))
    failure = failure_of(bootstrap)

    assert BootstrapFailure(FailureKind.CREDENTIALS, failure.text, Status.AUTH_ERROR) == failure
    assert Status.AUTH_ERROR == bootstrap.sasl_status
    assert repr(USERNAME) in failure.text
    assert "the other side refused" in failure.text


@rows("opcode", [AUTH, STEP])
@rows("status", [Status.TEMPORARY_FAILURE, Status.NO_ACCESS, Status.UNKNOWN_COMMAND, Status.NOT_SUPPORTED, 0x7FF0])
def test_other_sasl_statuses(opcode: Opcode, status: int) -> None:
    """They fail the connection but say nothing of the credentials (decision C6)."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={opcode: status}))
    failure = failure_of(bootstrap)

    assert (FailureKind.PROTOCOL, status) == (failure.kind, failure.status)
    assert status == bootstrap.sasl_status
    assert f"0x{status:02x}" in failure.text


@rows(
    ("statuses", "values"),
    [
        ({}, {AUTH: b""}),
        ({}, {AUTH: b"nonsense"}),
        ({}, {AUTH: b"\xff"}),
        ({}, {AUTH: b"r=other-nonce,s=c2FsdA==,i=2"}),
        ({}, {AUTH: b"r=client-nonceX,s=c2FsdA==,i=999999999"}),
        ({AUTH: Status.SUCCESS}, {}),
        ({AUTH: Status.SUCCESS}, {AUTH: b"v=AAAA"}),
        ({}, {STEP: b""}),
        ({}, {STEP: b"v=AAAA"}),
        ({STEP: Status.AUTH_CONTINUE}, {}),
    ],
)
def test_server_that_cannot_prove_itself(statuses: dict[Opcode, int], values: dict[Opcode, bytes]) -> None:
    """A wrong signature, none at all, or a broken exchange: nothing more is sent to such a server."""
    bootstrap = Bootstrap(plan())
    writes = play(bootstrap, Answering(statuses=statuses, values=values))
    failure = failure_of(bootstrap)

    assert FailureKind.PROTOCOL is failure.kind
    assert "SCRAM-SHA512" in failure.text
    assert [BUCKET, CONFIG_OF] not in writes
    assert PASSWORD not in failure.text


def test_server_with_another_password() -> None:
    """It can answer anything but the right signature."""
    honest = Answering()

    class Impostor(Answering):
        def answer(self, request: Frame) -> bytes:
            if request.opcode == STEP:
                return respond(request, value=b"v=" + b"A" * 86 + b"==")
            return honest.answer(request)

    bootstrap = Bootstrap(plan())
    play(bootstrap, Impostor())

    assert "do not trust it" in failure_of(bootstrap).text


def test_continue_for_plain() -> None:
    """PLAIN has one message only."""
    bootstrap = Bootstrap(plan(authenticator=NAMED_PLAIN))
    play(bootstrap, Answering(statuses={AUTH: Status.AUTH_CONTINUE}))

    assert (FailureKind.PROTOCOL, Status.AUTH_CONTINUE) == (failure_of(bootstrap).kind, bootstrap.sasl_status)


@pytest.mark.parametrize(
    ("authenticator", "nonce"),
    [
        (PasswordAuthenticator("control\x07character", PASSWORD), "client-nonce"),
        (PasswordAuthenticator("\u00ad", PASSWORD), "client-nonce"),
        (PasswordAuthenticator("ada", PASSWORD), ""),
        (PasswordAuthenticator("ada", PASSWORD), "with,comma"),
    ],
)
def test_exchange_that_cannot_begin(authenticator: PasswordAuthenticator, nonce: str) -> None:
    """What SCRAM cannot express fails with words, before anything is sent."""
    bootstrap = Bootstrap(plan(authenticator=authenticator, nonce=nonce))
    bootstrap.start()

    assert failure_of(bootstrap).text.startswith("SCRAM-SHA512: ")


def test_mechanisms_are_not_told() -> None:
    """A server that does not know SASL_LIST_MECHS may still know the first mechanism."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={LIST: Status.UNKNOWN_COMMAND}))

    assert bootstrap.is_done
    assert () == bootstrap.negotiated.offered_mechanisms


def test_refusal_without_a_list_is_about_credentials() -> None:
    """Nothing says that the mechanism is the trouble."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={LIST: Status.UNKNOWN_COMMAND, AUTH: Status.AUTH_ERROR}))

    assert FailureKind.CREDENTIALS is failure_of(bootstrap).kind


@pytest.mark.parametrize("value", [b"\xff\xfe SCRAM-SHA512", b"  SCRAM-SHA512  ", b"A " * 100_000, b"A" * 100_000, b""])
def test_odd_lists(value: bytes) -> None:
    """Names that nobody can read are names that nobody has; a list of any length is read up to a bound."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(values={LIST: value}))

    assert bootstrap.is_done
    assert MECHANISMS_SIZE_MAX >= len(" ".join(bootstrap.negotiated.offered_mechanisms))


# HELLO and error map.


def test_not_couchbase() -> None:
    """0x81 to HELLO is what a plain memcached answers (decision C27)."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={HELLO: Status.UNKNOWN_COMMAND}))
    failure = failure_of(bootstrap)

    assert (FailureKind.NOT_COUCHBASE, Status.UNKNOWN_COMMAND) == (failure.kind, failure.status)
    assert "memcached://" in failure.text


@pytest.mark.parametrize("status", [Status.NOT_SUPPORTED, Status.INVALID_ARGUMENTS, Status.TEMPORARY_FAILURE, 0xABCD])
def test_hello_refused(status: int) -> None:
    """Any other failure is one of the protocol, by name and number."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={HELLO: status}))
    failure = failure_of(bootstrap)

    assert (FailureKind.PROTOCOL, status) == (failure.kind, failure.status)
    assert f"0x{status:02x}" in failure.text


@pytest.mark.parametrize("size", [1, 3, 21, HELLO_SIZE_MAX + 2])
def test_impossible_features(size: int) -> None:
    """Features have two bytes each, and there are not that many."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(values={HELLO: bytes(size)}))

    assert f"{size} bytes of features" in failure_of(bootstrap).text


@pytest.mark.parametrize("value", [b"", features_value(0xFFFF, 0, 7, 7)])
def test_odd_features(value: bytes) -> None:
    """None at all, unknown ones and repeated ones are no mistake."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(values={HELLO: value}))

    assert bootstrap.is_done
    assert frozenset({0xFFFF, 0, 7} if value else ()) == bootstrap.negotiated.features


CORRUPT = (b"", b"\xff", b"[]", b"{", ERROR_MAP.encode()[:-1], b'{"version":3,"revision":1,"errors":{}}')


@pytest.mark.parametrize("document", CORRUPT)
def test_corrupt_error_map(document: bytes) -> None:
    """The connection goes on without a map, and says why (decision C18)."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(values={MAP: document}))

    assert bootstrap.is_done
    assert bootstrap.negotiated.error_map is None
    assert "corrupt" in (bootstrap.negotiated.error_map_problem or "")
    assert HelloFeature.XERROR in bootstrap.negotiated.features


@pytest.mark.parametrize("document", CORRUPT)
def test_corrupt_error_map_to_the_letter(document: bytes) -> None:
    """Where it is asked for, the connection is given up, to be made without XERROR (RFC 0013 "Parsing the Error Map")."""
    bootstrap = Bootstrap(plan(renegotiate_on_corrupt_error_map=True))
    play(bootstrap, Answering(values={MAP: document}))

    assert FailureKind.CORRUPT_ERROR_MAP is failure_of(bootstrap).kind


@pytest.mark.parametrize("renegotiate", [False, True])
@pytest.mark.parametrize("status", [Status.UNKNOWN_COMMAND, Status.KEY_NOT_FOUND, 0xABCD])
def test_no_error_map(status: int, renegotiate: bool) -> None:
    """A node without a map is not one with a corrupt map."""
    bootstrap = Bootstrap(plan(renegotiate_on_corrupt_error_map=renegotiate))
    play(bootstrap, Answering(statuses={MAP: status}))

    assert bootstrap.is_done
    assert bootstrap.negotiated.error_map is None
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
    """The status is kept for the terminal state (decision C7), the words are for people."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(statuses={BUCKET: status}))
    failure = failure_of(bootstrap)

    assert (FailureKind.BUCKET, status) == (failure.kind, failure.status)
    assert status == bootstrap.bucket_status
    assert "'travel'" in failure.text
    assert words in failure.text


@pytest.mark.parametrize("status", [Status.KEY_NOT_FOUND, Status.UNKNOWN_COMMAND, Status.NO_BUCKET, 0xABCD])
def test_no_config(status: int) -> None:
    """A bucket without a config cannot be used; without a bucket there need not be one."""
    with_bucket, without = Bootstrap(plan()), Bootstrap(plan(bucket=None))
    for bootstrap in (with_bucket, without):
        play(bootstrap, Answering(statuses={CONFIG_OF: status}))

    assert status == failure_of(with_bucket).status
    assert without.is_done
    assert without.negotiated.config is None


def test_empty_config() -> None:
    """Nothing new is no config of its own, and is judged by who knows what was there before."""
    bootstrap = Bootstrap(plan())
    play(bootstrap, Answering(values={CONFIG_OF: b""}))

    assert bootstrap.is_done
    assert b"" == bootstrap.negotiated.config


# Nonsense.


def after(count: int) -> tuple[Bootstrap, list[Frame]]:
    """Return a bootstrap that has heard ``count`` good answers, and what it still waits for."""
    bootstrap, node = Bootstrap(plan()), Answering()
    pending = take_apart(bootstrap.start())
    for _ in range(count):
        pending += take_apart(bootstrap.receive(as_frame(node.answer(pending.pop(0)))))
    return bootstrap, pending


@pytest.mark.parametrize("count", range(7))
def test_another_opcode(count: int) -> None:
    """At every step: an answer of another kind ends it."""
    bootstrap, pending = after(count)
    bootstrap.receive(Frame(0x81, Opcode.GET, 0, 0, pending[0].opaque, 0, b"", b"", b"", b""))

    assert "with opcode 0x00" in failure_of(bootstrap).text


@pytest.mark.parametrize("count", range(7))
def test_what_it_awaits(count: int) -> None:
    """At every step: the requests that have no answer, and no other."""
    bootstrap, pending = after(count)

    assert [request.opaque for request in pending] == [
        opaque for opaque in range(bootstrap.last_opaque + 2) if bootstrap.awaits(opaque)
    ]


@given(
    st.integers(0, 6),
    st.integers(0, 0xFFFF) | st.sampled_from([0, 0x21]),
    st.binary(max_size=60) | st.sampled_from([ERROR_MAP.encode(), CONFIG.encode(), b"v=AAAA", b"SCRAM-SHA1"]),
    st.binary(max_size=30),
)
def test_garbage_at_every_step(count: int, status: int, value: bytes, extras: bytes) -> None:
    """Whatever the answer: the next step, or a failure with words of bounded length."""
    bootstrap, pending = after(count)
    data = bootstrap.receive(as_frame(respond(pending[0], status, value=value, extras=extras)))

    if bootstrap.failure is not None:
        assert b"" == data
        assert 600 > len(failure_of(bootstrap).text)
    else:
        assert NodeState.LOST is not bootstrap.state
        take_apart(data)


def test_nothing_is_awaited_after_a_failure() -> None:
    """What still comes does not bring it back to life."""
    bootstrap, pending = after(0)
    bootstrap.receive(as_frame(respond(pending[0], Status.UNKNOWN_COMMAND)))

    assert not any(bootstrap.awaits(request.opaque) for request in pending)
    failure_of(bootstrap)
