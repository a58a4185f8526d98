"""Scopes and collections, and how a test changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.testing import FakeNode, FakeNodeOptions
from triclinium_core.testing.fakes.store.collections import FakeCollections

SCOPES = {"_default": {"_default": 0}, "inventory": {"people": 8, "places": 0x555}}


def test_a_new_collection_has_a_new_id() -> None:
    """Above those of the server, and never one that was dropped; the uid counts the changes."""
    collections = FakeCollections(SCOPES)

    first = collections.create("inventory", "things")
    collections.drop("inventory", "things")
    second = collections.create("inventory", "things")

    assert [0x556, 0x557] == [first, second]
    assert first not in collections
    assert 4 == collections.uid
    assert 0x558 == collections.create("elsewhere", "things")
    assert 8 == FakeCollections({}).create("a", "b")


def test_a_dropped_collection_takes_its_documents_along() -> None:
    """They are not kept where nobody can reach them; those of others stay."""
    node = FakeNode(FakeNodeOptions(buckets=("travel",), collections=SCOPES))
    for collection_id in (0, 8, 0x555):
        node.documents.put("travel", "ada", b"1", collection_id=collection_id)
    node.collections.drop("inventory", "people")

    left = [number for number in (0, 8, 0x555) if node.documents.get("travel", "ada", collection_id=number)]
    assert [0, 0x555] == left


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


def test_refuses_to_make_or_drop_a_collection_twice() -> None:
    """That is the test's mistake, which names the collection."""
    collections = FakeCollections(SCOPES)

    with pytest.raises(InvalidArgumentException, match=r"inventory\.people"):
        collections.create("inventory", "people")
    collections.drop("inventory", "people")
    with pytest.raises(InvalidArgumentException, match=r"'people'.*'inventory'"):
        collections.drop("inventory", "people")
