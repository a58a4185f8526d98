"""Operations on many documents: each of the seven calls, and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.doubles import open_scripted
from tests.trio_client.pair import Pair, open_pair
from triclinium import errors
from triclinium.bulk import BulkReads, BulkWrites
from triclinium_core.contract.couchbase import Action, Event, FailOperation, OperationSubmitted
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

HOUR = timedelta(hours=1)
RAW = triclinium.RawBinaryTranscoder()
MAJORITY = triclinium.DurabilityLevel.MAJORITY


def stored(pair: Pair) -> Mapping[str, bytes]:
    """Return the values of those of the documents "ada", "bob" and "carol" that exist."""
    found = {key: pair.fake.nodes.documents.get("travel", key) for key in ("ada", "bob", "carol")}
    return {key: document.value for key, document in found.items() if document is not None}


CALLS: Mapping[
    str, tuple[Callable[[triclinium.Collection], Any], Mapping[str, bytes], Mapping[str, type[Exception]]]
] = {
    "get_many": (
        lambda people: people.get_many(["ada", "carol"]),
        {"ada": b"1", "bob": b"2"},
        {"carol": errors.DocumentNotFoundException},
    ),
    "exists_many": (lambda people: people.exists_many(["ada", "carol"]), {"ada": b"1", "bob": b"2"}, {}),
    "insert_many": (
        lambda people: people.insert_many({"ada": 5, "carol": 6}),
        {"ada": b"1", "bob": b"2", "carol": b"6"},
        {"ada": errors.DocumentExistsException},
    ),
    "upsert_many": (
        lambda people: people.upsert_many({"ada": 5, "carol": 6}),
        {"ada": b"5", "bob": b"2", "carol": b"6"},
        {},
    ),
    "replace_many": (
        lambda people: people.replace_many({"ada": 5, "carol": 6}),
        {"ada": b"5", "bob": b"2"},
        {"carol": errors.DocumentNotFoundException},
    ),
    "remove_many": (
        lambda people: people.remove_many(["ada", "carol"]),
        {"bob": b"2"},
        {"carol": errors.DocumentNotFoundException},
    ),
    "touch_many": (
        lambda people: people.touch_many(["ada", "carol"], HOUR),
        {"ada": b"1", "bob": b"2"},
        {"carol": errors.DocumentNotFoundException},
    ),
}
"""Bulk calls if "ada" has the value 1 and "bob" the value 2: the documents afterwards, and the failures."""


def test_every_bulk_call_is_tested() -> None:
    """The table has each public method for many documents."""
    assert set(CALLS) == {name for name in dir(triclinium.Collection) if name.endswith("_many")}


@pytest.mark.parametrize("name", CALLS)
async def test_each_call(name: str, autojump_clock: MockClock) -> None:
    """Each bulk call leaves the expected documents, and gives a result or the expected exception for each key."""
    call, documents, failures = CALLS[name]
    async with open_pair() as pair:
        await pair.people.upsert("ada", 1)
        await pair.people.upsert("bob", 2)
        async with call(pair.people) as block:
            found = {key: outcome async for key, outcome in block}
            failed = {key: type(outcome.error) for key, outcome in found.items() if outcome.error is not None}
            results = [outcome.result() for outcome in found.values() if outcome.error is None]

        assert documents == stored(pair)
        assert failures == failed
        assert {"ada", "carol"} == set(found)
        assert (2, 2 - len(failures), len(failures)) == (block.taken, block.succeeded, len(failed))
        assert isinstance(block, BulkReads if name in ("get_many", "exists_many") else BulkWrites)
        assert len({type(result) for result in results}) == 1
        assert all(result.cas for result in results if name != "exists_many")


async def test_results_of_reads(autojump_clock: MockClock) -> None:
    """The outcomes of reads have the contents, through the given transcoder, and whether each document exists."""
    async with open_pair() as (_, _, people):
        await people.upsert("ada", {"a": 1})
        async with people.get_many(["ada"]) as plain:
            contents = [outcome.result().content async for _, outcome in plain]
        async with people.get_many(["ada"], transcoder=RAW) as raw:
            contents += [outcome.result().content async for _, outcome in raw]
        async with people.exists_many(["ada", "bob"]) as existing:
            exists = {key: outcome.result().exists async for key, outcome in existing}

    assert [{"a": 1}, b'{"a":1}'] == contents
    assert {"ada": True, "bob": False} == exists


def refuse(event: Event) -> Sequence[Action]:
    """Return the failure of a submitted operation, and nothing for other events."""
    if isinstance(event, OperationSubmitted):
        return [FailOperation(event.token, errors.DocumentNotFoundException("no such document"))]
    return ()


@rows(
    ("name", "item", "options"),
    [
        ("get_many", "ada", {"transcoder": RAW}),
        ("exists_many", "ada", {}),
        ("insert_many", ("ada", b"1"), {"transcoder": RAW, "durability": MAJORITY, "expiry": HOUR}),
        ("upsert_many", ("ada", b"1"), {"transcoder": RAW, "durability": MAJORITY, "preserve_expiry": True}),
        ("upsert_many", ("ada", 1), {"expiry": HOUR}),
        ("replace_many", ("ada", b"1"), {"transcoder": RAW, "durability": MAJORITY, "preserve_expiry": True}),
        ("replace_many", ("ada", 1), {"expiry": HOUR}),
        ("remove_many", "ada", {"durability": MAJORITY}),
        ("touch_many", "ada", {"expiry": HOUR}),
        ("touch_many", "ada", {"expiry": None}),
    ],
)
async def test_operations_are_those_of_single_calls(name: str, item: Any, options: dict[str, Any]) -> None:
    """A bulk call submits the same operation for an item as the single call with the same options."""
    machine = ScriptedClusterMachine(refuse)
    async with open_scripted(machine) as cluster:
        people = cluster.bucket("travel").default_collection()
        with pytest.raises(errors.DocumentNotFoundException):
            await getattr(people, name.removesuffix("_many"))(*([item] if isinstance(item, str) else item), **options)
        async with getattr(people, name)([item], errors="collect", **options):
            pass
    single, of_bulk = (submitted.operation for submitted in machine.submitted)

    assert type(single) is type(of_bulk)
    assert values_of(single) == values_of(of_bulk)


def values_of(operation: object) -> dict[str, object]:
    """Return the fields of an operation, except the time that encoding took."""
    return {name: getattr(operation, name) for name in operation.__struct_fields__ if name != "encode_seconds"}  # type: ignore[attr-defined]
