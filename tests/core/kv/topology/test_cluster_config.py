"""Cluster configs: the fields that the client reads, and invalid documents from a hostile node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.kv.topology import cluster_config
from triclinium_core.kv.topology.cluster_config import HOLDERS_MAX, NODES_MAX
from triclinium_core.shown import SERVER_TEXT_MAX

BUCKET: Mapping[str, Any] = {
    "rev": 7,
    "revEpoch": 2,
    "name": "travel",
    "uuid": "0123",
    "nodeLocator": "vbucket",
    "nodesExt": [
        {"services": {"kv": 11210, "kvSSL": 11207, "mgmt": 8091}, "thisNode": True, "hostname": "10.0.0.1"},
        {"services": {"kv": 11211}},
    ],
    "bucketCapabilities": ["collections", "xattr"],
    "vBucketServerMap": {
        "hashAlgorithm": "CRC",
        "numReplicas": 1,
        "serverList": ["10.0.0.1:11210", "10.0.0.2:11210"],
        "vBucketMap": [[0, 1], [1, -1]],
    },
}


def changed(**fields: object) -> bytes:
    """Return the bucket's config with these fields replaced; a field with the value ``...`` is dropped."""
    return json.dumps({name: value for name, value in {**BUCKET, **fields}.items() if value is not ...}).encode()


def changed_map(**fields: object) -> bytes:
    """Return the bucket's config with these fields of its vbucket map replaced."""
    return changed(vBucketServerMap={**BUCKET["vBucketServerMap"], **fields})


def parsed(document: bytes, host: str = "h") -> cluster_config.ClusterConfig:
    """Parse a document that the node ``host`` has sent."""
    return cluster_config.parse_cluster_config(document, host=host)


def refused(document: bytes, host: str = "10.0.0.1") -> str:
    """Check that a document is rejected as a config, and return the text of the error."""
    with pytest.raises(cluster_config.MalformedClusterConfig) as caught:
        parsed(document, host)
    return str(caught.value)


def test_bucket_config() -> None:
    """The parser reads the fields that a client needs and ignores other fields."""
    config = parsed(changed())

    assert config == cluster_config.ClusterConfig(
        rev=7,
        rev_epoch=2,
        name="travel",
        nodes_ext=[
            cluster_config.NodeEntry(
                services={"kv": 11210, "kvSSL": 11207, "mgmt": 8091}, hostname="10.0.0.1", this_node=True
            ),
            cluster_config.NodeEntry(services={"kv": 11211}),
        ],
        node_locator="vbucket",
        v_bucket_server_map=cluster_config.VBucketServerMap(
            server_list=["10.0.0.1:11210", "10.0.0.2:11210"], v_bucket_map=[[0, 1], [1, -1]], num_replicas=1
        ),
        bucket_capabilities=["collections", "xattr"],
    )
    assert (2, 7) == config.revision
    assert 2 == config.vbucket_count


FULL: Mapping[str, Any] = {
    "name": "travel",
    "nodeLocator": "vbucket",
    "bucketType": "membase",
    "storageBackend": "couchstore",
    "authType": "sasl",
    "uri": "/pools/default/buckets/travel?bucket_uuid=0123",
    "streamingUri": "/pools/default/bucketsStreaming/travel?bucket_uuid=0123",
    "controllers": {"flush": "/pools/default/buckets/travel/controller/doFlush"},
    "ddocs": {"uri": "/pools/default/buckets/travel/ddocs"},
    "quota": {"ram": 536870912, "rawRAM": 268435456},
    "basicStats": {"itemCount": 3, "opsPerSec": 0.5},
    "nodes": [
        {
            "hostname": "10.0.0.1:8091",
            "ports": {"direct": 11210, "httpsMgmt": 18091},
            "thisNode": True,
            "status": "healthy",
            "systemStats": {"cpu_utilization_rate": 2.5},
            "uptime": "42",
        }
    ],
    "vBucketServerMap": {
        "hashAlgorithm": "CRC",
        "numReplicas": 0,
        "serverList": ["10.0.0.1:11210"],
        "vBucketMap": [[0]] * 128,
        "vBucketMapForward": [[0]] * 128,
    },
    "bucketCapabilities": ["collections", "touch"],
    "rev": 12,
}
"""Config in the form of the REST interface, without ``nodesExt``."""


