"""Valid JSON documents of nodes, and documents with changes that Hypothesis draws."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, strategies as st

from tests.fuzz import node_documents
from tests.fuzz.json_mutations import DELETE, RENAME, REPEAT, Text, changed, encoded, part, paths
from triclinium_core import errors


@given(seed=st.integers(0, 2**64 - 1))
def test_any_document(seed: int) -> None:
    """With random changes to a document, each caller gets one result or one exception of the library."""
    node_documents.play_document(random.Random(seed))


@pytest.mark.parametrize("number", range(0, len(node_documents.systematic()), len(node_documents.systematic()) // 40))
def test_systematic_changes(number: int) -> None:
    """A sample of the systematic changes to key-value documents breaks no invariant; ``.ci/run`` plays all of them."""
    node_documents.play_input(number, random.Random(0))


def test_valid_documents() -> None:
    """With valid documents, the client reads a document of a named collection, and no document breaks an invariant."""
    client = node_documents.Client(node_documents.Node())
    client.ask(node_documents.READ_NAMED)
    for document, play in (*node_documents.OF_KEY_VALUE, *node_documents.OF_SERVICES):
        play(encoded(document))

    assert not isinstance(client.outcomes[1], errors.CouchbaseException)


def test_changes_apply_at_their_path() -> None:
    """A change at a path changes only that value; a change at a path that no longer exists changes nothing."""
    document = {"a": [1, {"b": 2}], "c": 3}

    assert {(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",)} == set(paths(document))
    assert {"a": [1, {"b": "x"}], "c": 3} == json.loads(encoded(changed(document, ("a", 1, "b"), Text('"x"'))))
    assert {"a": [{"b": 2}], "c": 3} == json.loads(encoded(changed(document, ("a", 0), DELETE)))
    assert {"a": [1, {"B": 2}], "c": 3} == json.loads(encoded(changed(document, ("a", 1, "b"), RENAME)))
    assert b'"c":3,"c":3,"c":null' in encoded(changed(document, ("c",), REPEAT))
    assert document == changed(changed(document, ("a",), part(document, ("a",))), ("x", 1), DELETE)
