"""Range scans of a fake node, by the bytes of their frames."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from typing import Any

import pytest

from tests.core.testing.fakes.services.management.manager import BUCKETS, Manager
from tests.core.testing.node_client import NodeClient, ready_client, ready_clients, status_of
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.commands.scan import ITEMS_OF_A_REPLY, LIFETIME_SECONDS, SCANS_MAX
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.store.documents import vbucket_of
from triclinium_core.testing.fakes.store.histories import vbucket_uuid

VBUCKET = 3
KEYS = sorted(key for number in range(4000) if vbucket_of((key := f"k{number}").encode(), 128) == VBUCKET)
ALL = {"start": "AA==", "end": "/w=="}
META = struct.Struct(">IIQQB")


@pytest.fixture
def client() -> NodeClient:
    """Return a client of a node that has documents in one vbucket."""
    client = ready_client(FakeNodes(FakeNodeOptions(vbuckets=128), nodes=1)[0])
    for key in KEYS:
        client.node.documents.put("default", key, b"1")
    return client


def create(client: NodeClient, vbucket: int = VBUCKET, **wanted: Any) -> Frame:
    """Request the creation of a scan, and return the reply."""
    value = json.dumps(wanted).encode()
    return client.ask(Opcode.RANGE_SCAN_CREATE, vbucket=vbucket, value=value, datatype=Datatype.JSON)


def opened(client: NodeClient, **wanted: Any) -> bytes:
    """Create a scan and return its id."""
    reply = create(client, **wanted)
    assert Status.SUCCESS == status_of(reply)
    assert 16 == len(reply.value)
    return reply.value


def go_on(client: NodeClient, scan_id: bytes, items: int = 0, size: int = 0, vbucket: int = VBUCKET) -> list[Frame]:
    """Request a page of the scan, and return the replies."""
    extras = scan_id + struct.pack(">III", items, 0, size)
    return client.send(client.encode(Opcode.RANGE_SCAN_CONTINUE, vbucket=vbucket, extras=extras))


def keys_of(frames: list[Frame]) -> list[str]:
    """Return the keys of a page."""
    value, keys = b"".join(frame.value for frame in frames), []
    while value:
        size = value[0]
        keys.append(value[1 : 1 + size].decode())
        value = value[1 + size :]
    return keys


def term(text: str) -> str:
    """Return a text as one end of a range."""
    return b64encode(text.encode()).decode()


def test_a_page_comes_in_parts(client: NodeClient) -> None:
    """All replies of a page have the same opaque; the last one reports the end, which closes the scan."""
    scan_id = opened(client, key_only=True)
    frames = go_on(client, scan_id)

    assert len(KEYS) > 2 * ITEMS_OF_A_REPLY
    assert KEYS == keys_of(frames)
    assert [Status.SUCCESS] * (len(frames) - 1) + [Status.RANGE_SCAN_COMPLETE] == [frame.status for frame in frames]
    assert {client.opaque} == {frame.opaque for frame in frames}
    assert {bytes(4)} == {frame.extras for frame in frames}
    assert [Status.KEY_NOT_FOUND] == [status_of(frame) for frame in go_on(client, scan_id)]


def test_page_limits(client: NodeClient) -> None:
    """A page ends at the limit of items or bytes of its request, but has at least one item."""
    scan_id = opened(client, key_only=True)
    pages = [go_on(client, scan_id, items=3), go_on(client, scan_id, size=1), go_on(client, scan_id, size=7)]
    rest = go_on(client, scan_id, items=1000)

    assert [3, 1, 2] == [len(keys_of(page)) for page in pages]
    assert [Status.RANGE_SCAN_MORE] * 3 == [page[-1].status for page in pages]
    assert KEYS == [key for page in [*pages, rest] for key in keys_of(page)]


def test_scanned_documents(client: NodeClient) -> None:
    """A scan returns documents with their metadata, as they were when the scan was created."""
    client.node.documents.put("default", KEYS[0], b"2", flags=7, expires_after=60.0)
    stored = client.node.documents.get("default", KEYS[0])
    scan_id = opened(client, range={"start": term(KEYS[0]), "end": term(KEYS[0])})
    client.node.documents.put("default", KEYS[0], b"3")
    (frame,) = go_on(client, scan_id)

    assert stored is not None
    expiry = client.node.documents.unix_expiry(stored)
    meta = (7, expiry, stored.sequence_number, stored.cas, stored.datatype)
    assert b"\0\0\0\1" == frame.extras
    assert META.pack(*meta) + bytes([len(KEYS[0])]) + KEYS[0].encode() + b"\x012" == frame.value


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"start": term(KEYS[1]), "end": term(KEYS[3])}, KEYS[1:4]),
        ({"excl_start": term(KEYS[1]), "end": term(KEYS[3])}, KEYS[2:4]),
        ({"start": term(KEYS[1]), "excl_end": term(KEYS[3])}, KEYS[1:3]),
        ({"excl_start": term(KEYS[1]), "excl_end": term(KEYS[3])}, KEYS[2:3]),
        ({"start": term(""), "end": term(KEYS[0])}, KEYS[:1]),
    ],
)
def test_ranges(client: NodeClient, wanted: dict[str, str], expected: list[str]) -> None:
    """A scan includes or excludes each end of its range as requested."""
    assert expected == keys_of(go_on(client, opened(client, key_only=True, range=wanted)))


def test_samples(client: NodeClient) -> None:
    """A sample is a part of the documents that depends only on the seed, or all documents if its size permits."""
    pages = [
        keys_of(go_on(client, opened(client, key_only=True, sampling={"samples": samples, "seed": seed})))
        for samples, seed in [(10, 1), (10, 1), (10, 2), (1000, 1), (10**400, -(10**400))]
    ]

    assert pages[0] == pages[1] != pages[2]
    assert 1 <= len(pages[0]) < len(KEYS)
    assert set(pages[0]) <= set(KEYS)
    assert KEYS == pages[3] == pages[4]


@pytest.mark.parametrize(
    "wanted",
    [{"range": {"start": term("x"), "end": term("z")}}, {"vbucket": 4}, {"vbucket": 4, "sampling": {"samples": 1}}],
)
def test_nothing_to_scan(client: NodeClient, wanted: dict[str, Any]) -> None:
    """A scan that would return no documents is refused at its creation."""
    assert Status.KEY_NOT_FOUND == status_of(create(client, **wanted))


def test_collections(client: NodeClient) -> None:
    """A scan names its collection by hexadecimal id; an unknown collection is refused."""
    collection_id = client.node.collections.create("inventory", "people")
    client.node.documents.put("default", KEYS[5], b"1", collection_id=collection_id)
    scan_id = opened(client, collection=f"{collection_id:x}", key_only=True)

    assert [KEYS[5]] == keys_of(go_on(client, scan_id))
    for unknown in ("abc", "9" * 5000):
        assert Status.UNKNOWN_COLLECTION == status_of(create(client, collection=unknown))


def test_snapshots(client: NodeClient) -> None:
    """The snapshot requirements must match the vbucket's uuid, its sequence number and its documents."""
    uuid, newest = str(vbucket_uuid(VBUCKET)), client.node.documents.sequence_number("default", VBUCKET)
    statuses = [
        status_of(create(client, snapshot_requirements=wanted))
        for wanted in (
            {"vb_uuid": uuid, "seqno": newest},
            {"vb_uuid": uuid, "seqno": newest, "seqno_exists": True},
            {"vb_uuid": uuid, "seqno": newest + 1},
            {"vb_uuid": "1", "seqno": 1},
            {"vb_uuid": "9" * 5000, "seqno": 10**400},
        )
    ]
    client.node.documents.put("default", KEYS[-1], b"2")
    replaced = create(client, snapshot_requirements={"vb_uuid": uuid, "seqno": newest, "seqno_exists": True})

    assert [0, 0, Status.TEMPORARY_FAILURE, *[Status.VBUCKET_UUID_NOT_EQUAL] * 2] == statuses
    assert Status.NOT_STORED == status_of(replaced)


