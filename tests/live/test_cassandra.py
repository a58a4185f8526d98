"""Our Cassandra policies inside the driver that people use, against a real node of Apache Cassandra."""

from __future__ import annotations

import pytest

from tests.live.cassandra_server import CassandraServer

pytestmark = pytest.mark.live


def test_it_answers(cassandra_server: CassandraServer) -> None:
    """The node runs."""

    assert cassandra_server.port
