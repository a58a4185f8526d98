"""A cluster for tests: inside the process with virtual time, or on a port of this machine."""

from __future__ import annotations

from triclinium.testing._fake_cluster import ClientArguments, FakeCluster
from triclinium.testing._memory import FakeConnector, open_fake_cluster
from triclinium.testing._tcp import open_tcp_cluster, serve_tcp

__all__ = [
    "ClientArguments",
    "FakeCluster",
    "FakeConnector",
    "open_fake_cluster",
    "open_tcp_cluster",
    "serve_tcp",
]
