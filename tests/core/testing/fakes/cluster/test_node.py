"""Node as a state machine, which gets bytes and time and returns actions, with and without faults."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from tests.core.testing.http_client import HttpClient
from tests.core.testing.node_client import NodeClient, as_json, ready_client, status_of, value_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.cluster.command_log import COMMAND_LOG_MAX
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.fakes.faults import delay

STORE = bytes(8)

QUESTION = encode_request(Opcode.SASL_LIST_MECHS, opaque=1)
"""Request to which a node responds without authentication."""


def write(client: NodeClient, value: bytes = b"1") -> Sequence[NodeAction]:
    """Return the node's actions for this client's write of the document "ada"."""
    data = client.encode_of(Opcode.SET, "ada", extras=STORE, value=value)
    return client.node.bytes_received(client.connection, data, client.now)


def bytes_of(actions: Sequence[NodeAction]) -> bytes:
    """Return the bytes of all replies."""
    return b"".join(action.data for action in actions if isinstance(action, SendReply))


@rows(
    ("fault", "applies", "sends", "hangs_up", "logged"),
    [
        (faults.drop_response(), True, False, False, None),
        (faults.hang_up(), False, False, True, None),
        (faults.hang_up_after_applying(), True, False, True, None),
        (faults.hang_up_mid_reply(), True, True, True, None),
        (faults.hang_up_mid_reply(bytes_sent=0), True, False, True, None),
        (faults.garble(), True, True, False, None),
        (faults.wrong_length(), True, True, False, None),
        (faults.status(0x7FF0), False, True, False, 0x7FF0),
        (faults.temporary_failure(), False, True, False, Status.TEMPORARY_FAILURE),
        (faults.locked(), False, True, False, Status.LOCKED),
        (faults.not_my_vbucket(), False, True, False, Status.NOT_MY_VBUCKET),
        (delay(0.0), True, True, False, Status.SUCCESS),
        (delay(1.0), True, False, False, Status.SUCCESS),
    ],
)
def test_fault_strikes(fault: faults.Fault, applies: bool, sends: bool, hangs_up: bool, logged: int | None) -> None:
    """The fault determines whether the node applies the command, replies or closes; the log has fault and status."""
    client = ready_client()
    client.node.faults.next(Opcode.SET, fault)

    actions = write(client)
    command = client.node.command_log[-1]

    assert [SendReply] * sends + [HangUp] * hangs_up == [type(action) for action in actions]
    assert (b"1" if applies else None) == value_of(client.node)
    assert (fault, applies, logged) == (command.fault, command.applied, command.status)


def test_status_fault_is_sent_unchanged() -> None:
    """A status fault's reply has the given status, body and datatype, regardless of the negotiated features."""
    client = ready_client(features=[])
    client.node.faults.next(None, faults.status(0x7FF2, body=b"anything", datatype=0xFF))
    reply = client.ask_of(Opcode.GET, "ada")

    assert (0x7FF2, b"anything", 0xFF) == (reply.status, reply.value, reply.datatype)


@pytest.mark.parametrize("with_config", [True, False])
def test_not_my_vbucket_with_or_without_config(with_config: bool) -> None:
    """The fault determines whether each reply has a config, even if the client negotiated deduplication."""
    client = ready_client()
    client.hello([*client.features, HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP])
    client.node.faults.always(None, faults.not_my_vbucket(with_config))

    for _ in range(2):
        reply = client.ask_of(Opcode.GET, "ada")
        assert Status.NOT_MY_VBUCKET == status_of(reply)
        expected = (Datatype.JSON, "default") if with_config else (Datatype.RAW, None)
        assert expected == (reply.datatype, as_json(reply.value or b"{}").get("name"))


