"""Lists with unknown values from a newer server."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest

from triclinium import Cluster, Service
from triclinium.testing import FakeAnswer, open_fake_cluster

BUCKET = {"name": "x", "quota": {"rawRAM": 104857600}, "evictionPolicy": "brandNew", "replicaNumber": 7}
USER = {"id": "x", "domain": "moon", "groups": None, "roles": [{"role": "admin"}]}
INDEX = {"name": "x", "keyspace_id": "default", "using": "paper", "is_primary": None, "state": "odd"}
SCOPE = {"name": "x", "uid": "8", "collections": None, "limits": None}
GROUP = {"id": "x", "roles": None, "description": None}


async def names_of_buckets(cluster: Cluster) -> Sequence[str]:
    """Return the names of all buckets."""
    return [each.name for each in await cluster.buckets().get_all_buckets()]


async def names_of_users(cluster: Cluster) -> Sequence[str]:
    """Return the names of all users."""
    return [each.user.username for each in await cluster.users().get_all_users()]


async def names_of_groups(cluster: Cluster) -> Sequence[str]:
    """Return the names of all groups."""
    return [each.name for each in await cluster.users().get_all_groups()]


async def names_of_scopes(cluster: Cluster) -> Sequence[str]:
    """Return the names of all scopes."""
    return [each.name for each in await cluster.bucket("default").collections().get_all_scopes()]


@pytest.mark.parametrize(
    ("names", "said", "body"),
    [
        (names_of_buckets, "GET /pools/default/buckets", [BUCKET, BUCKET | {"name": "y"}]),
        (names_of_users, "GET /settings/rbac/users/local", [USER, USER | {"id": "y"}]),
        (names_of_groups, "GET /settings/rbac/groups", [GROUP, GROUP | {"id": "y"}]),
        (
            names_of_scopes,
            "GET /pools/default/buckets/default/scopes",
            {"uid": "2", "scopes": [SCOPE, SCOPE | {"name": "y", "uid": "9"}]},
        ),
    ],
)
async def test_lists_of_the_cluster_manager(
    names: Callable[[Cluster], Awaitable[Sequence[str]]], said: str, body: object
) -> None:
    """If a server's list has values that the client does not know, the returned list has all entries."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        fake.nodes.script.answer(said, FakeAnswer(body=json.dumps(body)), service=Service.MANAGEMENT)

        assert ["x", "y"] == await names(cluster)


async def test_query_indexes() -> None:
    """If indexes in a server's list have unknown values, the returned list has all of them."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        fake.nodes.script.answer(re.compile(".*"), FakeAnswer(rows=[INDEX, INDEX | {"name": "y"}]))

        assert ["x", "y"] == [each.name for each in await cluster.query_indexes().get_all_indexes("default")]


async def test_an_update_keeps_unknown_values() -> None:
    """If a program reads settings with unknown values and updates the bucket, the client sends these values back."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        path = "/pools/default/buckets/x"
        fake.nodes.script.answer(f"GET {path}", FakeAnswer(body=json.dumps(BUCKET)), service=Service.MANAGEMENT)
        fake.nodes.script.answer(f"POST {path}", FakeAnswer(body="{}"), service=Service.MANAGEMENT)
        manager = cluster.buckets()
        await manager.update_bucket(replace(await manager.get_bucket("x"), ram_quota_mb=256))
        form = dict(parse_qsl(fake.nodes[0].request_log[-1].body.decode()))

    assert ("brandNew", "7", "256") == (form["evictionPolicy"], form["replicaNumber"], form["ramQuotaMB"])


async def test_an_entry_without_a_name(caplog: pytest.LogCaptureFixture) -> None:
    """An entry without a name is left out of a list, and one warning reports it."""
    body = json.dumps([BUCKET | {"name": None}, BUCKET])
    with caplog.at_level(logging.WARNING, "triclinium.connection"):
        async with open_fake_cluster() as fake, fake.open_client() as cluster:
            fake.nodes.script.answer("GET /pools/default/buckets", FakeAnswer(body=body), service=Service.MANAGEMENT)

            assert ["x"] == await names_of_buckets(cluster)

    # Select one logger, because on a busy machine the log may also report a slow operation.
    records = [record for record in caplog.records if record.name == "triclinium.connection"]
    assert ["get_all_buckets" in record.getMessage() for record in records] == [True]
