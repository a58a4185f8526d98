"""The scripted CQL nodes themselves."""

from __future__ import annotations

import socket

import pytest

from tests.core.adapters.cql_cluster import HOST, CqlCluster

pytestmark = pytest.mark.native


def test_a_cluster_ends_while_a_client_is_connected() -> None:
    """A cluster that ends closes connections that a client has left open, and does not wait for the client."""
    with CqlCluster(lambda asked: None) as cluster:
        clients = [socket.create_connection((HOST, port)) for port in cluster.ports]

    for client in clients:
        with client:
            assert b"" == client.recv(1)