def test_full_config() -> None:
    """Without ``nodesExt``, the parser reads the server list, and ignores health and quota."""
    config = cluster_config.parse_cluster_config(json.dumps(FULL).encode(), host="h")

    assert (0, 12) == config.revision
    assert 128 == config.vbucket_count
    assert [] == config.nodes_ext
    assert config.v_bucket_server_map is not None
    assert ["10.0.0.1:11210"] == config.v_bucket_server_map.server_list
    assert [[0]] * 128 == config.v_bucket_server_map.v_bucket_map_forward


def test_global_config() -> None:
    """A global config has nodes and neither a bucket name nor vbuckets; a missing epoch is 0."""
    config = cluster_config.parse_cluster_config(
        b'{"rev":3,"nodesExt":[{"services":{"kv":1}}],"clusterCapabilities":{}}', host="h"
    )

    assert (0, 3) == config.revision
    assert 0 == config.vbucket_count
    assert config.name is None


@pytest.mark.parametrize(
    ("host", "expected"), [("10.0.0.9", "10.0.0.9"), ("node.example", "node.example"), ("::1", "[::1]")]
)
def test_host_placeholder(host: str, expected: str) -> None:
    """The parser replaces ``$HOST`` with the host of the node, with brackets around an IPv6 address."""
    document = changed(
        nodesExt=[{"hostname": "$HOST", "services": {}}],
        vBucketServerMap={"serverList": ["$HOST:11210"], "vBucketMap": [[0]]},
    )

    config = cluster_config.parse_cluster_config(document, host=host)

    assert config.v_bucket_server_map is not None
    assert [f"{expected}:11210"] == config.v_bucket_server_map.server_list
    assert expected == config.nodes_ext[0].hostname


@rows(
    "document",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"config"',
        b"{}",
        b"{",
        changed() + b"x",
        changed(rev=...),
        changed(rev=None),
        changed(rev="7"),
        changed(rev=7.5),
        changed(rev=True),
        b'{"rev":NaN}',
        b'{"rev":' + b"9" * 10_000 + b"}",
        changed(revEpoch="1"),
        *(changed(**{name: number}) for name in ("rev", "revEpoch") for number in (-1, 2**63, 2**64, 10**4000)),
        *(changed_map(numReplicas=count) for count in (-1, HOLDERS_MAX, 10**9)),
        changed(name=5),
        changed(nodesExt={}),
        changed(nodesExt=[None]),
        changed(nodesExt=[{"services": {"kv": "11210"}}]),
        changed(nodesExt=[{"services": []}]),
        changed(nodesExt=[{"hostname": 5}]),
        changed(bucketCapabilities="collections"),
        changed(clusterCapabilities=["n1ql"]),
        changed(nodesExt=[{"alternateAddresses": []}]),
        changed(nodesExt=[{"alternateAddresses": {"external": {}}}]),
        changed(nodesExt=[{"alternateAddresses": {"external": {"hostname": "h", "ports": {"kv": "1"}}}}]),
        changed_map(vBucketMapForward=[0]),
        changed(vBucketServerMap=[]),
        changed(vBucketServerMap={}),
        changed_map(serverList=None),
        changed_map(serverList=[5]),
        changed_map(vBucketMap=[0, 1]),
        changed_map(vBucketMap=[[0.5]]),
        changed_map(vBucketMap=[["0"]]),
        b"[" * 200_000,
        b'{"rev":1,"x":' + b"[" * 200_000,
        b'{"rev":1,"x":' + b'{"x":' * 100_000,
    ],
)
def test_not_a_config(document: bytes) -> None:
    """A document with invalid JSON, types, numbers or nesting raises MalformedClusterConfig with a message."""
    assert "" != refused(document)


@pytest.mark.parametrize("revision", [0, 1, 2**63 - 1])
def test_revisions_in_range(revision: int) -> None:
    """The parser accepts any epoch and any revision of 63 bits."""
    config = parsed(changed(rev=revision, revEpoch=revision))

    assert (revision, revision) == config.revision


@rows("port", [0, -1, 65536, 2**31, 2**64, 10**4000])
def test_a_port_out_of_range(port: int) -> None:
    """A service with an invalid port is left out in all networks; the other services of its node are kept."""
    ports = {"kv": port, "mgmt": 8091, "n1ql": port, "fts": 65535, "cbas": 1}
    alternate = {"external": {"hostname": "e", "ports": ports}, "shared": {"hostname": "s"}}
    config = parsed(changed(nodesExt=[{"services": ports, "alternateAddresses": alternate}]))
    (node,) = config.nodes_ext

    assert {"mgmt": 8091, "fts": 65535, "cbas": 1} == node.services
    assert {"mgmt": 8091, "fts": 65535, "cbas": 1} == node.alternate_addresses["external"].ports
    assert None is node.alternate_addresses["shared"].ports


