"""Scripted CQL nodes, which other tests use."""

from __future__ import annotations

import socket

import pytest

from tests.core.adapters.cql_cluster import HEADER, HOST, RESPONSE_V4, SUPPORTED_OPTIONS, CqlCluster, Opcode

pytestmark = pytest.mark.native


def test_cluster_stops_while_a_client_is_connected() -> None:
    """Stopping a cluster closes the connections that clients have left open, without waiting for the clients."""
    request = HEADER.pack(4, 0, 1, Opcode.OPTIONS, 0)
    supported = HEADER.pack(RESPONSE_V4, 0, 1, Opcode.SUPPORTED, len(SUPPORTED_OPTIONS)) + SUPPORTED_OPTIONS
    with CqlCluster(lambda asked: None) as cluster:
        clients = [socket.create_connection((HOST, port)) for port in cluster.ports]
        for client in clients:
            # Wait for a response, which proves that the node has accepted the connection.
            client.sendall(request)
            assert supported == client.recv(len(supported), socket.MSG_WAITALL)

    for client in clients:
        with client:
            assert b"" == client.recv(1)
