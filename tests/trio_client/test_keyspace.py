"""Handles from a cluster to a collection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from tests.trio_client.doubles import driver_of
from triclinium import Cluster, Collection, errors
from triclinium_core.testing.driver_laws import ScriptedClusterMachine


def cluster(scheme: str = "couchbase") -> Cluster:
    """Return a cluster without a connection."""
    return Cluster(driver_of(ScriptedClusterMachine()), f"{scheme}://a")


@rows(
    ("expected", "way"),
    [
        (("travel", "inventory", "people"), lambda c: c.bucket("travel").scope("inventory").collection("people")),
        (("travel", "_default", "people"), lambda c: c.bucket("travel").collection("people")),
        (("travel", "_default", "people"), lambda c: c.bucket("travel").default_scope().collection("people")),
        (("travel", "_default", "_default"), lambda c: c.bucket("travel").default_collection()),
        ((None, "_default", "_default"), lambda c: cluster("memcached").default_collection()),
    ],
)
def test_handles_know_their_names(expected: tuple[str | None, str, str], way: Callable[[Cluster], Collection]) -> None:
    """A collection has the names of its bucket and scope, by each route to it."""
    collection = way(cluster())

    assert expected == (collection.bucket_name, collection.scope_name, collection.name)


def test_bucket_and_scope_have_names() -> None:
    """Bucket and scope have their names as attributes and in their repr."""
    bucket = cluster().bucket("travel")
    scope = bucket.scope("inventory")

    assert ("travel", "inventory", "travel") == (bucket.name, scope.name, scope.bucket_name)
    assert "<Bucket travel> <Scope travel.inventory> <Collection travel.inventory.people>" == (
        f"{bucket} {scope} {scope.collection('people')}"
    )


@rows(
    ("scheme", "ask"),
    [
        ("couchbase", lambda each: each.default_collection()),
        ("couchbases", lambda each: each.default_collection()),
        ("memcached", lambda each: each.bucket("travel")),
    ],
)
def test_unsupported_handles_are_refused(scheme: str, ask: Callable[[Cluster], object]) -> None:
    """A default collection of a Couchbase cluster, and a bucket of a memcached one, are refused immediately."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ask(cluster(scheme))

    assert "bucket" == caught.value.parameter


NO_NAMES = ("", "x" * 252, "a b", "a/b", "\u00e4", "\n", b"people", 7, None)


@rows("wrong", NO_NAMES)
@rows(
    ("parameter", "ask"),
    [
        ("bucket", lambda cluster, name: cluster.bucket(name)),
        ("scope", lambda cluster, name: cluster.bucket("travel").scope(name)),
        ("collection", lambda cluster, name: cluster.bucket("travel").collection(name)),
        ("collection", lambda cluster, name: cluster.bucket("travel").scope("inventory").collection(name)),
    ],
)
def test_an_invalid_name_is_refused_immediately(
    parameter: str, ask: Callable[[Cluster, object], object], wrong: object
) -> None:
    """An invalid name raises immediately, without a server."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ask(cluster(), wrong)

    assert parameter == caught.value.parameter


def test_a_name_with_a_dot() -> None:
    """A name with a dot is valid for a bucket only."""
    bucket = cluster().bucket("a.b")

    for ask in (bucket.scope, bucket.collection):
        with pytest.raises(errors.InvalidArgumentException):
            ask("a.b")