@pytest.mark.parametrize("name", ["x" * (cluster_config.NAME_SIZE_MAX + 1), "\x1b[31m", "a\nb", "\u202e"])
def test_an_invalid_network_or_service_name(name: str) -> None:
    """A network or service is left out if its name is too long or not printable; the others are kept."""
    kept = "x" * cluster_config.NAME_SIZE_MAX
    ports = {name: 1, kept: 2}
    alternate = {network: {"hostname": "e", "ports": ports} for network in (name, kept)}
    config = parsed(changed(nodesExt=[{"services": ports, "alternateAddresses": alternate}]))
    (node,) = config.nodes_ext

    assert {kept: 2} == node.services
    assert {kept: cluster_config.AlternateAddress("e", {kept: 2})} == node.alternate_addresses


@rows(
    "document",
    [
        changed(vBucketServerMap=...),
        changed(vBucketServerMap=None),
        changed_map(vBucketMap=[]),
        changed_map(vBucketMap=[], serverList=[], vBucketMapForward=[[0]]),
        changed(vBucketServerMap=None, nodeLocator=...),
    ],
)
def test_bucket_config_without_vbuckets(document: bytes) -> None:
    """If the config of a bucket has no map, or a map without vbuckets, the parser raises NoVBucketsYet."""
    with pytest.raises(cluster_config.NoVBucketsYet, match="'travel'"):
        parsed(document)


@rows(
    ("document", "hint"),
    [
        (changed(name=""), ""),
        (
            changed_map(vBucketMap=[[0]] * (cluster_config.VBUCKETS_MAX + 1)),
            f"{cluster_config.VBUCKETS_MAX + 1} vbuckets",
        ),
        (changed_map(vBucketMap=[[0, 1], []]), "vbucket 1 is on 0 servers"),
        (changed_map(vBucketMap=[[0] * (HOLDERS_MAX + 1)]), f"vbucket 0 is on {HOLDERS_MAX + 1} servers"),
        (changed_map(vBucketMap=[[2]]), "[2], but the list has 2; "),
        (changed_map(vBucketMap=[[-2]]), "[-2]"),
        (changed_map(vBucketMap=[[0, 0, 0, 9]]), "vbucket 0"),
        (changed_map(serverList=[]), "the list has 0; "),
        (changed_map(numReplicas=-1), "numReplicas"),
        (changed(nodeLocator="ketama"), "memcached bucket"),
        (changed_map(vBucketMapForward=[[0]]), "1 in its forward map"),
        (changed_map(vBucketMapForward=[[0], [2]]), "vbucket 1 is on servers [2], but the list has 2; "),
        (changed_map(vBucketMapForward=[[0], []]), "vbucket 1 is on 0 servers"),
    ],
)
def test_an_invalid_vbucket_map(document: bytes, hint: str) -> None:
    """A memcached bucket and an invalid vbucket map are rejected; an empty bucket name is accepted."""
    if hint:
        assert hint in refused(document)
    else:
        assert "" == parsed(document).name


def test_most_vbuckets() -> None:
    """Both maps may have the maximum number of vbuckets and copies, even if no copy has a node."""
    holders = [[-1] * HOLDERS_MAX] * cluster_config.VBUCKETS_MAX
    config = parsed(changed_map(vBucketMap=holders, vBucketMapForward=holders))

    assert cluster_config.VBUCKETS_MAX == config.vbucket_count


def large_node(number: int) -> dict[str, object]:
    """Return a node with 26 services, in the default network and in another one."""
    services = {f"{'s' * 10}{service}": 65_535 for service in range(26)}
    host = f"{'n' * 40}{number}.example"
    external = {"hostname": host, "ports": services}
    return {"hostname": host, "services": services, "alternateAddresses": {"external": external}, "serverGroup": "g"}


def test_most_nodes() -> None:
    """The parser accepts a config with the maximum number of nodes and rejects one with one more."""
    nodes = [large_node(number) for number in range(NODES_MAX)]
    servers = [f"{node['hostname']}:11210" for node in nodes]
    holders = [[number % NODES_MAX] * HOLDERS_MAX for number in range(1024)]
    fields = {"serverList": servers, "vBucketMap": holders, "vBucketMapForward": holders}
    config = parsed(changed(nodesExt=nodes, vBucketServerMap=fields))

    assert NODES_MAX == len(config.nodes_ext)
    assert f"{NODES_MAX + 1} nodes" in refused(changed(nodesExt=[{}] * (NODES_MAX + 1)))
    assert f"{NODES_MAX + 1} nodes" in refused(changed_map(serverList=["h:1"] * (NODES_MAX + 1)))


