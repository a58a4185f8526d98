"""What an answer becomes for a connection with more or fewer features."""

from __future__ import annotations

import pytest

from tests.core.testing.node_client import NodeClient, as_json, ready_client, status_of
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Magic, Opcode
from triclinium_core.kv.wire.framing_extras import (
    ResponseFrameInfo,
    decode_server_duration_us,
    parse_framing_extras,
)
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.faults import delay


def test_an_old_client_is_told_old_statuses() -> None:
    """Without extended errors a lock looks like another CAS, and a failed unlock like a temporary failure."""
    client = ready_client(features=[])
    client.node.documents.put("default", "ada", b"1")

    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=1))
    client.node.documents.lock("default", "ada")
    assert Status.KEY_EXISTS == status_of(client.ask_of(Opcode.SET, "ada", extras=bytes(8)))
    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=1))
    assert Status.TEMPORARY_FAILURE == status_of(client.ask_of(Opcode.GET_AND_LOCK, "ada"))
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "bob"))


def test_an_old_client_is_told_nothing_of_collections() -> None:
    """Whoever has not heard of collections cannot be told that one is unknown, with or without extended errors."""
    client = ready_client(features=[])
    client.node.collections.drop("_default", "_default")
    assert Status.INVALID_ARGUMENTS == status_of(client.ask_of(Opcode.GET, "ada"))
    assert Status.INVALID_ARGUMENTS == status_of(client.ask(Opcode.GET_COLLECTION_ID, value=b"a.b"))

    client.hello([HelloFeature.COLLECTIONS])

    assert Status.UNKNOWN_COLLECTION == status_of(client.ask_of(Opcode.GET, "ada"))


@pytest.mark.parametrize("is_authenticated", [True, False])
def test_hangs_up_on_an_old_client_that_cannot_be_told(is_authenticated: bool) -> None:
    """A missing bucket and missing rights have no old status."""
    client = ready_client(features=[], bucket=None) if is_authenticated else NodeClient(FakeNode())

    assert [] == client.send(client.encode_of(Opcode.GET, "ada"))
    assert client.is_hung_up
    assert (None, False) == (client.node.command_log[-1].status, client.node.command_log[-1].applied)


def test_explains_failures_where_that_was_granted() -> None:
    """A failure has a text with extended errors, and none without."""
    explained = ready_client().ask(Opcode.NOOP, value=b"1")
    unexplained = ready_client(features=[]).ask(Opcode.NOOP, value=b"1")

    assert {"error": {"context": "a value must not be given"}} == as_json(explained.value)
    assert (b"", Datatype.RAW) == (unexplained.value, unexplained.datatype)


@pytest.mark.parametrize(("seconds", "least", "most"), [(0.0, 20, 30), (0.5, 495_000, 505_000)])
def test_tells_how_long_it_took(seconds: float, least: float, most: float) -> None:
    """The server's duration comes in a flexible frame where that was granted, a delay included."""
    client = ready_client(features=[HelloFeature.TRACING])
    client.node.faults.next(Opcode.NOOP, delay(seconds))
    (reply,) = client.send(client.encode(Opcode.NOOP)) + client.wait(seconds)
    code = parse_framing_extras(reply.framing_extras)[ResponseFrameInfo.SERVER_DURATION]

    assert Magic.FLEXIBLE_CLIENT_RESPONSE == reply.magic
    assert least < decode_server_duration_us(int.from_bytes(code, "big")) < most
