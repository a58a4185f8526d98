"""Newest config of each bucket: counts, capabilities, labels and revisions."""

from __future__ import annotations

import json

from tests.rows import rows
from triclinium_core.kv.topology.capabilities import ClusterCapability as C
from triclinium_core.kv.topology.cluster_config import ClusterConfig, parse_cluster_config
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.known_configs import OLDER_CONFIGS_MAX, KnownConfigs


def named(revision: int, **fields: object) -> ClusterConfig:
    """Return a config with this revision and these fields."""
    return parse_cluster_config(json.dumps({"rev": revision, **fields}).encode(), host="10.0.0.1")


def config(revision: int, **capabilities: list[str]) -> ClusterConfig:
    """Return a config with this revision and these capabilities of services."""
    return named(revision, nodesExt=[{"services": {"kv": 11210}}], clusterCapabilities=capabilities)


def test_counts_of_a_bucket() -> None:
    """The counts of vbuckets and replicas are those of the map; without a map they are 0 and None."""
    configs = KnownConfigs()
    servers = {"numReplicas": 1, "serverList": ["$HOST:11210"], "vBucketMap": [[0, -1]] * 64}
    configs.take("travel", named(1, name="travel", nodesExt=[], vBucketServerMap=servers))
    configs.take(None, named(7))

    assert [64, 0, 0] == [configs.vbucket_count(bucket) for bucket in ("travel", None, "hotels")]
    assert [1, None, None] == [configs.replica_count(bucket) for bucket in ("travel", None, "hotels")]


def test_newest_revision() -> None:
    """The newest revision of all buckets is the greatest pair of epoch and revision."""
    configs = KnownConfigs()
    before = configs.newest_revision()
    configs.take("travel", config(3))
    configs.take(None, config(7))

    assert (None, 7) == (before, configs.newest_revision())


def test_capabilities() -> None:
    """The cluster's config, or else the newest one, gives the capabilities of a service; those of search are listed as
    ``search`` (SDK-RFC 0052 "FeatureNotAvailable handling").
    """
    configs = KnownConfigs()
    assert frozenset() == configs.capabilities_of(Service.SEARCH)

    configs.take("travel", config(3, n1ql=["readFromReplica", "neverHeardOf"], search=["vectorSearch"]))
    configs.take("hotels", config(2, search=["scopedSearchIndex"], fts=["scopedSearchIndex"]))
    assert {C.VECTOR_SEARCH} == configs.capabilities_of(Service.SEARCH)
    assert {C.READ_FROM_REPLICA} == configs.capabilities_of(Service.QUERY)
    assert frozenset() == configs.capabilities_of(Service.ANALYTICS)

    configs.take(None, config(1, search=["scopedSearchIndex"]))
    assert {C.SCOPED_SEARCH_INDEX} == configs.capabilities_of(Service.SEARCH)


def test_the_first_labels_are_kept() -> None:
    """A later config can add a missing label but not change one, because a change would start a new time series."""
    configs = KnownConfigs()
    for revision in range(1, 61):
        configs.take("travel", named(revision, clusterName=f"name {revision}"))
    configs.take("travel", named(61, clusterName="other", clusterUUID="5f3a"))
    configs.take("travel", named(62, clusterUUID="5f3b"))

    assert {"couchbase.cluster.name": "name 1", "couchbase.cluster.uuid": "5f3a"} == configs.cluster_labels


@rows(
    ("text", "label"),
    [
        ("north", "north"),
        ("n" * 129, "n" * 128),
        ("n" * 1_000_000, "n" * 128),
        ("a\nb\x1b[31m\u202ec", r"a b\x1b[31m\u202ec"),
        ("\n \n", None),
        ("", None),
    ],
)
def test_labels_are_bounded(text: str, label: str | None) -> None:
    """A label has at most 128 printable characters; an empty label is omitted."""
    configs = KnownConfigs()
    configs.take("travel", named(1, clusterName=text, clusterUUID=text))

    assert label == configs.cluster_labels.get("couchbase.cluster.name")
    assert label == configs.cluster_labels.get("couchbase.cluster.uuid")


def test_older_configs_in_a_row() -> None:
    """After enough older configs, at intervals, the client accepts one; a config as new as its own resets the count."""
    configs, older = KnownConfigs(), named(3)
    configs.take("travel", named(4))
    for second in range(OLDER_CONFIGS_MAX - 1):
        for part in (0.0, 0.4):
            configs.compare("travel", older, second + part, spacing=0.5)
    assert (False, None) == (configs.take("travel", older), configs.settled_version("travel"))

    configs.compare("travel", named(4), 100.0, spacing=0.5)
    assert (0, 4) == configs.settled_version("travel")
    for second in range(OLDER_CONFIGS_MAX):
        assert not configs.take("travel", older)
        configs.compare("travel", older, 200.0 + second, spacing=0.5)

    assert configs.take("travel", older)
    assert (0, 3) == configs.version("travel") == configs.settled_version("travel")
