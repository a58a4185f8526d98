"""Cluster manager of fake nodes: configs, nodes, buckets and collections, and the effects of changes on KV."""

from __future__ import annotations

import json

import pytest

from tests.core.testing.fakes.services.management.manager import BUCKETS, SCOPES, Manager
from tests.core.testing.node_client import ready_client, status_of
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing import FakeAnswer, FakeNodes, NodePort


@pytest.fixture
def manager() -> Manager:
    """Return a connection to the cluster manager of a lone node."""
    return Manager()


def test_configs(manager: Manager) -> None:
    """The configs equal those of KV, global or of a bucket; an unknown bucket gets 404."""
    of_kv = ready_client(manager.node).ask(Opcode.GET_CLUSTER_CONFIG).value

    assert json.loads(of_kv) == manager.ask("GET", "/pools/default/b/default").document
    assert "vBucketServerMap" not in manager.ask("GET", "/pools/default/nodeServices").document
    assert [404, 404] == [manager.ask("GET", f"/pools/default/{how}/gone").status for how in ("b", "bs")]


@rows("path", ["bs/default", "nodeServicesStreaming"])
def test_configs_are_streamed(path: str) -> None:
    """The newest config is sent immediately, and each later one until the client leaves."""
    nodes = FakeNodes(nodes=2)
    listener = Manager(nodes[1])
    listener.send(listener.encode("GET", f"/pools/default/{path}"))
    listener.read()
    nodes.move(range(64), to=1)
    listener.wait(1.0)
    nodes.rebalance()
    listener.wait(2.0)
    *configs, rest = listener.body.split(b"\n\n\n\n")
    nodes[1].connection_lost(9, 2.0)

    assert ([1, 2, 3], b"") == ([json.loads(config)["rev"] for config in configs], rest)
    assert nodes[1].request_log[0].client_hung_up
    assert nodes[1].config_version == nodes.map.version


def test_stream_of_configs_ends_with_the_bucket() -> None:
    """The stream of a bucket's configs ends when the bucket is dropped; that of the global config does not."""
    nodes = FakeNodes(nodes=2)
    of_bucket, of_cluster, manager = (Manager(nodes[0], number) for number in (7, 8, 9))
    for listener, path in ((of_bucket, "bs/default"), (of_cluster, "nodeServicesStreaming")):
        listener.send(listener.encode("GET", f"/pools/default/{path}"))
        listener.read()
    manager.ask("DELETE", f"{BUCKETS}/default")
    for listener in (of_bucket, of_cluster):
        listener.wait(1.0)

    assert [True, False] == [listener.is_hung_up for listener in (of_bucket, of_cluster)]
    assert 1 == of_bucket.body.count(b"\n\n\n\n")


def test_bucket_is_created_and_dropped(manager: Manager) -> None:
    """KV can use a bucket from its creation; dropping it closes the connections of its clients."""
    created = manager.submit("POST", BUCKETS, name="beer", ramQuotaMB=100, bucketType="couchbase", flushEnabled=1)
    kv = ready_client(manager.node, bucket=b"beer")
    stored = kv.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"1")
    described = manager.ask("GET", f"{BUCKETS}/beer").document
    dropped = manager.ask("DELETE", f"{BUCKETS}/beer")
    kv.wait(0.0)
    again = ready_client(manager.node, connection=2, bucket=None).ask(Opcode.SELECT_BUCKET, key=b"beer")

    assert (202, Status.SUCCESS, 200) == (created.status, status_of(stored), dropped.status)
    assert ("beer", "membase", {"ram": 104_857_600, "rawRAM": 104_857_600}) == (
        described["name"],
        described["bucketType"],
        described["quota"],
    )
    assert kv.is_hung_up
    assert Status.NO_ACCESS == again.status
    assert manager.node.documents.get("beer", "ada") is None
    assert 404 == manager.ask("DELETE", f"{BUCKETS}/beer").status
    assert ["default"] == [each["name"] for each in json.loads(manager.ask("GET", BUCKETS).body)]


