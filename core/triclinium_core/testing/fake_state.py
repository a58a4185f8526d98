"""What all commands of a fake node share, and what it knows of one connection."""

from __future__ import annotations

import math
from dataclasses import replace

from triclinium_core.kv.node.scram import ScramServer
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.retry.kv_status import Status
from triclinium_core.testing.fake_answers import Refused
from triclinium_core.testing.fake_collections import FakeCollections
from triclinium_core.testing.fake_config import ConfigVersion, FakeConfig
from triclinium_core.testing.fake_documents import FakeDocuments
from triclinium_core.testing.fake_options import FakeNodeOptions


class Connection:
    """One client's connection, by the number that the driver gave it."""

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.frames: FrameBuffer = FrameBuffer(SERVER_ACCEPTS)
        self.features: frozenset[HelloFeature] = frozenset()
        self.is_authenticated: bool = False
        self.bucket: str | None = None
        self.exchange: ScramServer | None = None
        """The SCRAM exchange that has begun and not ended."""
        self.known_config: ConfigVersion | None = None
        """Version of the config that this client was sent last, or said that it has."""
        self.delayed_replies: int = 0
        self.last_due: float = -math.inf
        """When the last of the replies ordered so far is sent."""

    def has(self, feature: HelloFeature) -> bool:
        """Tell whether the last HELLO was granted this feature."""
        return feature in self.features


class NodeState:
    """What belongs to the node and not to a connection."""

    def __init__(self, options: FakeNodeOptions) -> None:
        self.options: FakeNodeOptions = options
        self.config: FakeConfig = FakeConfig(options)
        self.collections: FakeCollections = FakeCollections(options.collections)
        self.documents: FakeDocuments = FakeDocuments(
            vbuckets=options.vbuckets, wall_seconds_at_zero=options.wall_seconds_at_zero
        )
        self._exchanges = 0

    def set_ports(self, port: int, tls_port: int | None) -> None:
        """Have the node stand under these ports in configs."""
        self.options = self.config.options = replace(self.options, port=port, tls_port=tls_port)

    def new_exchange(self, mechanism: str) -> ScramServer:
        """Return the server's side of a SCRAM exchange; nonce and salt count up, so that runs repeat."""
        self._exchanges += 1
        return ScramServer(
            mechanism,
            username=self.options.username,
            password=self.options.password,
            nonce=f"fakenode{self._exchanges:08}",
            salt=b"salt%08d" % self._exchanges,
            iterations=self.options.scram_iterations,
        )

    def config_for(self, connection: Connection) -> bytes:
        """Return the config that a connection is due, and remember that it has it."""
        connection.known_config = self.config.version
        return self.config.encode(connection.bucket)

    def not_my_vbucket(self, connection: Connection) -> Refused:
        """Return the refusal of a vbucket; without a config where the client has it and need not be told twice."""
        dedupes = connection.has(HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP)
        if dedupes and connection.known_config == self.config.version:
            return Refused(Status.NOT_MY_VBUCKET)
        return Refused(Status.NOT_MY_VBUCKET, body=self.config_for(connection))