@pytest.mark.parametrize("bytes_sent", [0, 1, 12, 24, 39, 40, 1000])
def test_closes_mid_reply(bytes_sent: int) -> None:
    """The node sends the given number of bytes of a reply, but never all of them, and closes."""
    client = ready_client()
    expected = bytes_of(write(ready_client()))
    client.node.faults.next(Opcode.SET, faults.hang_up_mid_reply(bytes_sent=bytes_sent))
    actions = write(client)

    assert 40 == len(expected)
    assert expected[: min(bytes_sent, 39)] == bytes_of(actions)
    assert HangUp(client.connection) == actions[-1]


def test_garbles_every_byte() -> None:
    """A garbled reply is not a frame; inverting its bytes gives the real reply."""
    client = ready_client()
    client.node.faults.next(Opcode.SET, faults.garble())
    sent = bytes_of(write(client))

    assert [] == client.frames.receive(sent)
    assert client.frames.malformed is not None
    assert bytes_of(write(ready_client())) == bytes(byte ^ 0xFF for byte in sent)


@pytest.mark.parametrize(("announced", "is_malformed"), [(0xFFFF_FFFF, True), (15, True), (17, False)])
def test_announces_a_wrong_length(announced: int, is_malformed: bool) -> None:
    """The header announces a wrong length: impossible, too short for the extras, or longer than the body."""
    client = ready_client()
    client.node.faults.next(Opcode.SET, faults.wrong_length(announced=announced))
    sent = bytes_of(write(client))

    assert announced == struct.unpack_from(">I", sent, 8)[0]
    assert [] == client.frames.receive(sent)
    assert is_malformed == (client.frames.malformed is not None)


@pytest.mark.parametrize(
    "opcode", [Opcode.HELLO, Opcode.GET_ERROR_MAP, Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH, Opcode.SASL_STEP]
)
def test_connection_lost_during_bootstrap(opcode: Opcode) -> None:
    """A fault for a bootstrap command closes the connection at this command, even without authentication."""
    client = NodeClient(FakeNode())
    client.node.faults.next(opcode, faults.hang_up())
    parts = {} if opcode is Opcode.HELLO else {"key": b"SCRAM-SHA1", "value": b"x"}

    assert [] == client.send(client.encode(opcode, **parts))
    assert client.is_hung_up


def test_closed_connection_is_ignored() -> None:
    """If a command closes the connection, the node neither responds to nor logs the commands after it."""
    client = ready_client()
    commands = len(client.node.command_log)
    client.node.faults.next(Opcode.NOOP, faults.hang_up())

    replies = client.send(client.encode(Opcode.NOOP) + client.encode(Opcode.NOOP))

    assert [] == replies
    assert [] == list(client.node.bytes_received(1, client.encode(Opcode.NOOP), 0.0))
    assert commands + 1 == len(client.node.command_log)
    client.node.connection_lost(1, 0.0)


def test_delayed_reply() -> None:
    """A delayed command is applied immediately; its reply is sent at the node's wakeup."""
    client = ready_client()
    client.now = 10.0
    client.node.faults.next(Opcode.SET, delay(0.25))
    assert [] == list(write(client))

    assert b"1" == value_of(client.node)
    assert 10.25 == client.node.wakeup
    assert [] == client.wait(10.2)
    assert [Status.SUCCESS] == [reply.status for reply in client.wait(10.25)]
    assert math.inf == client.node.wakeup


@rows(
    ("is_unordered", "delays", "immediate", "first_wakeup", "order"),
    [
        (True, (2.0, 1.0), 1, 1.0, [3, 2, 1]),
        (False, (2.0, 1.0), 0, 2.0, [1, 2, 3]),
        (True, (1.0, 1.0, 1.0), 0, 1.0, [1, 2, 3]),
    ],
)
def test_delayed_replies_keep_their_order(
    is_unordered: bool, delays: Sequence[float], immediate: int, first_wakeup: float, order: list[int]
) -> None:
    """A delayed reply delays the later ones, except with unordered execution, which keeps the order of equal times."""
    client = ready_client(without=[] if is_unordered else [HelloFeature.UNORDERED_EXECUTION])
    for seconds in delays:
        client.node.faults.next(Opcode.GET, delay(seconds))
    base = client.opaque
    replies = client.send(b"".join(client.encode_of(Opcode.GET, "ada") for _ in range(3)))
    found = len(replies), client.node.wakeup
    replies += client.wait(1.0) + client.wait(2.0)

    assert order == [reply.opaque - base for reply in replies]
    assert (immediate, first_wakeup) == found


