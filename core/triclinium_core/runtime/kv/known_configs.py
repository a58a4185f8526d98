"""Newest cluster config of each bucket, and of the cluster."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.kv.topology.cluster_config import ClusterConfig
from triclinium_core.retry.couchbase import Service
from triclinium_core.retry.tables import table_of
from triclinium_core.telemetry.attributes import NO_LABELS, cluster_attributes

SERVICE_NAMES: Mapping[Service, str] = table_of(
    [
        (Service.QUERY, "n1ql"),
        (Service.ANALYTICS, "cbas"),
        (Service.SEARCH, "fts"),
        (Service.VIEWS, "capi"),
        (Service.MANAGEMENT, "mgmt"),
    ]
)
"""Names of the HTTP services in the port lists of configs."""

CAPABILITY_NAMES: Mapping[Service, str] = {**SERVICE_NAMES, Service.SEARCH: "search"}
"""Names of the HTTP services in the capability lists of configs (SDK-RFC 0052 "FeatureNotAvailable handling")."""

OLDER_CONFIGS_MAX = 8
"""Number of consecutive older configs, each from a node of the connection string, after which the client treats the
newer config as forged. With the default poll interval, this takes 10 to 20 seconds. A node with an outdated config gets
the newer config sooner. Any node of the connection string that sends the newer config ends the count."""

Version = tuple[int, int]
"""Epoch and revision of a config."""


@dataclass(slots=True)
class _Doubt:
    """Count of consecutive older configs from nodes of the connection string."""

    count: int = 0
    counted_at: float = -math.inf
    """Time at which the newest older config was counted."""


class KnownConfigs:
    """Newest config of each bucket. The key None stands for the cluster."""

    def __init__(self) -> None:
        self._configs: dict[str | None, ClusterConfig] = {}
        self._lost: set[str | None] = set()
        """Buckets without a reachable node, or whose newest config seems to be forged. The client accepts the next
        config of such a bucket at any revision."""
        self._doubts: dict[str | None, _Doubt] = {}
        """Counts by bucket, for buckets whose last config from a node of the connection string was older."""
        self.cluster_labels: Mapping[str, str] = NO_LABELS
        """UUID and name of the cluster for all spans and metrics. Each label comes from the first config that has it. A
        changed label would start another time series in every metric, so a later config cannot change a label."""

    def __contains__(self, bucket: object) -> bool:
        return bucket in self._configs

    @property
    def all(self) -> Collection[ClusterConfig]:
        """Configs of all buckets, and of the cluster."""
        return self._configs.values()

    def get(self, bucket: str | None) -> ClusterConfig | None:
        """Return the newest config of a bucket; None without one."""
        return self._configs.get(bucket)

    def newest_revision(self) -> int | None:
        """Return the revision of the newest of all configs, without its epoch; None before the first config."""
        newest = max((config.revision for config in self._configs.values()), default=None)
        return newest[1] if newest is not None else None

    def vbucket_count(self, bucket: str | None) -> int:
        """Return the number of vbuckets of a bucket; 0 without a map."""
        config = self._configs.get(bucket)
        return config.vbucket_count if config is not None else 0

    def replica_count(self, bucket: str | None) -> int | None:
        """Return the number of replicas of each document of a bucket; None without a map."""
        config = self._configs.get(bucket)
        servers = config.v_bucket_server_map if config is not None else None
        return servers.num_replicas if servers is not None else None

    def capabilities_of(self, service: Service) -> frozenset[ClusterCapability]:
        """Return the capabilities of an HTTP service, from the cluster's config or else the newest config of a bucket.

        Return no capabilities before the first config.
        """
        newest = self._configs.get(None) or max(self._configs.values(), key=lambda each: each.revision, default=None)
        return newest.service_can(CAPABILITY_NAMES[service]) if newest is not None else frozenset()

    def version(self, bucket: str | None) -> Version | None:
        """Return epoch and revision of a bucket's newest config; None without one."""
        config = self._configs.get(bucket)
        return config.revision if config is not None else None

    def settled_version(self, bucket: str | None) -> Version | None:
        """Return epoch and revision of the config that a node may omit from its response.

        Return None if the node must send its config at any revision.
        """
        return None if bucket in self._lost or bucket in self._doubts else self.version(bucket)

    def compare(self, bucket: str | None, config: ClusterConfig, now: float, *, spacing: float) -> None:
        """Compare the newest config of a bucket with a config from a node that the connection string names.

        After ``OLDER_CONFIGS_MAX`` consecutive older configs, record the bucket as lost, so that ``take`` accepts any
        config. Otherwise, after a forged config with a high revision, the client would refuse all genuine configs as
        long as one node of the forged map responds.

        Args:
            spacing: minimum number of seconds between two older configs that are counted.
        """
        known = self._configs.get(bucket)
        if known is None or config.revision >= known.revision:
            self._doubts.pop(bucket, None)
            return
        doubt = self._doubts.setdefault(bucket, _Doubt())
        if now - doubt.counted_at >= spacing:
            doubt.count, doubt.counted_at = doubt.count + 1, now
        if doubt.count >= OLDER_CONFIGS_MAX:
            del self._doubts[bucket]
            self.lose(bucket)

    def take(self, bucket: str | None, config: ClusterConfig) -> bool:
        """Store a config if it is newer than the known config, or if the bucket was lost.

        Return whether the config was stored.
        """
        known = self._configs.get(bucket)
        if known is not None and config.revision <= known.revision and bucket not in self._lost:
            return False
        self._lost.discard(bucket)
        self._configs[bucket] = config
        self.cluster_labels = {
            **cluster_attributes(config.cluster_uuid, config.cluster_name),
            **self.cluster_labels,
        }
        return True

    def forget(self, bucket: str) -> None:
        """Drop the config of a bucket. The client then accepts the next config at any revision."""
        self._configs.pop(bucket, None)
        self._lost.discard(bucket)
        self._doubts.pop(bucket, None)

    def lose(self, bucket: str | None) -> None:
        """Record that no node of a bucket can be reached, or that its newest config seems to be forged.

        The client then accepts the next config at any revision.
        """
        self._lost.add(bucket)

    def is_lost(self, bucket: str | None) -> bool:
        """Return whether a bucket was lost, and no config of the bucket was stored since then."""
        return bucket in self._lost
