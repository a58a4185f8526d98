"""Operations that counters and concatenation submit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.rows import rows
from tests.trio_client._collection.test_collection import CAS, HOUR, MAJORITY, MUTATED, PEOPLE, submit
from triclinium import BinaryCollection, CounterResult
from triclinium_core.kv.operation.document_operations import Append, Decrement, Increment, Operation, Prepend
from triclinium_core.kv.operation.results import Result

COUNTED = CounterResult(8, CAS)

Call = Callable[[BinaryCollection], Awaitable[object]]


@rows(
    ("expected", "result", "call"),
    [
        (Append(PEOPLE, "log", b"x"), MUTATED, lambda b: b.append("log", b"x")),
        (Append(PEOPLE, "log", b"x", CAS), MUTATED, lambda b: b.append("log", b"x", cas=CAS)),
        (Prepend(PEOPLE, "log", b"x"), MUTATED, lambda b: b.prepend("log", b"x")),
        (Prepend(PEOPLE, "log", b"x", CAS), MUTATED, lambda b: b.prepend("log", b"x", cas=CAS)),
        (Increment(PEOPLE, "visits"), COUNTED, lambda b: b.increment("visits")),
        (
            Increment(PEOPLE, "visits", 5, 1, 3600),
            COUNTED,
            lambda b: b.increment("visits", delta=5, initial=1, expiry=HOUR),
        ),
        (Decrement(PEOPLE, "visits"), COUNTED, lambda b: b.decrement("visits")),
        (
            Decrement(PEOPLE, "visits", 5, 1, 3600),
            COUNTED,
            lambda b: b.decrement("visits", delta=5, initial=1, expiry=HOUR),
        ),
        (
            Append(PEOPLE, "log", b"x", durability=MAJORITY),
            MUTATED,
            lambda b: b.append("log", b"x", durability=MAJORITY),
        ),
        (
            Prepend(PEOPLE, "log", b"x", durability=MAJORITY),
            MUTATED,
            lambda b: b.prepend("log", b"x", durability=MAJORITY),
        ),
        (
            Increment(PEOPLE, "visits", durability=MAJORITY),
            COUNTED,
            lambda b: b.increment("visits", durability=MAJORITY),
        ),
        (
            Decrement(PEOPLE, "visits", durability=MAJORITY),
            COUNTED,
            lambda b: b.decrement("visits", durability=MAJORITY),
        ),
    ],
)
async def test_a_method_submits_its_operation(expected: Operation, result: Result, call: Call) -> None:
    """Every option is a field of the submitted operation, and the machine's result is returned unchanged."""
    submitted, returned = await submit(lambda c: call(c.binary), result)

    assert [expected] == [event.operation for event in submitted]
    assert type(expected) is type(submitted[0].operation)
    assert result is returned
