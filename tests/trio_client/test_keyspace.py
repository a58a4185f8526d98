"""The way from a cluster to a collection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from tests.trio_client.doubles import driver_of
from triclinium import Cluster, Collection, errors
from triclinium_core.testing.driver_laws import ScriptedClusterMachine


def cluster(scheme: str = "couchbase") -> Cluster:
    """Return a cluster that is at work nowhere: nothing here talks to a server."""
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
def test_every_way_leads_to_a_collection(
    expected: tuple[str | None, str, str], way: Callable[[Cluster], Collection]
) -> None:
    """A collection knows where it is."""
    collection = way(cluster())

    assert expected == (collection.bucket_name, collection.scope_name, collection.name)


def test_the_guides_know_their_names() -> None:
    """Bucket and scope tell where they are, and say so when they are printed."""
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
def test_a_handle_that_no_server_could_serve(scheme: str, ask: Callable[[Cluster], object]) -> None:
    """A collection without a bucket of Couchbase, and a bucket of memcached, are refused when they are asked for."""
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
def test_a_name_that_cannot_be_one_is_refused_at_once(
    parameter: str, ask: Callable[[Cluster, object], object], wrong: object
) -> None:
    """Nobody has to wait for a server to learn of a typing mistake."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ask(cluster(), wrong)

    assert parameter == caught.value.parameter


def test_a_name_with_a_dot() -> None:
    """It may be a bucket's, and nothing else's."""
    bucket = cluster().bucket("a.b")

    for ask in (bucket.scope, bucket.collection):
        with pytest.raises(errors.InvalidArgumentException):
            ask("a.b")
