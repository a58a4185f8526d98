"""Each method submits the operation that its arguments say, and returns its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tests.rows import rows
from tests.trio_client.doubles import (
    DONE,
    open_scripted,
)
from triclinium import (
    BestEffortRetryStrategy,
    Cas,
    Collection,
    DurabilityLevel,
    ExistsResult,
    GetResult,
    MutationResult,
    RawBinaryTranscoder,
    RawStringTranscoder,
)
from triclinium.errors import DocumentNotFoundException, EncodingFailureException, InvalidArgumentException
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, FailOperation, OperationSubmitted
from triclinium_core.kv.operation.document_operations import (
    JSON_TRANSCODER,
    Exists,
    Get,
    GetAndLock,
    GetAndTouch,
    Insert,
    Keyspace,
    Operation,
    Remove,
    Replace,
    Touch,
    Unlock,
    Upsert,
)
from triclinium_core.kv.operation.results import Result
from triclinium_core.testing.driver_laws import ScriptedClusterMachine
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS

PEOPLE = Keyspace("travel", "inventory", "people")
CAS = Cas(7)
HOUR = timedelta(hours=1)
FAR_MOMENT = datetime(2100, 1, 1, tzinfo=UTC)
TEXT = RawStringTranscoder()
BINARY = RawBinaryTranscoder()
MAJORITY = DurabilityLevel.MAJORITY
STRATEGY = BestEffortRetryStrategy()

GOT = GetResult(CAS, JSON_FLAGS, b'{"born":1815}', JSON_TRANSCODER)
MUTATED = MutationResult(CAS)
EXISTS = ExistsResult(True, CAS)

Call = Callable[[Collection], Awaitable[object]]


async def submit(call: Call, result: Result = DONE) -> tuple[list[OperationSubmitted], object]:
    """Return what ``call`` submitted and what it returned, when every operation is completed with ``result``."""

    def complete(event: Event) -> Sequence[Action]:
        return [CompleteOperation(event.token, result)] if isinstance(event, OperationSubmitted) else ()

    machine = ScriptedClusterMachine(complete)
    async with open_scripted(machine) as cluster:
        returned = await call(cluster.bucket("travel").scope("inventory").collection("people"))
    return machine.submitted, returned


DOCUMENT = b'{"born":1815}'
VALUE = {"born": 1815}


@rows(
    ("expected", "result", "call"),
    [
        (Get(PEOPLE, "ada"), GOT, lambda c: c.get("ada")),
        (Get(PEOPLE, "ada", TEXT), GOT, lambda c: c.get("ada", transcoder=TEXT)),
        (Get(PEOPLE, "ada"), GOT, lambda c: c.get_or_none("ada")),
        (Get(PEOPLE, "ada", TEXT), GOT, lambda c: c.get_or_none("ada", transcoder=TEXT)),
        (Exists(PEOPLE, "ada"), EXISTS, lambda c: c.exists("ada")),
        (GetAndTouch(PEOPLE, "ada", 3600), GOT, lambda c: c.get_and_touch("ada", HOUR)),
        (GetAndTouch(PEOPLE, "ada", 0, TEXT), GOT, lambda c: c.get_and_touch("ada", None, transcoder=TEXT)),
        (Touch(PEOPLE, "ada", 3600), MUTATED, lambda c: c.touch("ada", HOUR)),
        (Touch(PEOPLE, "ada", 4102444800), MUTATED, lambda c: c.touch("ada", FAR_MOMENT)),
        (Touch(PEOPLE, "ada", 0), MUTATED, lambda c: c.touch("ada", expiry=None)),
        (GetAndLock(PEOPLE, "ada", 15), GOT, lambda c: c.get_and_lock("ada", lock_time=timedelta(seconds=15))),
        (GetAndLock(PEOPLE, "ada", 1, TEXT), GOT, lambda c: c.get_and_lock("ada", timedelta(0, 1), transcoder=TEXT)),
        (Insert(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.insert("ada", VALUE)),
        (Insert(PEOPLE, "ada", b"1", JSON_FLAGS, 3600), MUTATED, lambda c: c.insert("ada", 1, expiry=HOUR)),
        (Insert(PEOPLE, "ada", b"x", STRING_FLAGS), MUTATED, lambda c: c.insert("ada", "x", transcoder=TEXT)),
        (Upsert(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.upsert("ada", VALUE)),
        (
            Upsert(PEOPLE, "ada", b"x", BINARY_FLAGS, 3600, True),
            MUTATED,
            lambda c: c.upsert("ada", b"x", expiry=HOUR, preserve_expiry=True, transcoder=BINARY),
        ),
        (Replace(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.replace("ada", VALUE)),
        (
            Replace(PEOPLE, "ada", b"x", BINARY_FLAGS, 3600, False, CAS),
            MUTATED,
            lambda c: c.replace("ada", b"x", cas=CAS, expiry=HOUR, transcoder=BINARY),
        ),
        (
            Replace(PEOPLE, "ada", b"1", JSON_FLAGS, 0, True, CAS),
            MUTATED,
            lambda c: c.replace("ada", 1, cas=CAS, preserve_expiry=True),
        ),
        (
            Insert(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.insert("ada", 1, durability=MAJORITY),
        ),
        (
            Upsert(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.upsert("ada", 1, durability=MAJORITY),
        ),
        (
            Replace(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.replace("ada", 1, durability=MAJORITY),
        ),
        (Remove(PEOPLE, "ada", durability=MAJORITY), MUTATED, lambda c: c.remove("ada", durability=MAJORITY)),
        (Remove(PEOPLE, "ada"), MUTATED, lambda c: c.remove("ada")),
        (Remove(PEOPLE, "ada", CAS), MUTATED, lambda c: c.remove("ada", cas=CAS)),
    ],
)
async def test_a_method_submits_its_operation_and_returns_its_result(
    expected: Operation, result: Result, call: Call
) -> None:
    """Every option arrives in the operation, and the machine's result comes back as it is."""
    submitted, returned = await submit(call, result)

    assert [expected] == [event.operation for event in submitted]
    assert type(expected) is type(submitted[0].operation)
    assert result is returned