def test_due_replies_are_sent_first() -> None:
    """A reply that is overdue when bytes arrive is sent before their reply."""
    client = ready_client()
    client.node.faults.next(Opcode.NOOP, delay(1.0))
    base = client.opaque
    client.send(client.encode(Opcode.NOOP))
    client.now = 5.0

    assert [1, 2] == [reply.opaque - base for reply in client.send(client.encode(Opcode.NOOP))]


def test_lost_connection_gets_no_reply() -> None:
    """The node drops the delayed replies of a lost connection, and sends those of other connections."""
    client = ready_client()
    other = ready_client(client.node, connection=2)
    client.node.faults.always(Opcode.NOOP, delay(1.0))
    client.send(client.encode(Opcode.NOOP))
    other.now = 0.5
    other.send(other.encode(Opcode.NOOP))
    client.node.connection_lost(1, 0.5)

    assert 1.5 == client.node.wakeup
    assert [2] == [action.connection for action in client.node.time_passed(2.0)]


def test_connection_number_is_unique() -> None:
    """Opening a connection twice raises ValueError."""
    node = FakeNode()
    node.connection_opened(1, 0.0)

    with pytest.raises(ValueError, match="connection 1 "):
        node.connection_opened(1, 0.0)


def test_time_does_not_go_back() -> None:
    """A call with an earlier time than the call before it raises ValueError."""
    node = FakeNode()
    node.time_passed(5.0)

    for call in (
        lambda: node.accepts(4.9),
        lambda: node.connection_opened(1, 4.9),
        lambda: node.bytes_received(1, b"", 4.9),
        lambda: node.connection_lost(1, 4.9),
        lambda: node.time_passed(4.9),
        lambda: node.set_config_revision(2, 4.9),
    ):
        with pytest.raises(ValueError, match="now=4.9 .*5.0"):
            call()


def test_unknown_connection_is_ignored() -> None:
    """Bytes and losses of an unknown connection are ignored."""
    node = FakeNode()

    assert [] == list(node.bytes_received(7, b"\x80", 0.0))
    node.connection_lost(7, 0.0)
    assert [] == node.command_log


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\x81", b"\x80" + bytes(7) + b"\xff" * 16], ids=repr)
def test_closes_on_invalid_bytes(data: bytes) -> None:
    """Commands before invalid bytes are answered, then the node closes the connection."""
    client = ready_client()
    replies = client.send(client.encode(Opcode.NOOP) + data)

    assert 1 == len(replies)
    assert client.is_hung_up


def test_unknown_opcode() -> None:
    """An unknown opcode gets UNKNOWN_COMMAND, even without authentication."""
    client = NodeClient(FakeNode())
    client.hello([HelloFeature.XERROR])
    reply = client.ask(0x77, key=b"ada", value=b"1")

    assert Status.UNKNOWN_COMMAND == status_of(reply)
    assert "0x77" in str(as_json(reply.value))
    assert (0x77, b"ada") == (client.node.command_log[-1].opcode, client.node.command_log[-1].key)