LONG_HOST = "h" * (cluster_config.HOST_SIZE_MAX + 1)


@rows(
    "document",
    [
        changed(nodesExt=[{}] * (cluster_config.CONFIG_LIMITS.objects_max + 1)),
        changed_map(vBucketMap=[[]] * (cluster_config.CONFIG_LIMITS.parts_max // 2 + 1)),
        changed_map(vBucketMap=[[0] * (cluster_config.CONFIG_LIMITS.parts_max + 1)]),
        changed_map(vBucketMap=[[9] * 100_000]),
        changed(bucketCapabilities=[""] * (cluster_config.CAPABILITIES_MAX + 1)),
        changed(clusterCapabilities={"n1ql": [""] * (cluster_config.CAPABILITIES_MAX + 1)}),
        changed(name="x" * 100_000, vBucketServerMap=...),
        changed(name="x" * 100_000, nodeLocator="x" * 100_000),
        # Logs contain the hosts of nodes, so a host must not forge lines.
        *(changed(nodesExt=[{"hostname": host}]) for host in (LONG_HOST, "a\nWARNING b")),
        *(
            changed(nodesExt=[{"alternateAddresses": {"external": {"hostname": host}}}])
            for host in (LONG_HOST, "a\x1b[31mb")
        ),
        *(changed_map(serverList=[f"{host}:1", "c:1"]) for host in (LONG_HOST, "a\u2028b")),
    ],
)
def test_hostile_values(document: bytes) -> None:
    """A config that exceeds a limit, or has unprintable hosts, is rejected with a short, printable text."""
    text = refused(document)

    assert 3 * SERVER_TEXT_MAX > len(text)
    assert text.isprintable()


def test_size_is_bounded() -> None:
    """A config that exceeds the maximum size, even if only with expanded placeholders, is rejected."""
    padding = b'"' + b"x" * cluster_config.CONFIG_LIMITS.size_bytes_max + b'"'
    growing = b'{"rev":1,"x":"' + b"$HOST" * 100_000 + b'"}'

    assert f"{cluster_config.CONFIG_LIMITS.size_bytes_max}" in refused(b'{"rev":1,"x":' + padding + b"}")
    assert f"{cluster_config.CONFIG_LIMITS.size_bytes_max}" in refused(growing, host="h" * 250)
    assert 1 == cluster_config.parse_cluster_config(growing, host="h").rev


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("$HOST"),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.sampled_from([*BUCKET, "serverList", "services"]), children, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def almost_configs(draw: st.DrawFn) -> bytes:
    """Return a config in which one or two fields, and up to two of its vbucket map, have arbitrary values."""
    names = draw(st.lists(st.sampled_from([*BUCKET]), min_size=1, max_size=2))
    inner = draw(st.dictionaries(st.sampled_from([*BUCKET["vBucketServerMap"]]), json_values, max_size=2))
    fields = {name: draw(json_values) for name in names}
    return changed(**{"vBucketServerMap": {**BUCKET["vBucketServerMap"], **inner}, **fields})


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()) | almost_configs())
def test_hostile_configs(document: bytes) -> None:
    """Arbitrary documents yield a config with valid holders for its vbuckets, or raise MalformedClusterConfig."""
    try:
        config = cluster_config.parse_cluster_config(document, host="::1")
    except cluster_config.MalformedClusterConfig as error:
        assert "" != str(error)
        return

    if config.name is not None:
        assert config.v_bucket_server_map is not None
        assert 1 <= config.vbucket_count <= cluster_config.VBUCKETS_MAX
        servers = len(config.v_bucket_server_map.server_list)
        assert all(-1 <= holders[0] < servers for holders in config.v_bucket_server_map.v_bucket_map)


@given(st.integers(0, 2**30), st.integers(0, 255))
def test_damaged_configs(position: int, byte: int) -> None:
    """If one byte of a config is wrong, the parser returns a config or raises MalformedClusterConfig."""
    document = bytearray(changed())
    document[position % len(document)] = byte

    try:
        config = cluster_config.parse_cluster_config(bytes(document), host="h")
    except cluster_config.MalformedClusterConfig:
        return

    assert isinstance(config, cluster_config.ClusterConfig)