async def test_unlock_returns_nothing() -> None:
    """There is nothing to tell but that it succeeded."""
    submitted, returned = await submit(lambda c: c.unlock("ada", cas=CAS))

    assert [Unlock(PEOPLE, "ada", CAS)] == [event.operation for event in submitted]
    assert returned is None


async def test_a_document_that_does_not_exist_is_none_where_asked() -> None:
    """``get`` raises, ``get_or_none`` does not."""

    def refuse(event: Event) -> Sequence[Action]:
        if isinstance(event, OperationSubmitted):
            return [FailOperation(event.token, DocumentNotFoundException("no such document"))]
        return ()

    async with open_scripted(ScriptedClusterMachine(refuse)) as cluster:
        people = cluster.bucket("travel").default_collection()
        found = await people.get_or_none("ada")
        with pytest.raises(DocumentNotFoundException):
            await people.get("ada")

    assert found is None


async def test_a_value_that_cannot_be_stored_is_refused_before_anything_is_submitted() -> None:
    """What the transcoder says reaches the caller as it is."""
    with pytest.raises(EncodingFailureException, match="RawBinaryTranscoder"):
        await submit(lambda c: c.upsert("ada", b"x"))


async def test_a_transcoder_of_ones_own_that_returns_no_document() -> None:
    """It is a wrong argument, and nothing is sent."""

    class Forgetful(RawBinaryTranscoder):
        def encode(self, value: object, /) -> object:  # type: ignore[override]
            return value

    with pytest.raises(InvalidArgumentException, match="EncodedValue"):
        await submit(lambda c: c.upsert("ada", b"x", transcoder=Forgetful()))  # type: ignore[arg-type]


async def test_an_exception_of_a_transcoder_of_ones_own_is_not_wrapped() -> None:
    """The caller's code fails with the caller's exception."""
    error = ZeroDivisionError("mine")

    class Broken(RawBinaryTranscoder):
        def encode(self, value: object, /) -> object:  # type: ignore[override]
            raise error

    with pytest.raises(ZeroDivisionError) as caught:
        await submit(lambda c: c.upsert("ada", b"x", transcoder=Broken()))  # type: ignore[arg-type]

    assert error is caught.value
