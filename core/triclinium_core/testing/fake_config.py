"""The cluster config of a fake node: a cluster of one node without replicas.

Source: kv_engine docs/BinaryProtocol.md, 0xb5 and server request 0x01.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fake_options import FakeNodeOptions

HOST_PLACEHOLDER = "$HOST"
"""Stands in a config where the client has to put in the host that it connected to."""

_BUCKET_CAPABILITIES: Mapping[HelloFeature | None, tuple[str, ...]] = {
    None: ("cbhello", "cccp", "nodesExt"),
    HelloFeature.COLLECTIONS: ("collections",),
    HelloFeature.PRESERVE_TTL: ("preserveExpiry",),
}
"""What a bucket can do, by the feature that it takes; None for what every bucket here can do."""


class ConfigVersion(NamedTuple):
    """Configs are newer by epoch, and within an epoch by revision."""

    epoch: int
    revision: int


class FakeConfig:
    """The config of each bucket, and the one that a client without a bucket gets; ``version`` is that of all."""

    def __init__(self, options: FakeNodeOptions) -> None:
        self.version: ConfigVersion = ConfigVersion(options.config_epoch, options.config_revision)
        self.options = options

    def encode(self, bucket: str | None) -> bytes:
        """Return the config of ``bucket`` as JSON; the global one where ``bucket`` is None."""
        options = self.options
        services = {"kv": options.port} | ({"kvSSL": options.tls_port} if options.tls_port is not None else {})
        node: dict[str, object] = {"services": services, "thisNode": True}
        if options.host != HOST_PLACEHOLDER:
            node["hostname"] = options.host
        config: dict[str, object] = {
            "rev": self.version.revision,
            "revEpoch": self.version.epoch,
            "nodesExt": [node],
            "clusterCapabilitiesVer": [1, 0],
            "clusterCapabilities": {},
        }
        if bucket is not None:
            config |= self._bucket_part(bucket)
        return msgspec.json.encode(config)

    def _bucket_part(self, bucket: str) -> dict[str, object]:
        options = self.options
        address = f"{options.host}:{options.port}"
        capabilities = [
            name
            for feature, names in _BUCKET_CAPABILITIES.items()
            if feature is None or feature in options.features
            for name in names
        ]
        return {
            "name": bucket,
            "uuid": f"{zlib.crc32(bucket.encode()):032x}",
            "nodeLocator": "vbucket",
            "bucketCapabilitiesVer": "",
            "bucketCapabilities": capabilities,
            "nodes": [{"hostname": address, "ports": {"direct": options.port}}],
            "vBucketServerMap": {
                "hashAlgorithm": "CRC",
                "numReplicas": 0,
                "serverList": [address],
                "vBucketMap": [[0]] * options.vbuckets,
            },
        }
