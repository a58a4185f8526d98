"""Scopes and collections, and how a test changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.kv_status import Status
from triclinium_core.testing import FakeNode, FakeNodeOptions
from triclinium_core.testing.fakes.answers import Refused
from triclinium_core.testing.fakes.collections import FakeCollections

SCOPES = {"_default": {"_default": 0}, "inventory": {"people": 8, "places": 0x555}}


def test_knows_collections_by_name_and_id() -> None:
    """Every collection has the id it was given."""
    collections = FakeCollections(SCOPES)

    assert (0, 8, 0x555) == tuple(
        collections.id_of(*names)
        for names in (("_default", "_default"), ("inventory", "people"), ("inventory", "places"))
    )
    assert 8 in collections
    assert 9 not in collections


@pytest.mark.parametrize(
    ("scope", "collection", "status"),
    [("nowhere", "people", Status.UNKNOWN_SCOPE), ("inventory", "nobody", Status.UNKNOWN_COLLECTION)],
)
def test_tells_which_name_is_unknown(scope: str, collection: str, status: Status) -> None:
    """A wrong scope and a wrong collection have statuses of their own, and carry the manifest's uid."""
    with pytest.raises(Refused) as caught:
        FakeCollections(SCOPES).id_of(scope, collection)

    assert status == caught.value.status
    assert "1" == json.loads(caught.value.body)["manifest_uid"]


def test_a_new_collection_has_a_new_id() -> None:
    """An id is not given again, also when its collection is dropped and made anew; the uid counts the changes."""
    collections = FakeCollections(SCOPES)

    first = collections.create("inventory", "things")
    collections.drop("inventory", "things")
    second = collections.create("inventory", "things")

    assert [0x556, 0x557] == [first, second]
    assert first not in collections
    assert 4 == collections.uid
    assert 0x558 == collections.create("elsewhere", "things")


def test_a_dropped_collection_takes_its_documents_along() -> None:
    """Those of others stay, and a collection of the same name begins empty."""
    node = FakeNode(FakeNodeOptions(buckets=("travel",), collections=SCOPES))
    for collection_id in (0, 8, 0x555):
        node.documents.put("travel", "ada", b"1", collection_id=collection_id)
    node.collections.drop("inventory", "people")
    new_id = node.collections.create("inventory", "people")

    left = [number for number in (0, 8, 0x555, new_id) if node.documents.get("travel", "ada", collection_id=number)]
    assert [0, 0x555] == left


def test_an_empty_manifest_takes_ids_above_the_reserved_ones() -> None:
    """The ids below 8 are the server's own."""
    assert 8 == FakeCollections({}).create("a", "b")


def test_writes_the_manifest() -> None:
    """Uids are hexadecimal strings, as a real node writes them."""
    assert {
        "uid": "1",
        "scopes": [
            {"uid": "0", "name": "_default", "collections": [{"uid": "0", "name": "_default"}]},
            {
                "uid": "9",
                "name": "inventory",
                "collections": [{"uid": "8", "name": "people"}, {"uid": "555", "name": "places"}],
            },
        ],
    } == json.loads(FakeCollections(SCOPES).encode())


@pytest.mark.parametrize(
    "scopes",
    [{"a b": {}}, {"a": {"": 8}}, {"a": {"b": -1}}, {"a": {"b": 1 << 32}}, {"a": {"b": 8, "c": 8}}],
    ids=str,
)
def test_refuses_impossible_manifests(scopes: Mapping[str, Mapping[str, int]]) -> None:
    """Names that cannot be one, ids out of range and ids given twice are the test's mistake."""
    with pytest.raises(InvalidArgumentException):
        FakeCollections(scopes)


def test_refuses_a_collection_that_exists() -> None:
    """Making a collection twice is the test's mistake."""
    with pytest.raises(InvalidArgumentException, match="inventory.people exists"):
        FakeCollections(SCOPES).create("inventory", "people")


def test_refuses_to_drop_what_is_not_there() -> None:
    """Dropping a collection twice is the test's mistake too."""
    collections = FakeCollections(SCOPES)
    collections.drop("inventory", "people")

    with pytest.raises(InvalidArgumentException, match="'people': there is none in scope 'inventory'"):
        collections.drop("inventory", "people")
