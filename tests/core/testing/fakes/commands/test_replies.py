"""Replies for connections with different features, and notifications."""

from __future__ import annotations

import struct

import pytest

from tests.core.testing.node_client import USUAL_FEATURES, NodeClient, as_json, ready_client, status_of
from triclinium_core.kv.wire.compression import inflate
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Magic, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import encode_request, encode_server_response
from triclinium_core.kv.wire.framing_extras import ResponseFrameInfo, decode_server_duration_us, parse_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.outbox import SendReply
from triclinium_core.testing.fakes.faults import delay


def test_old_statuses_for_an_old_client() -> None:
    """Without extended errors, writing a locked document gets KEY_EXISTS; locking and unlocking fail temporarily."""
    client = ready_client(features=[])
    client.node.documents.put("default", "ada", b"1")

    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=1))
    client.node.documents.lock("default", "ada")
    assert Status.KEY_EXISTS == status_of(client.ask_of(Opcode.SET, "ada", extras=bytes(8)))
    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=1))
    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.GET_AND_LOCK, "ada"))
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "bob"))


def test_old_client_gets_no_collection_errors() -> None:
    """A client without collections gets the status for invalid arguments if the collection is unknown."""
    client = ready_client(features=[])
    client.node.collections.drop("_default", "_default")
    assert Status.INVALID_ARGUMENTS == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.INVALID_ARGUMENTS == status_of(client.ask(Opcode.GET_COLLECTION_ID, value=b"a.b"))

    client.hello([HelloFeature.COLLECTIONS])

    assert Status.UNKNOWN_COLLECTION == status_of(client.ask_of(Opcode.GET, "ada"))


@pytest.mark.parametrize("is_authenticated", [True, False])
def test_closes_if_an_old_client_has_no_status(is_authenticated: bool) -> None:
    """A missing bucket or missing rights close the connection of a client without extended errors."""
    client = ready_client(features=[], bucket=None) if is_authenticated else NodeClient(FakeNode())

    assert [] == client.send(client.encode_of(Opcode.GET, "ada"))
    assert client.is_hung_up
    assert (None, False) == (client.node.command_log[-1].status, client.node.command_log[-1].applied)


def test_explains_failures_if_granted() -> None:
    """A refusal has a text with extended errors, and no text without them."""
    explained = ready_client().ask(Opcode.NOOP, value=b"1")
    unexplained = ready_client(features=[]).ask(Opcode.NOOP, value=b"1")

    assert {"context": "a value is not allowed"} == as_json(explained.value)["error"]
    assert (b"", Datatype.RAW) == (unexplained.value, unexplained.datatype)


@pytest.mark.parametrize(("seconds", "least", "most"), [(0.0, 20, 30), (0.5, 495_000, 505_000)])
def test_reports_the_server_duration(seconds: float, least: float, most: float) -> None:
    """If tracing was granted, the reply's framing extras contain the server duration, including a delay."""
    client = ready_client(features=[HelloFeature.TRACING])
    client.node.faults.next(Opcode.NOOP, delay(seconds))
    (reply,) = client.send(client.encode(Opcode.NOOP)) + client.wait(seconds)
    code = parse_framing_extras(reply.framing_extras)[ResponseFrameInfo.SERVER_DURATION]

    assert Magic.FLEXIBLE_CLIENT_RESPONSE == reply.magic
    assert least < decode_server_duration_us(int.from_bytes(code, "big")) < most


FULL = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION)
BRIEF = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)


def test_notification_has_the_config_or_its_version() -> None:
    """A full notification contains the config, a brief one only bucket and version."""
    full = ready_client(features=[*USUAL_FEATURES, *FULL])
    brief = ready_client(full.node, connection=2, features=[*USUAL_FEATURES, *BRIEF])
    actions = full.node.set_config_revision(8, 1.0, epoch=3)
    (long,), (short,) = full.take(actions), brief.take(actions)

    for frame in (long, short):
        assert (Magic.SERVER_REQUEST, ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION) == (frame.magic, frame.opcode)
        assert (b"default", struct.pack(">qq", 3, 8)) == (frame.key, frame.extras)
    assert (8, 3, "default") == tuple(as_json(long.value)[name] for name in ("rev", "revEpoch", "name"))
    assert (Datatype.JSON, Datatype.RAW, b"") == (long.datatype, short.datatype, short.value)


def test_notification_without_a_bucket_is_global() -> None:
    """Without a selected bucket, the notification's key is empty and its config is the global one."""
    client = ready_client(features=[*USUAL_FEATURES, *FULL], bucket=None)
    (frame,) = client.take(client.node.set_config_revision(2, 0.0))

    assert b"" == frame.key
    assert "name" not in as_json(frame.value)


def test_notification_obeys_the_granted_datatypes() -> None:
    """A notification is deflated and marked as JSON only if the connection permits it."""
    deflated = ready_client(features=[*USUAL_FEATURES, *FULL, HelloFeature.SNAPPY_EVERYWHERE])
    untyped = ready_client(deflated.node, connection=2, features=FULL)
    actions = deflated.node.set_config_revision(2, 0.0)
    (first,), (second,) = deflated.take(actions), untyped.take(actions)

    assert Datatype.JSON | Datatype.SNAPPY == first.datatype
    assert Datatype.RAW == second.datatype
    assert inflate(first.value) == second.value


def test_notification_needs_a_subscription() -> None:
    """Clients that are not subscribed or not authenticated get no notification, but the config changes."""
    node = FakeNode()
    silent = ready_client(node, connection=1)
    stranger = NodeClient(node, connection=2)
    stranger.hello(FULL)

    assert [] == list(node.set_config_revision(2, 0.0))
    assert 2 == as_json(silent.ask(Opcode.GET_CLUSTER_CONFIG).value)["rev"]
    assert (1, 2) == node.config_version


def test_full_notification_is_not_repeated() -> None:
    """With deduplication, a refusal omits the config after a full notification, but not after a brief one."""
    features = [*USUAL_FEATURES, HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP]
    full = ready_client(features=[*features, *FULL])
    brief = ready_client(full.node, connection=2, features=[*features, *BRIEF])
    full.node.set_config_revision(2, 0.0)

    assert b"" == full.ask_of(Opcode.GET, "ada", vbucket=5000).value
    assert b"" != brief.ask_of(Opcode.GET, "ada", vbucket=5000).value


def test_notification_needs_no_response() -> None:
    """The node ignores a client's response to a notification."""
    client = ready_client(features=[*USUAL_FEATURES, *FULL])
    commands = len(client.node.command_log)

    assert [] == client.send(encode_server_response(ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION, opaque=1))
    assert commands == len(client.node.command_log)
    assert not client.is_hung_up


def test_notification_counts_as_unwritten() -> None:
    """A notification counts against the limit of unwritten bytes, like any reply."""
    node = FakeNode()
    node.connection_opened(1, 0.0, unsent_size_max=1)
    hello = encode_request(Opcode.HELLO, opaque=1, value=struct.pack(">2H", *FULL))
    login = encode_request(Opcode.SASL_AUTH, opaque=2, key=b"PLAIN", value=b"\0Administrator\0password")
    for request in (hello, login):
        (reply,) = node.bytes_received(1, request, 0.0)
        assert isinstance(reply, SendReply)
        node.replies_written(1, len(reply.data), 0.0)
    before = node.has_room(1)
    node.set_config_revision(2, 0.0)

    assert [True, False] == [before, node.has_room(1)]