def test_logs_every_command() -> None:
    """The log has each command's connection, document, time and result."""
    client = ready_client()
    people = client.node.collections.create("_default", "people")
    client.now = 2.5
    reply = client.ask_of(Opcode.SET, "ada", collection_id=people, extras=STORE)
    client.ask_of(Opcode.DELETE, "ada", collection_id=people, cas=reply.cas)
    bootstrap, (written, removed) = client.node.command_log[:-2], client.node.command_log[-2:]

    assert [Opcode.HELLO, Opcode.SASL_AUTH, Opcode.SELECT_BUCKET] == [command.opcode for command in bootstrap]
    assert [b'{"a":"test"}', b"PLAIN", b"default"] == [command.key for command in bootstrap]
    assert (1, Opcode.SET, b"ada", 2.5, "default", people, 368, Status.SUCCESS, True, None) == (
        written.connection,
        written.opcode,
        written.key,
        written.now,
        written.bucket,
        written.collection_id,
        written.vbucket,
        written.status,
        written.applied,
        written.fault,
    )
    assert (reply.cas, client.opaque) == (removed.cas, removed.opaque)
    assert isinstance(removed.opcode, Opcode)


def test_logs_a_malformed_key_unchanged() -> None:
    """A key without a valid collection prefix is logged unchanged."""
    client = ready_client()
    client.ask(Opcode.GET, key=b"\x80")

    assert (b"\x80", 0) == (client.node.command_log[-1].key, client.node.command_log[-1].collection_id)


def test_full_log_drops_its_older_half() -> None:
    """A full log drops the older half of its commands before the next one is added."""
    client = ready_client()
    log, half = client.node.command_log, COMMAND_LOG_MAX // 2
    log[:] = [log[0]] * half + [log[1]] * half
    client.ask(Opcode.NOOP)

    assert [Opcode.SASL_AUTH] * half + [Opcode.NOOP] == [command.opcode for command in log]


def test_logs_whether_the_store_changed() -> None:
    """A write, a lock and an unlock are logged as applied; a read and a refused write are not."""
    client = ready_client()
    write(client)
    cas = client.ask_of(Opcode.GET_AND_LOCK, "ada").cas
    client.ask_of(Opcode.GET, "ada")
    write(client)
    client.ask_of(Opcode.UNLOCK, "ada", cas=cas)

    assert [True, True, False, False, True] == [command.applied for command in client.node.command_log[-5:]]


def session(piece: int | None) -> tuple[bytes, bool]:
    """Return the received bytes of a session, and whether the node closed it; bytes are sent in pieces of this size."""
    client = ready_client()
    client.received = b""
    requests = [
        client.encode_of(Opcode.SET, "ada", extras=STORE, value=b"1" * 100),
        client.encode_of(Opcode.GET, "ada"),
        client.encode(Opcode.NOOP),
        client.encode_of(Opcode.DELETE, "ada"),
        b"trailing bytes",
    ]
    client.send(b"".join(requests), piece=piece)
    return client.received, client.is_hung_up


@pytest.mark.parametrize("piece", [1, 23, 24, 25, 99])
def test_bytes_may_be_cut_anywhere(piece: int) -> None:
    """A session has the same replies and the same end if its bytes arrive in pieces of any size."""
    whole = session(None)

    assert whole[1]
    assert whole == session(piece)


def test_set_ports_changes_the_config() -> None:
    """If a node gets ports after its creation, its configs list these ports; an invalid port is refused."""
    client = ready_client()
    client.node.set_ports(12000, 12001, services={Service.QUERY: 12002}, tls_services={Service.QUERY: 12003})
    config = as_json(client.ask(Opcode.GET_CLUSTER_CONFIG).value)
    services = {"kv": 12000, "kvSSL": 12001, "n1ql": 12002, "n1qlSSL": 12003}

    assert [{"services": services, "thisNode": True, "hostname": "127.0.0.1"}] == config["nodesExt"]
    assert (12000, 12001) == (client.node.options.port, client.node.options.tls_port)
    with pytest.raises(errors.InvalidArgumentException) as caught:
        client.node.set_ports(0)
    assert ("port", 12000) == (caught.value.parameter, client.node.options.port)


