"""News of a config, unasked."""

from __future__ import annotations

import struct

from tests.core.testing.node_client import USUAL_FEATURES, NodeClient, as_json, ready_client
from triclinium_core.kv.wire.compression import inflate
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Magic, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import encode_request, encode_server_response
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.outbox import SendReply

FULL = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION)
BRIEF = (HelloFeature.DUPLEX, HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)


def test_brings_the_config_or_only_its_version() -> None:
    """A full notification has the config, a brief one says that there is one; both name bucket and version."""
    full = ready_client(features=[*USUAL_FEATURES, *FULL])
    brief = ready_client(full.node, connection=2, features=[*USUAL_FEATURES, *BRIEF])
    actions = full.node.set_config_revision(8, 1.0, epoch=3)
    (long,), (short,) = full.take(actions), brief.take(actions)

    for frame in (long, short):
        assert (Magic.SERVER_REQUEST, ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION) == (frame.magic, frame.opcode)
        assert (b"default", struct.pack(">qq", 3, 8)) == (frame.key, frame.extras)
    assert (8, 3, "default") == tuple(as_json(long.value)[name] for name in ("rev", "revEpoch", "name"))
    assert (Datatype.JSON, Datatype.RAW, b"") == (long.datatype, short.datatype, short.value)


def test_brings_the_global_config_where_there_is_no_bucket() -> None:
    """Without a bucket the key is empty and the config the global one."""
    client = ready_client(features=[*USUAL_FEATURES, *FULL], bucket=None)
    (frame,) = client.take(client.node.set_config_revision(2, 0.0))

    assert b"" == frame.key
    assert "name" not in as_json(frame.value)


def test_comes_deflated_and_untyped_as_granted() -> None:
    """A notification keeps to the datatypes of its connection."""
    deflated = ready_client(features=[*USUAL_FEATURES, *FULL, HelloFeature.SNAPPY_EVERYWHERE])
    untyped = ready_client(deflated.node, connection=2, features=FULL)
    actions = deflated.node.set_config_revision(2, 0.0)
    (first,), (second,) = deflated.take(actions), untyped.take(actions)

    assert Datatype.JSON | Datatype.SNAPPY == first.datatype
    assert Datatype.RAW == second.datatype
    assert inflate(first.value) == second.value


def test_goes_to_nobody_else() -> None:
    """Who has not asked, or is not authenticated, hears nothing; the config is new all the same."""
    node = FakeNode()
    silent = ready_client(node, connection=1)
    stranger = NodeClient(node, connection=2)
    stranger.hello(FULL)

    assert [] == list(node.set_config_revision(2, 0.0))
    assert 2 == as_json(silent.ask(Opcode.GET_CLUSTER_CONFIG).value)["rev"]
    assert (1, 2) == node.config_version


def test_a_full_one_need_not_be_repeated() -> None:
    """After a full notification a wrong vbucket brings no config where the client wants none twice."""
    features = [*USUAL_FEATURES, HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP]
    full = ready_client(features=[*features, *FULL])
    brief = ready_client(full.node, connection=2, features=[*features, *BRIEF])
    full.node.set_config_revision(2, 0.0)

    assert b"" == full.ask_of(Opcode.GET, "ada", vbucket=5000).value
    assert b"" != brief.ask_of(Opcode.GET, "ada", vbucket=5000).value


def test_needs_no_answer() -> None:
    """A client's answer to a notification is dropped."""
    client = ready_client(features=[*USUAL_FEATURES, *FULL])
    commands = len(client.node.command_log)

    assert [] == client.send(encode_server_response(ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION, opaque=1))
    assert commands == len(client.node.command_log)
    assert not client.is_hung_up


def test_takes_room() -> None:
    """It has to be written like any reply."""
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
