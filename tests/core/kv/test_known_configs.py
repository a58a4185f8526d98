"""What the newest configs tell of the services."""

from __future__ import annotations

import json

from triclinium_core.kv.known_configs import KnownConfigs
from triclinium_core.kv.topology.capabilities import ClusterCapability as C
from triclinium_core.kv.topology.cluster_config import ClusterConfig, parse_cluster_config
from triclinium_core.retry.couchbase.tables.service import Service


def config(revision: int, **capabilities: list[str]) -> ClusterConfig:
    """Return a config of this revision, with what services can do."""
    document = {"rev": revision, "nodesExt": [{"services": {"kv": 11210}}], "clusterCapabilities": capabilities}
    return parse_cluster_config(json.dumps(document).encode(), host="10.0.0.1")


def test_capabilities() -> None:
    """Search has another name there than among the ports (SDK-RFC 0052 "FeatureNotAvailable handling")."""
    configs = KnownConfigs()
    assert frozenset() == configs.capabilities_of(Service.SEARCH)

    configs.take("travel", config(3, n1ql=["readFromReplica", "neverHeardOf"], search=["vectorSearch"]))
    configs.take("hotels", config(2, search=["scopedSearchIndex"], fts=["scopedSearchIndex"]))
    assert {C.VECTOR_SEARCH} == configs.capabilities_of(Service.SEARCH)
    assert {C.READ_FROM_REPLICA} == configs.capabilities_of(Service.QUERY)
    assert frozenset() == configs.capabilities_of(Service.ANALYTICS)

    configs.take(None, config(1, search=["scopedSearchIndex"]))
    assert {C.SCOPED_SEARCH_INDEX} == configs.capabilities_of(Service.SEARCH)
