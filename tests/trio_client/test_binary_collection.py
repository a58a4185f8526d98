"""Counters and concatenation submit what their arguments say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from tests.trio_client.test_collection import CAS, HOUR, MAJORITY, MUTATED, PEOPLE, STRATEGY, submit
from triclinium import BinaryCollection, CounterResult
from triclinium.errors import InvalidArgumentException
from triclinium_core.kv.operation.requests import Append, Decrement, Increment, Operation, Prepend
from triclinium_core.kv.operation.results import Result

COUNTED = CounterResult(8, CAS)

Call = Callable[[BinaryCollection], Awaitable[object]]


@pytest.mark.parametrize(
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
async def test_a_method_submits_its_operation_and_returns_its_result(
    expected: Operation, result: Result, call: Call
) -> None:
    """Every option arrives in the operation, and the machine's result comes back as it is."""
    submitted, returned = await submit(lambda c: call(c.binary), result)

    assert [expected] == [event.operation for event in submitted]
    assert type(expected) is type(submitted[0].operation)
    assert result is returned


@pytest.mark.parametrize(
    ("result", "call"),
    [
        (MUTATED, lambda b: b.append("log", b"x", retry_strategy=STRATEGY)),
        (MUTATED, lambda b: b.prepend("log", b"x", retry_strategy=STRATEGY)),
        (COUNTED, lambda b: b.increment("visits", retry_strategy=STRATEGY)),
        (COUNTED, lambda b: b.decrement("visits", retry_strategy=STRATEGY)),
    ],
)
async def test_every_operation_passes_the_strategy_of_the_call(result: Result, call: Call) -> None:
    """The strategy travels with the submission."""
    submitted, _ = await submit(lambda c: call(c.binary), result)

    assert [STRATEGY] == [event.retry_strategy for event in submitted]


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("key", lambda b: b.append("", b"x")),
        ("value", lambda b: b.append("log", "x")),
        ("cas", lambda b: b.prepend("log", b"x", cas=-1)),
        ("delta", lambda b: b.increment("visits", delta=-1)),
        ("initial", lambda b: b.increment("visits", initial=2**64)),
        ("expiry", lambda b: b.decrement("visits", expiry=timedelta(seconds=-1))),
    ],
)
async def test_a_wrong_argument_is_refused(parameter: str, call: Call) -> None:
    """The caller learns which argument it was."""
    with pytest.raises(InvalidArgumentException) as caught:
        await submit(lambda c: call(c.binary))

    assert parameter == caught.value.parameter
