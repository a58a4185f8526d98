"""Bootstrap of a connection: HELLO, error map, SASL and bucket."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from tests.core.testing.node_client import NodeClient, ready_client, status_of, with_options
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.options import SCRAM_ITERATIONS_MIN
from triclinium_core.retry.couchbase import Status, parse_error_map
from triclinium_core.runtime.kv.connection.scram import MECHANISMS, ScramClient
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES


def granted(value: bytes) -> list[int]:
    """Return the feature codes in the value of a HELLO reply."""
    return list(struct.unpack(f">{len(value) // 2}H", value))


def test_hello_grants_offered_features_in_order() -> None:
    """HELLO omits unknown, unavailable and repeated features, and refuses an incomplete code."""
    wanted = [HelloFeature.XERROR, 0x7777, HelloFeature.REPORT_UNIT_USAGE, HelloFeature.JSON, HelloFeature.XERROR]
    least = NodeClient(with_options(features=frozenset({HelloFeature.XERROR})))
    client = NodeClient(FakeNode())

    assert [HelloFeature.XERROR, HelloFeature.JSON] == granted(client.hello(wanted).value)
    assert [HelloFeature.XERROR] == granted(least.hello(IMPLEMENTED_FEATURES).value)
    assert Status.INVALID_ARGUMENTS == status_of(client.ask(Opcode.HELLO, value=b"\0\7\0"))


def test_every_hello_replaces_the_features() -> None:
    """A second HELLO replaces the features of the first."""
    client = ready_client()
    client.hello([HelloFeature.XERROR])
    assert b"" == client.ask(Opcode.SET, key=b"a", extras=bytes(8)).extras

    client.hello([HelloFeature.MUTATION_SEQNO])

    assert 16 == len(client.ask(Opcode.SET, key=b"a", extras=bytes(8)).extras)


def test_notifications_need_duplex() -> None:
    """Notifications require duplex; if both forms are requested, only the brief one is granted."""
    client = NodeClient(FakeNode())
    full, brief = HelloFeature.CLUSTERMAP_NOTIFICATION, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF

    for feature in (full, brief):
        assert Status.INVALID_ARGUMENTS == status_of(client.hello([feature]))
        assert [feature, HelloFeature.DUPLEX] == granted(client.hello([feature, HelloFeature.DUPLEX]).value)
    assert [HelloFeature.DUPLEX, brief] == granted(client.hello([HelloFeature.DUPLEX, full, brief]).value)


def test_unknown_features_have_no_effect() -> None:
    """A node without brief notifications grants the full ones if both are requested; brief ones need no DUPLEX."""
    full, brief = HelloFeature.CLUSTERMAP_NOTIFICATION, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF
    client = NodeClient(with_options(features=IMPLEMENTED_FEATURES - {brief}))

    assert [HelloFeature.DUPLEX, full] == granted(client.hello([HelloFeature.DUPLEX, full, brief]).value)
    assert [] == granted(client.hello([brief]).value)


@pytest.mark.parametrize("feature", [HelloFeature.VATTR, HelloFeature.SUBDOC_DOCUMENT_MACRO])
def test_some_features_need_attributes(feature: HelloFeature) -> None:
    """HELLO for virtual attributes or macros is refused without extended attributes."""
    client = NodeClient(FakeNode())

    assert Status.INVALID_ARGUMENTS == status_of(client.hello([feature]))
    assert Status.SUCCESS == status_of(client.hello([feature, HelloFeature.XATTR]))


@rows(
    ("opcode", "key", "without", "expected"),
    [
        (Opcode.HELLO, b"", (), Status.NOT_SUPPORTED),
        (Opcode.SELECT_BUCKET, b"default", (), Status.NOT_SUPPORTED),
        (Opcode.NOOP, b"", (), Status.SUCCESS),
        (Opcode.HELLO, b"", (HelloFeature.UNORDERED_EXECUTION,), Status.SUCCESS),
        (Opcode.SELECT_BUCKET, b"default", (HelloFeature.UNORDERED_EXECUTION,), Status.SUCCESS),
    ],
)
def test_session_commands_wait_for_delayed_replies(
    opcode: Opcode, key: bytes, without: Sequence[HelloFeature], expected: Status
) -> None:
    """A command that may not be reordered waits; HELLO and SELECT_BUCKET behind one that may be are then refused."""
    client = ready_client(without=without)
    client.node.faults.next(Opcode.GET, delay(1.0))
    unanswered = client.send(client.encode_of(Opcode.GET, "ada") + client.encode(opcode, key=key))
    early, replies = client.wait(0.9), client.wait(1.0)

    assert ([], []) == (unanswered, early)
    assert [(Opcode.GET, Status.KEY_NOT_FOUND), (opcode, expected)] == [
        (reply.opcode, status_of(reply)) for reply in replies
    ]


def test_hello_does_not_overtake_an_earlier_reply() -> None:
    """HELLO that requests unordered execution waits for a delayed reply in order, and a HELLO behind it for both."""
    client = ready_client(without=[HelloFeature.UNORDERED_EXECUTION])
    client.node.faults.next(Opcode.GET, delay(1.0))
    unordered = HelloFeature.UNORDERED_EXECUTION.to_bytes(2, "big")
    unanswered = client.send(
        client.encode_of(Opcode.GET, "ada")
        + client.encode(Opcode.HELLO, value=unordered)
        + client.encode(Opcode.HELLO, value=unordered)
    )
    replies = client.wait(1.0)

    assert [] == unanswered
    assert [Opcode.GET, Opcode.HELLO, Opcode.HELLO] == [reply.opcode for reply in replies]
    assert [unordered, unordered] == [reply.value for reply in replies[1:]]


def test_hello_is_accepted_on_a_slow_network() -> None:
    """HELLO succeeds while replies are in transit: their commands are complete."""
    client = ready_client()
    client.node.network.slow_down(1.0)
    client.send(client.encode_of(Opcode.GET, "ada") + client.encode(Opcode.HELLO))

    assert [Status.KEY_NOT_FOUND, Status.SUCCESS] == [status_of(reply) for reply in client.wait(1.0)]


def test_hello_is_accepted_behind_a_delayed_hello() -> None:
    """A second HELLO succeeds when the delayed first one, which requests unordered execution, is complete."""
    client = NodeClient(FakeNode())
    unordered = HelloFeature.UNORDERED_EXECUTION.to_bytes(2, "big")
    client.node.faults.next(Opcode.HELLO, delay(1.0))
    unanswered = client.send(client.encode(Opcode.HELLO, value=unordered) * 2)

    assert [] == unanswered
    assert [unordered, unordered] == [reply.value for reply in client.wait(1.0)]


def test_error_map_in_the_requested_version() -> None:
    """A request for a newer version gets the newest one; version 0 and an incomplete version are refused."""
    client, old = NodeClient(FakeNode()), NodeClient(with_options(error_map=None))
    for asked, version, revision in ((1, 1, 13), (2, 2, 9), (3, 2, 9), (0xFFFF, 2, 9)):
        error_map = parse_error_map(client.ask(Opcode.GET_ERROR_MAP, value=asked.to_bytes(2, "big")).value)
        assert (version, revision) == (error_map.version, error_map.revision)

    assert Status.KEY_NOT_FOUND == status_of(client.ask(Opcode.GET_ERROR_MAP, value=b"\0\0"))
    assert Status.INVALID_ARGUMENTS == status_of(client.ask(Opcode.GET_ERROR_MAP, value=b"\2"))
    assert Status.UNKNOWN_COMMAND == status_of(old.ask(Opcode.GET_ERROR_MAP, value=b"\0\2"))


def test_lists_mechanisms() -> None:
    """A node lists its mechanisms in the order of its options; OAUTHBEARER is last, and only with tokens."""
    for options, mechanisms in (
        ({"sasl_mechanisms": ("PLAIN", "SCRAM-SHA1")}, b"PLAIN SCRAM-SHA1"),
        ({}, b"SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1 PLAIN"),
        ({"tokens": ("a.b.c",)}, b"SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1 PLAIN OAUTHBEARER"),
    ):
        assert mechanisms == NodeClient(with_options(**options)).ask(Opcode.SASL_LIST_MECHS).value


@rows(("options", "iterations"), [({}, SCRAM_ITERATIONS_MIN), ({"scram_iterations": 15_000}, 15_000)])
def test_scram_iterations(options: dict[str, int], iterations: int) -> None:
    """A node uses the fewest iterations that clients accept, unless its options set another number."""
    node = with_options(**options) if options else FakeNode()
    first = ScramClient("SCRAM-SHA1", "Administrator", "password", nonce="abc").first()
    challenge = NodeClient(node).ask(Opcode.SASL_AUTH, key=b"SCRAM-SHA1", value=first).value

    assert f"i={iterations}" == bytes(challenge).decode().rpartition(",")[2]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram_authenticates_both_sides(mechanism: str) -> None:
    """Each SCRAM mechanism authenticates client and node; user and password are UTF-8."""
    client = NodeClient(with_options(username="jürgen", password="ключ"))

    assert Status.SUCCESS == status_of(client.authenticate_scram(mechanism, "jürgen", "ключ"))
    assert Status.SUCCESS == status_of(client.ask(Opcode.NOOP))
    assert Status.SUCCESS == status_of(client.authenticate_plain("jürgen", "ключ"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("username", "password"), [("Administrator", "wrong"), ("nobody", "password")])
def test_refuses_wrong_credentials_at_the_end(mechanism: str, username: str, password: str) -> None:
    """A SCRAM exchange with an unknown user or a wrong password fails only at its last step."""
    client = NodeClient(FakeNode())
    client.hello([HelloFeature.XERROR])

    assert Status.AUTH_ERROR == status_of(client.authenticate_scram(mechanism, username, password))
    assert Status.NO_ACCESS == status_of(client.ask(Opcode.NOOP))


@pytest.mark.parametrize("mechanism", [b"PLAIN", b"OAUTHBEARER", b"scram-sha1", b"\xff"])
def test_refuses_mechanisms_that_are_not_offered(mechanism: bytes) -> None:
    """A mechanism that the node does not offer is refused like a wrong password."""
    node = with_options(sasl_mechanisms=("SCRAM-SHA1",))

    reply = NodeClient(node).ask(Opcode.SASL_AUTH, key=mechanism, value=b"\0Administrator\0password")

    assert Status.AUTH_ERROR == status_of(reply)


def test_keeps_the_steps_of_an_exchange_apart() -> None:
    """A step requires a started exchange, and an exchange cannot be started twice; a new one may follow."""
    client = NodeClient(FakeNode())
    first = ScramClient("SCRAM-SHA1", "Administrator", "password", nonce="abc").first()

    statuses = [
        status_of(client.ask(opcode, key=b"SCRAM-SHA1", value=value))
        for opcode, value in (
            (Opcode.SASL_AUTH, b"nonsense"),
            (Opcode.SASL_STEP, b"x"),
            (Opcode.SASL_AUTH, first),
            (Opcode.SASL_AUTH, first),
            (Opcode.SASL_STEP, b"x"),
        )
    ]

    invalid = Status.INVALID_ARGUMENTS
    assert [Status.AUTH_ERROR, invalid, Status.AUTH_CONTINUE, invalid, Status.AUTH_ERROR] == statuses
    assert Status.SUCCESS == status_of(client.authenticate_scram("SCRAM-SHA1"))


def test_authenticating_takes_the_bucket() -> None:
    """Authentication by a password deselects the bucket, and by a token keeps it; a failure revokes access."""
    client = ready_client(with_options(tokens=("a.b.c",)))
    message = b"n,,\x01auth=Bearer a.b.c\x01\x01"

    assert Status.SUCCESS == status_of(client.ask(Opcode.SASL_AUTH, key=b"OAUTHBEARER", value=message))
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.SUCCESS == status_of(client.authenticate_scram("SCRAM-SHA512"))
    assert Status.NO_BUCKET == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.AUTH_ERROR == status_of(client.authenticate_plain(password="wrong"))
    assert Status.NO_ACCESS == status_of(client.ask(Opcode.NOOP))


@rows(
    ("mechanism", "message", "expected"),
    [
        (b"PLAIN", b"\0Administrator\0password", Status.SUCCESS),
        (b"PLAIN", b"Administrator\0Administrator\0password", Status.SUCCESS),
        (b"PLAIN", b"somebody\0Administrator\0password", Status.AUTH_ERROR),
        (b"PLAIN", b"\0Administrator\0wrong", Status.AUTH_ERROR),
        (b"PLAIN", b"\0nobody\0password", Status.AUTH_ERROR),
        (b"PLAIN", b"", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01\x01", Status.SUCCESS),
        (b"OAUTHBEARER", b"n,,\x01auth=Bearer second\x01\x01", Status.SUCCESS),
        (b"OAUTHBEARER", b"n,a=ada,\x01auth=Bearer a.b.c\x01\x01", Status.SUCCESS),
        (b"OAUTHBEARER", b"n,,\x01auth=Bearer a.b.d\x01\x01", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"n,,\x01auth=Bearer \x01\x01", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"y,,\x01auth=Bearer a.b.c\x01\x01", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"a.b.c", Status.AUTH_ERROR),
        (b"OAUTHBEARER", b"", Status.AUTH_ERROR),
    ],
)
def test_reads_credentials(mechanism: bytes, message: bytes, expected: Status) -> None:
    """A client is accepted with user, password and at most the user's own identity, or a token as in RFC 7628."""
    client = NodeClient(with_options(tokens=("a.b.c", "second")))
    client.hello([HelloFeature.XERROR])

    assert expected == status_of(client.ask(Opcode.SASL_AUTH, key=mechanism, value=message))
    assert (expected == Status.SUCCESS) == (Status.SUCCESS == status_of(client.ask(Opcode.NOOP)))