def test_buckets_are_updated_and_flushed(manager: Manager) -> None:
    """A bucket can be flushed only if its settings permit it. An update keeps the settings that it omits."""
    manager.node.documents.put("default", "ada", b"1")
    manager.submit("POST", f"{BUCKETS}/default", flushEnabled=0)
    refused = manager.ask("POST", f"{BUCKETS}/default/controller/doFlush")
    kept = manager.node.documents.get("default", "ada")
    manager.submit("POST", f"{BUCKETS}/default", flushEnabled=1, maxTTL=7)
    flushed = manager.ask("POST", f"{BUCKETS}/default/controller/doFlush")
    described = manager.ask("GET", f"{BUCKETS}/default").document

    assert (400, 200) == (refused.status, flushed.status)
    assert b"Flush is disabled" in refused.body
    assert kept is not None
    assert manager.node.documents.get("default", "ada") is None
    assert (7, 100 * 1024 * 1024) == (described["maxTTL"], described["quota"]["rawRAM"])  # type: ignore[index]
    assert "flush" in described["controllers"]  # type: ignore[operator]
    assert 400 == manager.submit("POST", f"{BUCKETS}/default", bucketType="ephemeral").status
    assert 404 == manager.ask("POST", f"{BUCKETS}/gone/controller/doFlush").status


def test_collection_is_created_and_dropped(manager: Manager) -> None:
    """KV knows a collection from its creation until it, or its scope, is dropped."""
    manager.submit("POST", SCOPES, name="inventory")
    manager.submit("POST", f"{SCOPES}/inventory/collections", name="hotel", maxTTL=5, history="false")
    kv = ready_client(manager.node)
    found = kv.ask(Opcode.GET_COLLECTION_ID, value=b"inventory.hotel")
    manifest = manager.ask("GET", SCOPES).document
    manager.submit("PATCH", f"{SCOPES}/inventory/collections/hotel", maxTTL=9)
    changed = manager.ask("GET", SCOPES).document
    manager.node.documents.put("default", "ada", b"1", collection_id=int.from_bytes(found.extras[8:]))
    manager.ask("DELETE", f"{SCOPES}/inventory/collections/hotel")
    gone = kv.ask(Opcode.GET_COLLECTION_ID, value=b"inventory.hotel")
    manager.submit("POST", f"{SCOPES}/inventory/collections", name="room")
    manager.ask("DELETE", f"{SCOPES}/inventory")
    without_scope = kv.ask(Opcode.GET_COLLECTION_ID, value=b"inventory.room")

    assert manifest == json.loads(
        ready_client(manager.node, connection=2).ask(Opcode.GET_COLLECTIONS_MANIFEST).value
    ) | {
        "uid": manifest["uid"],
        "scopes": manifest["scopes"],
    }
    hotel = {"name": "hotel", "uid": f"{int.from_bytes(found.extras[8:]):x}", "maxTTL": 5, "history": False}
    assert [hotel, {**hotel, "maxTTL": 9}] == [each["scopes"][1]["collections"][0] for each in (manifest, changed)]  # type: ignore[index]
    assert int(str(manifest["uid"]), 16) < int(str(changed["uid"]), 16)
    assert (Status.UNKNOWN_COLLECTION, Status.UNKNOWN_SCOPE) == (status_of(gone), status_of(without_scope))
    assert manager.node.documents.get("default", "ada", collection_id=int.from_bytes(found.extras[8:])) is None


