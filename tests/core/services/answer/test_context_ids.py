"""Client context ids: each attempt has its own, and ids are compared up to the length that services keep."""

from __future__ import annotations

import json
import random
from uuid import UUID

from tests.rows import rows
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.services.answer.context_ids import ContextIds, foreign_id, foreign_id_in

OURS = "0b1e-1"
LONG = "x" * 63


def test_ids_of_one_client_are_distinct_uuids() -> None:
    """Ids have the form of random UUIDs, and are distinct even if every draw returns the same number."""
    for rng in (random.Random(1), ConstantRandom(0.0), ConstantRandom(1.0)):
        ids = ContextIds(rng)
        made = [ids.new() for _ in range(3)]

        assert 3 == len(set(made))
        assert made == [str(UUID(each)) for each in made]
        assert {4} == {UUID(each).version for each in made}


def test_ids_of_two_clients_are_distinct() -> None:
    """Two clients whose random numbers differ create different first ids."""
    assert ContextIds(random.Random(1)).new() != ContextIds(random.Random(2)).new()


@rows(
    ("ours", "theirs"),
    [
        (OURS, json.dumps(OURS)),  # the id of the request
        ("aé/1", '"\\u0061\\u00e9\\/1"'),  # the id with escapes
        (OURS, "null"),  # null
        (OURS, '""'),  # empty
        (LONG + "yz", json.dumps(LONG + "y")),  # cut at 64 bytes
        (LONG + "yz", json.dumps(LONG + "yz")),  # not cut
        (LONG + "é", json.dumps(LONG + "\ufffd")),  # cut within a character, which is replaced
        (LONG + "é", json.dumps(LONG)),  # cut within a character, which is dropped
        ("x" * 61 + "🐍", json.dumps("x" * 61 + 3 * "\ufffd")),  # cut within a character of four bytes
    ],
)
def test_own_ids(ours: str, theirs: str) -> None:
    """An id is not foreign if it is null, empty, or equal up to the length that services keep."""
    assert foreign_id(ours, theirs.encode()) is None


def test_an_id_with_half_a_character() -> None:
    """An id that the service cut within a character, so that it is invalid UTF-8, is not foreign."""
    assert foreign_id(LONG + "é", b'"' + (LONG + "é").encode()[:64] + b'"') is None


@rows(
    ("theirs", "shown"),
    [
        ('"0b1e-2"', "0b1e-2"),  # an id of another request
        ('"0b1e-"', "0b1e-"),  # a prefix of the id
        ('"0b1e-11"', "0b1e-11"),  # longer than the id
        ("5", "5"),  # a number
        ('{"id":1}', '{"id":1}'),  # an object
        ('"\\ud800"', "\\ud800"),  # a lone surrogate
        ('"a\\nb\\u001b[2J"', r"a b\x1b[2J"),  # a line break and an escape sequence
    ],
)
def test_foreign_ids(theirs: str, shown: str) -> None:
    """An id of another request, of any JSON type, is returned as text on one line."""
    assert shown == foreign_id(OURS, theirs.encode())


@rows(
    ("body", "shown"),
    [
        (b'{"clientContextID":"0b1e-1","results":[]}', None),  # the id of the request
        (b'{"results":[],"clientContextID":"0b1e-2"}', "0b1e-2"),  # an id of another request
        (b'{"results":[]}', None),  # no id
        (b"<html>", None),  # a page of a proxy
        (b"[]", None),  # an array
        (b"", None),  # an empty body
        (b"[" * 100_000, None),  # nested too deeply
    ],
)
def test_complete_responses(body: bytes, shown: str | None) -> None:
    """A complete response is foreign only if it is an object with the id of another request."""
    assert shown == foreign_id_in(OURS, body)