@pytest.mark.parametrize(
    ("users", "names", "is_let_in"),
    [
        (None, ["ada"], True),
        (None, [], True),
        (("ada",), ["bob", "ada"], True),
        (("ada",), ["bob"], False),
        ((), ["ada"], False),
    ],
)
def test_lets_in_by_certificate(users: tuple[str, ...] | None, names: list[str], is_let_in: bool) -> None:
    """A client with an accepted certificate is authenticated and cannot use SASL; any other client must use SASL."""
    client = NodeClient(with_options(certificate_users=users))
    client.hello([HelloFeature.XERROR])
    client.node.certificate_shown(client.connection, names)
    client.node.certificate_shown(99, names)

    assert (Status.SUCCESS if is_let_in else Status.NO_ACCESS) == status_of(client.ask(Opcode.NOOP))
    assert (Status.NOT_SUPPORTED if is_let_in else Status.SUCCESS) == status_of(client.authenticate_plain())


def test_every_exchange_has_its_own_salt_and_nonce() -> None:
    """A node's challenges all differ, and are the same in each run."""
    challenges = []
    for node in (FakeNode(), FakeNode()):
        first = ScramClient("SCRAM-SHA1", "Administrator", "password", nonce="abc").first()
        for connection in (1, 2):
            reply = NodeClient(node, connection).ask(Opcode.SASL_AUTH, key=b"SCRAM-SHA1", value=first)
            challenges.append(reply.value)

    assert challenges[:2] == challenges[2:]
    assert challenges[0] != challenges[1]


def test_selects_and_leaves_buckets() -> None:
    """A connection has one bucket at a time. Selecting an unknown bucket keeps the current bucket."""
    client = ready_client(with_options(buckets=("default", "travel")))
    client.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")

    assert Status.SUCCESS == status_of(client.ask(Opcode.SELECT_BUCKET, key=b"travel"))
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.NO_ACCESS == status_of(client.ask(Opcode.SELECT_BUCKET, key=b"nowhere"))
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.SUCCESS == status_of(client.ask(Opcode.SELECT_BUCKET, key=b"@no bucket@"))
    assert Status.NO_BUCKET == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.SUCCESS == status_of(client.ask(Opcode.SELECT_BUCKET, key=b"default"))
    assert b"1" == client.ask_of(Opcode.GET, "ada").value