@rows(
    ("method", "target", "form", "expected"),
    [
        ("POST", SCOPES, {"name": "_default"}, (400, 'Scope with name "_default" already exists')),
        ("POST", SCOPES, {"name": "%"}, (400, "name")),
        ("DELETE", f"{SCOPES}/gone", {}, (404, 'Scope with name "gone" is not found')),
        ("DELETE", f"{SCOPES}/_default", {}, (400, "not allowed")),
        ("POST", f"{SCOPES}/gone/collections", {"name": "a"}, (404, 'Scope with name "gone" is not found')),
        ("POST", f"{SCOPES}/_default/collections", {"name": "_default"}, (400, "already exists")),
        ("POST", f"{SCOPES}/_default/collections", {"name": "a b"}, (400, "name")),
        ("POST", f"{SCOPES}/_default/collections", {"name": "a", "maxTTL": -2}, (400, "maxTTL")),
        ("POST", f"{SCOPES}/_default/collections", {"name": "a", "maxTTL": "x"}, (400, "maxTTL")),
        ("POST", f"{SCOPES}/_default/collections", {"name": "a", "history": "x"}, (400, "history")),
        ("POST", f"{SCOPES}/_default/collections", {"name": "a", "colour": "red"}, (400, "colour")),
        ("PATCH", f"{SCOPES}/_default/collections/_default", {"name": "a"}, (400, "name")),
        ("POST", SCOPES, {"name": "a", "maxTTL": 1}, (400, "maxTTL")),
        ("PATCH", f"{SCOPES}/_default/collections/gone", {"maxTTL": 1}, (404, 'Collection with name "gone"')),
        ("PATCH", f"{SCOPES}/_default/collections/_default", {"maxTTL": -2}, (400, "maxTTL")),
        ("DELETE", f"{SCOPES}/_default/collections/gone", {}, (404, "is not found")),
        ("DELETE", f"{SCOPES}/gone/collections/gone", {}, (404, "Scope")),
        ("POST", f"{SCOPES}/@ensureManifest/ff", {}, (400, "manifest")),
        ("POST", f"{SCOPES}/@ensureManifest/1", {}, (200, "")),
        ("GET", f"{BUCKETS}/gone/scopes", {}, (404, "not found")),
        ("GET", "/pools/default/elsewhere", {}, (404, "Not found")),
        ("PUT", BUCKETS, {}, (404, "Not found")),
    ],
)
def test_refused_requests(
    manager: Manager, method: str, target: str, form: dict[str, object], expected: tuple[int, str]
) -> None:
    """Requests that are refused or need no change get the expected status and words; the manifest stays unchanged."""
    before = manager.node.collections.uid
    answered = manager.submit(method, target, **form)
    status, words = expected

    assert status == answered.status
    assert words in answered.body.decode().replace("\\", "")
    assert before == manager.node.collections.uid


def test_new_bucket_has_its_own_collections(manager: Manager) -> None:
    """A new bucket has its own collections. The initial buckets share their collections, which stay unchanged."""
    manager.node.collections.create("inventory", "hotel")
    manager.submit("POST", BUCKETS, name="beer", ramQuotaMB=100)
    manager.submit("POST", f"{BUCKETS}/beer/scopes/_default/collections", name="ale")
    kv, other = ready_client(manager.node, bucket=b"beer"), ready_client(manager.node, connection=2)
    found = [client.ask(Opcode.GET_COLLECTION_ID, value=b"_default.ale").status for client in (kv, other)]
    manager.node.documents.put("default", "ada", b"1", collection_id=8)
    manager.ask("DELETE", f"{BUCKETS}/beer/scopes/_default/collections/ale")

    assert [Status.SUCCESS, Status.UNKNOWN_COLLECTION] == found
    assert manager.node.documents.get("default", "ada", collection_id=8) is not None


def test_script_goes_first(manager: Manager) -> None:
    """A scripted answer for method and path precedes the real response."""
    manager.node.script.answer(
        "GET /pools", FakeAnswer(metadata={"pools": []}, http_status=503), service=Service.MANAGEMENT
    )
    answered = manager.ask("GET", "/pools?a=b")

    assert (503, {"pools": []}) == (answered.status, answered.document)
    assert "default" == manager.ask("GET", "/pools/default").document["name"]


def test_nodes_are_listed_with_services() -> None:
    """Member nodes are listed with their health and their services."""
    nodes = FakeNodes(nodes=3)
    nodes.kill(2)
    nodes.remove_node(1)
    reported = Manager(nodes[0]).ask("GET", "/pools/default").document["nodes"]

    assert [("127.0.0.1:8091", "healthy"), ("127.0.0.1:8111", "unhealthy")] == [
        (each["hostname"], each["status"])
        for each in reported  # type: ignore[attr-defined]
    ]
    assert ["kv", "n1ql", "cbas", "fts", "capi", "mgmt"] == reported[0]["services"]  # type: ignore[index]
    assert NodePort(nodes[2], Service.MANAGEMENT) == nodes.find("127.0.0.1", 8111)
