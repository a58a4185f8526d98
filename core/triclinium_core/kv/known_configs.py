"""The newest cluster config of each bucket, and of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.kv.topology.cluster_config import ClusterConfig
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.tables import table_of
from triclinium_core.telemetry.attributes import cluster_attributes

SERVICE_NAMES: Mapping[Service, str] = table_of(
    [
        (Service.QUERY, "n1ql"),
        (Service.ANALYTICS, "cbas"),
        (Service.SEARCH, "fts"),
        (Service.VIEWS, "capi"),
        (Service.MANAGEMENT, "mgmt"),
    ]
)
"""What configs call the services over HTTP, where they tell the ports."""

CAPABILITY_NAMES: Mapping[Service, str] = {**SERVICE_NAMES, Service.SEARCH: "search"}
"""What they call them where they tell what the services can do (SDK-RFC 0052 "FeatureNotAvailable handling")."""

Version = tuple[int, int]
"""Epoch and revision of a config."""


class KnownConfigs:
    """By bucket; the config of the cluster belongs to None."""

    def __init__(self) -> None:
        self._configs: dict[str | None, ClusterConfig] = {}
        self._lost: set[str | None] = set()
        """Buckets of which no node could be reached any more, so that any config of them is news."""
        self.cluster_labels: Mapping[str, str] = {}
        """UUID and name of the cluster for all spans and metrics, each as the first config with one has it. A label that
        changes starts another time series in every metric, so a node must not be able to change it."""

    def __contains__(self, bucket: object) -> bool:
        return bucket in self._configs

    @property
    def all(self) -> Collection[ClusterConfig]:
        """The configs of all buckets, and of the cluster."""
        return self._configs.values()

    def get(self, bucket: str | None) -> ClusterConfig | None:
        """Return the newest config of a bucket; None before the first."""
        return self._configs.get(bucket)

    def capabilities_of(self, service: Service) -> frozenset[ClusterCapability]:
        """Return what a service over HTTP can do, by the newest config of the cluster, or else of any bucket."""
        newest = self._configs.get(None) or max(self._configs.values(), key=lambda each: each.revision, default=None)
        return newest.service_can(CAPABILITY_NAMES[service]) if newest is not None else frozenset()

    def version(self, bucket: str | None) -> Version | None:
        """Return epoch and revision of a bucket's newest config; None before the first."""
        config = self._configs.get(bucket)
        return config.revision if config is not None else None

    def settled_version(self, bucket: str | None) -> Version | None:
        """Return epoch and revision of the config that need not be told again; None where any would be news."""
        return None if bucket in self._lost else self.version(bucket)

    def take(self, bucket: str | None, config: ClusterConfig) -> bool:
        """Keep a config that is newer than what is known, or of a bucket that was lost; return whether it is."""
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

    def lose(self, bucket: str | None) -> None:
        """Record that no node of a bucket can be reached, so that others may have taken their place."""
        self._lost.add(bucket)

    def is_lost(self, bucket: str | None) -> bool:
        """Whether no node of a bucket could be reached any more, and none has told a config since."""
        return bucket in self._lost