@pytest.mark.parametrize(
    "value",
    [
        b"no JSON",
        b"[]",
        b'{"range":{}}',
        b'{"range":{"start":"AA=="}}',
        b'{"range":{"start":"AA==","excl_start":"AA==","end":"/w=="}}',
        b'{"range":{"start":"AA==","end":"no base64"}}',
        json.dumps({"range": {"start": term("x" * 251), "end": "/w=="}}).encode(),
        b'{"range":{"start":"AA==","end":"/w=="},"sampling":{"samples":1}}',
        b'{"range":{"start":"AA==","end":"/w=="},"collection":"xyz"}',
        b'{"range":{"start":"AA==","end":"/w=="},"key_only":1}',
        b'{"sampling":{}}',
        pytest.param(b'{"sampling":{"samples":%s}}' % (b"9" * 5000), id="number of 5,000 digits"),
        json.dumps({"range": {"start": "\u00e9", "end": "/w=="}}).encode(),
        json.dumps({"range": ALL, "collection": "x"}).encode(),
    ],
)
def test_malformed_scan(client: NodeClient, value: bytes) -> None:
    """A scan with a missing, duplicate or malformed field is refused, and the node still accepts a valid scan."""
    reply = client.ask(Opcode.RANGE_SCAN_CREATE, vbucket=VBUCKET, value=value, datatype=Datatype.JSON)

    assert Status.INVALID_ARGUMENTS == status_of(reply)
    assert 0 == client.node.open_scans
    assert Status.SUCCESS == status_of(create(client, range=ALL))