@given(data=st.binary(max_size=200), piece=st.integers(1, 50), is_ready=st.booleans())
def test_no_bytes_raise(data: bytes, piece: int, is_ready: bool) -> None:
    """A node replies to any bytes of a client, waits or closes, without raising."""
    client = ready_client() if is_ready else NodeClient(FakeNode())

    for start in range(0, len(data), piece):
        actions = client.node.bytes_received(1, data[start : start + piece], 0.0)
        assert all(isinstance(action, SendReply | HangUp) for action in actions)


REQUESTS = st.fixed_dictionaries(
    {
        "extras": st.binary(max_size=24),
        "key": st.binary(max_size=12),
        "value": st.binary(max_size=40),
        "cas": st.sampled_from([0, 1, 2**64 - 1]),
        "vbucket": st.sampled_from([0, 368, 1023, 1024, 0xFFFF]),
        "datatype": st.integers(0, 255),
        "framing_extras": st.binary(max_size=6),
    }
)


@given(opcode=st.sampled_from(list(Opcode)), parts=REQUESTS)
def test_no_request_raises(opcode: Opcode, parts: dict[str, int | bytes]) -> None:
    """Any complete frame gets exactly one reply, with a status of the protocol."""
    reply = ready_client().ask(opcode, **parts)

    assert reply.status in set(Status)


def test_commands_wait_for_written_replies() -> None:
    """Unwritten replies are bounded by the limit plus one reply; written ones let waiting commands proceed."""
    node = FakeNode()
    node.connection_opened(1, 0.0, unsent_size_max=200)
    unsent = sizes_of(node.bytes_received(1, 100 * QUESTION, 0.0))
    reply, most, room = unsent[0], 0, set()
    while unsent:
        most = max(most, sum(unsent))
        room.add(node.has_room(1))
        unsent = [*unsent[1:], *sizes_of(node.replies_written(1, unsent[0], 0.0))]

    assert 100 == len(node.command_log)
    assert 200 <= most < 200 + reply
    assert {False, True} == room
    assert node.has_room(1)


@pytest.mark.parametrize("is_cut", [False, True], ids=["slow", "cut"])
def test_held_back_replies_count_as_unwritten(is_cut: bool) -> None:
    """Delayed and cut replies count against the limit of unwritten bytes."""
    node = FakeNode()
    node.connection_opened(1, 0.0, unsent_size_max=200)
    node.network.slow_down(1.0)
    node.bytes_received(1, 100 * QUESTION, 0.0)
    if is_cut:
        node.network.cut(None)
    node.time_passed(1.0)

    assert 0 < len(node.command_log) < 20
    assert not node.has_room(1)


def test_no_limit_without_reports_of_writes() -> None:
    """Without a limit, all commands are carried out; reports on an unknown connection are ignored."""
    client = ready_client()
    client.send(100 * QUESTION)

    assert client.node.has_room(1)
    assert client.node.has_room(2)
    assert [] == client.node.replies_written(2, 1, 0.0)


def sizes_of(actions: Sequence[NodeAction]) -> list[int]:
    """Return the sizes of the replies."""
    return [len(action.data) for action in actions if isinstance(action, SendReply)]


def test_log_listener() -> None:
    """A listener gets each logged command and request with its status, until it is removed."""
    client = ready_client()
    node = client.node
    seen: list[object] = []
    before = len(node.command_log)
    node.set_log_listener(seen.append)
    client.ask_of(Opcode.GET, "ada")
    http = HttpClient(node, Service.QUERY, connection=2)
    http.ask("POST", "/query/service", b'{"statement": "SELECT 1"}')
    node.set_log_listener(None)
    client.ask_of(Opcode.GET, "ada")

    assert [*node.command_log[before:-1], *node.request_log] == seen
    assert [Status.KEY_NOT_FOUND, 200] == [logged.status for logged in seen]  # type: ignore[attr-defined]
