"""Documents through the drivers of the documentation, on servers of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.hosts.event_loops.clients import DRIVERS, Server, Step
from tests.live.couchbase_mock import CouchbaseMock
from tests.live.memcached import Memcached
from triclinium_core import TimeoutOptions
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status

pytestmark = [pytest.mark.hosts, pytest.mark.native]

LARGE = bytes(range(256)) * 4096
"""Value of 1 MiB, which arrives in many pieces."""


def story(key: str) -> tuple[list[Step], list[str]]:
    """Return the operations in the life of a document, and their endings."""
    return [
        Step("remove", key),
        Step("insert", key, b"one"),
        Step("insert", key, b"two"),
        Step("get", key),
        Step("upsert", key, LARGE),
        Step("get", key),
        Step("remove", key),
        Step("get", key),
    ], [
        "DocumentNotFoundException after []",
        "done",
        "DocumentExistsException after []",
        "read b'one'",
        "done",
        f"read {LARGE!r}",
        "done",
        "DocumentNotFoundException after []",
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_documents_on_each_node(driver: str, served: Mapping[str, Any], key: str) -> None:
    """A driver writes, reads and removes documents of a cluster, on each of its nodes."""
    stories = [story(f"{key} {number}") for number in range(8)]
    steps = [step for steps, _ in stories for step in steps]

    assert [end for _, ends in stories for end in ends] == DRIVERS[driver](Server.of(served), steps)


@pytest.mark.parametrize("driver", DRIVERS)
def test_documents_on_couchbase_mock(driver: str, couchbase_mock: CouchbaseMock, key: str) -> None:
    """A driver writes, reads and removes documents of CouchbaseMock, and retries where its nodes are busy."""
    server = Server(couchbase_mock.connection_string, couchbase_mock.authenticator, couchbase_mock.bucket)
    steps, expected = story(key)

    assert expected == DRIVERS[driver](server, steps)
    couchbase_mock.fail(Status.TEMPORARY_FAILURE, opcode=Opcode.SET, count=2)
    assert ["done"] == DRIVERS[driver](server, [Step("upsert", key, b"busy")])
    couchbase_mock.fail(0, count=0)
    assert ["read b'busy'"] == DRIVERS[driver](server, [Step("get", key)])


@pytest.mark.parametrize("driver", DRIVERS)
def test_memcached_comes_back(driver: str, mortal_memcached: Memcached, key: str) -> None:
    """An operation without memcached times out unambiguously; after memcached starts, a new client works."""
    mortal_memcached.end()
    server = Server(mortal_memcached.connection_string, timeouts=TimeoutOptions(kv=0.3))

    [failed] = DRIVERS[driver](server, [Step("upsert", key, b"1")])
    assert failed.startswith("UnambiguousTimeoutException after [")
    mortal_memcached.start()
    steps, expected = story(key)
    assert expected == DRIVERS[driver](Server(mortal_memcached.connection_string), steps)
