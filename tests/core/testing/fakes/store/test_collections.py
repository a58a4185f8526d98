"""Scopes and collections of a fake cluster, which a test can change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest

from triclinium_core import errors
from triclinium_core.testing import FakeNode, FakeNodeOptions
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import FakeDocuments
from triclinium_core.testing.fakes.store.lateness import Lateness

SCOPES = {"_default": {"_default": 0}, "inventory": {"people": 8, "places": 0x555}}


def test_new_collection_has_a_new_id() -> None:
    """A new collection's id is above all earlier ones, dropped ones included; the uid counts the changes."""
    collections = FakeCollections(SCOPES)

    first = collections.create("inventory", "things")
    collections.drop("inventory", "things")
    second = collections.create("inventory", "things")

    assert [0x556, 0x557] == [first, second]
    assert first not in collections
    assert 4 == collections.uid
    assert 0x558 == collections.create("elsewhere", "things")
    assert 8 == FakeCollections({}).create("a", "b")


def test_dropped_collection_loses_its_documents() -> None:
    """Dropping a collection discards its documents and keeps those of other collections."""
    node = FakeNode(FakeNodeOptions(buckets=("travel",), collections=SCOPES))
    for collection_id in (0, 8, 0x555):
        node.documents.put("travel", "ada", b"1", collection_id=collection_id)
    node.collections.drop("inventory", "people")

    left = [number for number in (0, 8, 0x555) if node.documents.get("travel", "ada", collection_id=number)]
    assert [0, 0x555] == left


def test_manifest_json() -> None:
    """The manifest has uids as hexadecimal strings, as a real node writes them."""
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
def test_invalid_manifest_is_refused(scopes: Mapping[str, Mapping[str, int]]) -> None:
    """Invalid names, ids out of range and duplicate ids raise InvalidArgumentException."""
    with pytest.raises(errors.InvalidArgumentException):
        FakeCollections(scopes)


def test_duplicate_create_or_drop_is_refused() -> None:
    """Creating or dropping a collection twice raises an error that names the collection."""
    collections = FakeCollections(SCOPES)

    with pytest.raises(errors.InvalidArgumentException, match=r"inventory\.people"):
        collections.create("inventory", "people")
    collections.drop("inventory", "people")
    with pytest.raises(errors.InvalidArgumentException, match=r"'people'.*'inventory'"):
        collections.drop("inventory", "people")


def test_late_node() -> None:
    """A late node has an earlier manifest, and gets each change to the collections after the delay."""
    documents = FakeDocuments(vbuckets=128, wall_seconds_at_zero=0)
    lateness = Lateness(documents)
    collections = FakeCollections(SCOPES, lateness=lateness)
    lateness.set(1, 5.0)
    before = collections.encode()
    changes: tuple[Callable[[], object], ...] = (
        lambda: collections.create("inventory", "airline", {"maxTTL": 1}),
        lambda: collections.update("inventory", "airline", {"maxTTL": 2}),
        lambda: collections.create_scope("other"),
        lambda: collections.drop("inventory", "people"),
        lambda: collections.drop_scope("inventory"),
    )
    history = [before]
    for second, change in enumerate(changes):
        documents.now = float(second)
        change()
        history.append(collections.encode())

    for second, (old, new) in enumerate(pairwise(history)):
        documents.now = second + 4.9
        assert old == collections.as_of(lateness.learned_until(1)).encode()
        assert new == collections.as_of(lateness.learned_until(1) + 0.1).encode()
        assert history[-1] == collections.as_of(lateness.learned_until(0)).encode()

    lateness.set(1, 0.0)
    assert collections is collections.as_of(lateness.learned_until(1))


def test_no_history_without_a_late_node() -> None:
    """Without a late node, earlier manifests are not kept."""
    documents = FakeDocuments(vbuckets=128, wall_seconds_at_zero=0)
    collections = FakeCollections(SCOPES, lateness=Lateness(documents))
    documents.now = 1.0
    collections.create_scope("other")

    assert collections is collections.as_of(0.0)