def test_a_wrong_end_of_a_range_is_named(client: NodeClient) -> None:
    """The error for an excluded end that is not Base64 names it as the request does."""
    reply = create(client, range={"excl_start": "no base64", "end": "/w=="})

    assert b"excl_start is not base64" in reply.value


@pytest.mark.parametrize("datatype", [Datatype.RAW, Datatype.SNAPPY, Datatype.JSON | Datatype.SNAPPY])
def test_json_must_be_granted_and_marked(client: NodeClient, datatype: Datatype) -> None:
    """The value must be marked as JSON and nothing else, and JSON must be granted."""
    value = json.dumps({"range": ALL}).encode()
    reply = client.ask(Opcode.RANGE_SCAN_CREATE, vbucket=VBUCKET, value=value, datatype=datatype)
    ungranted = create(ready_client(without=[HelloFeature.JSON]))

    assert Status.INVALID_ARGUMENTS == status_of(reply) == status_of(ungranted)


@pytest.mark.parametrize(("size", "status"), [(50, Status.SUCCESS), (51, Status.INVALID_ARGUMENTS)])
def test_names_of_scans_are_short(client: NodeClient, size: int, status: Status) -> None:
    """A scan may have a name of at most 50 characters."""
    assert status == status_of(create(client, range=ALL, name="x" * size))


def test_ephemeral_buckets_have_no_scans() -> None:
    """A bucket without storage on disk refuses scans, even without documents."""
    manager = Manager()
    manager.submit("POST", BUCKETS, name="passing", ramQuotaMB=100, bucketType="ephemeral")

    assert Status.NOT_SUPPORTED == status_of(create(ready_client(manager.node, bucket=b"passing"), range=ALL))


def test_too_many_scans(client: NodeClient) -> None:
    """At the maximum number of scans, the node is busy until one is closed."""
    scan_ids = [opened(client) for _ in range(SCANS_MAX)]
    refused = create(client)
    ended = client.ask(Opcode.RANGE_SCAN_CANCEL, vbucket=VBUCKET, extras=scan_ids[0])

    assert Status.BUSY == status_of(refused)
    assert Status.SUCCESS == status_of(ended)
    assert SCANS_MAX == len(set(scan_ids))
    opened(client)
    again = client.ask(Opcode.RANGE_SCAN_CANCEL, vbucket=VBUCKET, extras=scan_ids[0])
    assert Status.KEY_NOT_FOUND == status_of(again)


def test_a_scan_ends_with_time(client: NodeClient) -> None:
    """A scan that is not continued before its timeout is closed. In another vbucket, its id is unknown."""
    scan_id = opened(client)
    elsewhere = go_on(client, scan_id, vbucket=4)
    client.wait(LIFETIME_SECONDS - 1.0)
    open_before = client.node.open_scans
    client.wait(LIFETIME_SECONDS)

    assert (1, 0) == (open_before, client.node.open_scans)
    assert [Status.KEY_NOT_FOUND] * 2 == [status_of(frame) for frame in elsewhere + go_on(client, scan_id)]


def test_a_scan_ends_when_its_vbucket_moves() -> None:
    """A scan is closed if its vbucket moves or its node is killed."""
    nodes = FakeNodes(FakeNodeOptions(vbuckets=128), nodes=2)
    clients = ready_clients(nodes)
    for key in KEYS:
        nodes.documents.put("default", key, b"1")
    nodes.move([VBUCKET], to=0)
    scan_id = opened(clients[0])
    refused = create(clients[1])
    nodes.move([VBUCKET], to=1)
    moved = go_on(clients[0], scan_id)
    other = opened(clients[1])
    open_there = [node.open_scans for node in nodes]
    nodes.kill(1)

    assert Status.NOT_MY_VBUCKET == status_of(refused) == status_of(moved[0])
    assert [0, 1] == open_there
    assert scan_id != other
    assert 0 == nodes[1].open_scans
