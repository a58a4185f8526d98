"""Descriptions of the cluster and of its nodes."""

from __future__ import annotations

import json

from tests.core.testing.fakes.services.management.manager import BUCKETS, Manager
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodeOptions, FakeNodes


def test_cluster_is_described() -> None:
    """The description names the cluster and its buckets, each with the UUID that the bucket reports."""
    manager = Manager(FakeNode(FakeNodeOptions(cluster_name="zoo", cluster_uuid="77")))
    manager.submit("POST", BUCKETS, name="beer", ramQuotaMB=100)
    cluster, pools = (manager.ask("GET", path).document for path in ("/pools/default", "/pools"))
    uuids = {each["name"]: each["uuid"] for each in json.loads(manager.ask("GET", BUCKETS).body)}

    assert ("default", "zoo", "77") == (cluster["name"], cluster["clusterName"], pools["uuid"])
    assert [{"bucketName": name, "uuid": uuids[name]} for name in ("default", "beer")] == cluster["bucketNames"]
    assert cluster == manager.ask("GET", "/pools/nodes").document
    assert "" == Manager().ask("GET", "/pools/default").document["clusterName"]


def test_nodes_have_different_names() -> None:
    """Nodes at one host have different names and UUIDs; one is marked as the sender."""
    nodes = FakeNodes(FakeNodeOptions(tls_port=11207), nodes=3)
    reported = Manager(nodes[1], now=5.0).ask("GET", "/pools/default").document["nodes"]

    assert isinstance(reported, list)
    assert [3, 3, 3] == [len({each[name] for each in reported}) for name in ("otpNode", "nodeUUID", "hostname")]
    assert [None, True, None] == [each.get("thisNode") for each in reported]
    assert {"direct": 11210, "httpsMgmt": 18091, "httpsCAPI": 18092} == reported[0]["ports"]
    assert ("5", "http://127.0.0.1:8092/") == (reported[0]["uptime"], reported[0]["couchApiBase"])


def test_node_without_views() -> None:
    """A node without the views service has no address for them."""
    nodes = FakeNodes(nodes=1)
    nodes.set_services(0, {Service.KV, Service.MANAGEMENT})

    assert "couchApiBase" not in Manager(nodes[0]).ask("GET", "/pools/default").document["nodes"][0]  # type: ignore[index]


@rows(
    ("host", "expected"),
    [("db.test:8091", "db.test:8091"), ("db.test", "db.test:8091"), ("[::1]:9000", "[::1]:8091")],
)
def test_host_that_the_client_used(host: str, expected: str) -> None:
    """In place of the placeholder for the host, nodes have the host of the request."""
    manager = Manager(FakeNode(FakeNodeOptions(host="$HOST")))
    reported = manager.ask("GET", "/pools/default", host=host).document["nodes"]

    assert isinstance(reported, list)
    assert [expected] == [each["hostname"] for each in reported]
