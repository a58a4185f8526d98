"""Operations that the methods of a collection submit, and their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

import triclinium
from tests.rows import rows
from tests.trio_client.doubles import DONE, open_scripted
from triclinium import errors
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, OperationSubmitted
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.results import Result
from triclinium_core.testing.driver_laws import ScriptedClusterMachine
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS

PEOPLE = document_operations.Keyspace("travel", "inventory", "people")
CAS = triclinium.Cas(7)
HOUR = timedelta(hours=1)
FAR_MOMENT = datetime(2100, 1, 1, tzinfo=UTC)
TEXT = triclinium.RawStringTranscoder()
BINARY = triclinium.RawBinaryTranscoder()
MAJORITY = triclinium.DurabilityLevel.MAJORITY
STRATEGY = triclinium.BestEffortRetryStrategy()

GOT = triclinium.GetResult(CAS, JSON_FLAGS, b'{"born":1815}', document_operations.JSON_TRANSCODER)
MUTATED = triclinium.MutationResult(CAS)
EXISTS = triclinium.ExistsResult(True, CAS)

Call = Callable[[triclinium.Collection], Awaitable[object]]


async def submit(call: Call, result: Result = DONE) -> tuple[list[OperationSubmitted], object]:
    """Return the operations that ``call`` submits and its result, if every operation completes with ``result``."""

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
        (document_operations.Get(PEOPLE, "ada"), GOT, lambda c: c.get("ada")),
        (document_operations.Get(PEOPLE, "ada", TEXT), GOT, lambda c: c.get("ada", transcoder=TEXT)),
        (document_operations.Get(PEOPLE, "ada"), GOT, lambda c: c.get_or_none("ada")),
        (document_operations.Get(PEOPLE, "ada", TEXT), GOT, lambda c: c.get_or_none("ada", transcoder=TEXT)),
        (document_operations.Exists(PEOPLE, "ada"), EXISTS, lambda c: c.exists("ada")),
        (document_operations.GetAndTouch(PEOPLE, "ada", 3600), GOT, lambda c: c.get_and_touch("ada", HOUR)),
        (
            document_operations.GetAndTouch(PEOPLE, "ada", 0, TEXT),
            GOT,
            lambda c: c.get_and_touch("ada", None, transcoder=TEXT),
        ),
        (document_operations.Touch(PEOPLE, "ada", 3600), MUTATED, lambda c: c.touch("ada", HOUR)),
        (document_operations.Touch(PEOPLE, "ada", 4102444800), MUTATED, lambda c: c.touch("ada", FAR_MOMENT)),
        (document_operations.Touch(PEOPLE, "ada", 0), MUTATED, lambda c: c.touch("ada", expiry=None)),
        (
            document_operations.GetAndLock(PEOPLE, "ada", 15),
            GOT,
            lambda c: c.get_and_lock("ada", lock_time=timedelta(seconds=15)),
        ),
        (
            document_operations.GetAndLock(PEOPLE, "ada", 1, TEXT),
            GOT,
            lambda c: c.get_and_lock("ada", timedelta(0, 1), transcoder=TEXT),
        ),
        (document_operations.Insert(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.insert("ada", VALUE)),
        (
            document_operations.Insert(PEOPLE, "ada", b"1", JSON_FLAGS, 3600),
            MUTATED,
            lambda c: c.insert("ada", 1, expiry=HOUR),
        ),
        (
            document_operations.Insert(PEOPLE, "ada", b"x", STRING_FLAGS),
            MUTATED,
            lambda c: c.insert("ada", "x", transcoder=TEXT),
        ),
        (document_operations.Upsert(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.upsert("ada", VALUE)),
        (
            document_operations.Upsert(PEOPLE, "ada", b"x", BINARY_FLAGS, 3600, True),
            MUTATED,
            lambda c: c.upsert("ada", b"x", expiry=HOUR, preserve_expiry=True, transcoder=BINARY),
        ),
        (document_operations.Replace(PEOPLE, "ada", DOCUMENT, JSON_FLAGS), MUTATED, lambda c: c.replace("ada", VALUE)),
        (
            document_operations.Replace(PEOPLE, "ada", b"x", BINARY_FLAGS, 3600, False, CAS),
            MUTATED,
            lambda c: c.replace("ada", b"x", cas=CAS, expiry=HOUR, transcoder=BINARY),
        ),
        (
            document_operations.Replace(PEOPLE, "ada", b"1", JSON_FLAGS, 0, True, CAS),
            MUTATED,
            lambda c: c.replace("ada", 1, cas=CAS, preserve_expiry=True),
        ),
        (
            document_operations.Insert(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.insert("ada", 1, durability=MAJORITY),
        ),
        (
            document_operations.Upsert(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.upsert("ada", 1, durability=MAJORITY),
        ),
        (
            document_operations.Replace(PEOPLE, "ada", b"1", JSON_FLAGS, durability=MAJORITY),
            MUTATED,
            lambda c: c.replace("ada", 1, durability=MAJORITY),
        ),
        (
            document_operations.Remove(PEOPLE, "ada", durability=MAJORITY),
            MUTATED,
            lambda c: c.remove("ada", durability=MAJORITY),
        ),
        (document_operations.Remove(PEOPLE, "ada"), MUTATED, lambda c: c.remove("ada")),
        (document_operations.Remove(PEOPLE, "ada", CAS), MUTATED, lambda c: c.remove("ada", cas=CAS)),
    ],
)
async def test_a_method_submits_its_operation(
    expected: document_operations.Operation, result: Result, call: Call
) -> None:
    """Every option is a field of the submitted operation, and the machine's result is returned unchanged."""
    submitted, returned = await submit(call, result)

    assert [expected] == [event.operation for event in submitted]
    assert type(expected) is type(submitted[0].operation)
    assert result is returned


async def test_unlock_returns_nothing() -> None:
    """``unlock`` returns None if it succeeds."""
    submitted, returned = await submit(lambda c: c.unlock("ada", cas=CAS))

    assert [document_operations.Unlock(PEOPLE, "ada", CAS)] == [event.operation for event in submitted]
    assert returned is None


async def test_a_value_the_transcoder_refuses() -> None:
    """The exception of the transcoder for a wrong value reaches the caller."""
    with pytest.raises(errors.EncodingFailureException, match="RawBinaryTranscoder"):
        await submit(lambda c: c.upsert("ada", b"x"))


async def test_a_transcoder_that_returns_no_encoded_value() -> None:
    """If a custom transcoder returns no EncodedValue, the call raises as for a wrong argument."""

    class Forgetful(triclinium.RawBinaryTranscoder):
        def encode(self, value: object, /) -> object:  # type: ignore[override]
            return value

    with pytest.raises(errors.InvalidArgumentException, match="EncodedValue"):
        await submit(lambda c: c.upsert("ada", b"x", transcoder=Forgetful()))  # type: ignore[arg-type]


async def test_a_custom_transcoders_exception_is_not_wrapped() -> None:
    """An exception of a custom transcoder reaches the caller as the same object."""
    error = ZeroDivisionError("mine")

    class Broken(triclinium.RawBinaryTranscoder):
        def encode(self, value: object, /) -> object:  # type: ignore[override]
            raise error

    with pytest.raises(ZeroDivisionError) as caught:
        await submit(lambda c: c.upsert("ada", b"x", transcoder=Broken()))  # type: ignore[arg-type]

    assert error is caught.value
