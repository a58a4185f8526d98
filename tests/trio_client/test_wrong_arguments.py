"""Wrong arguments of a collection's calls and of some others, which the client refuses before it sends a byte."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.doubles import open_scripted
from tests.trio_client.pair import open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan, RecordingTracer
from triclinium import (
    BestEffortRetryStrategy,
    BinaryCollection,
    Collection,
    DurabilityLevel,
    JsonTranscoder,
    RawBinaryTranscoder,
    RawStringTranscoder,
    errors,
)
from triclinium.scans import PrefixScan
from triclinium.subdocument import LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.contract.couchbase import Action, Event, FailOperation, OperationSubmitted
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

MEBIBYTE = 1024 * 1024
RAW = RawBinaryTranscoder()
RIGHT: Mapping[str, object] = {
    "key": "ada",
    "value": b"1",
    "expiry": timedelta(hours=1),
    "lock_time": timedelta(seconds=15),
    "cas": 7,
    "delta": 1,
    "initial": 1,
    "preserve_expiry": False,
    "durability": DurabilityLevel.MAJORITY,
    "transcoder": RawBinaryTranscoder(),
    "retry_strategy": BestEffortRetryStrategy(),
    "access_deleted": False,
    "store_semantics": StoreSemantics.UPSERT,
}
"""One valid value per argument. Arguments that are missing here and in ``RIGHT_IN`` get None."""

RIGHT_IN: Mapping[tuple[str, str], object] = {
    ("lookup_in", "specs"): [LookupInSpec.get("a")],
    ("lookup_in_any_replica", "specs"): [LookupInSpec.get("a")],
    ("mutate_in", "specs"): [MutateInSpec.upsert("a", b"1")],
}
"""Valid values of arguments of single methods."""

HUGE = 10**5000


class OnlyEnds:
    """Object with one method of a span."""

    def end(self) -> None:
        """Do nothing."""


_NO_UINT64 = (-1, 2**64, HUGE, "7", b"7", 7.0, True, None)
WRONG: Mapping[str, Sequence[object]] = {
    "parent_span": ("span", 7, True, object(), {}, RecordedSpan, OnlyEnds()),
    "key": ("", "x" * 251, "é" * 126, "\ud800", b"ada", 7, HUGE, None, ["ada"]),
    "value": (),
    "expiry": (
        "1h",
        True,
        HUGE,
        -1,
        float("nan"),
        # More than fifty years in seconds is refused, because the caller probably means a point in time.
        1.6e9,
        timedelta(seconds=-1),
        timedelta(microseconds=-1),
        timedelta.max,
        datetime(2100, 1, 1),  # noqa: DTZ001
        datetime(2001, 1, 1, tzinfo=UTC),
        datetime(2200, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    ),
    "lock_time": (
        "15",
        True,
        None,
        0,
        -1.0,
        30.5,
        float("inf"),
        timedelta(0),
        timedelta(seconds=-1),
        timedelta(seconds=30, microseconds=1),
    ),
    "cas": _NO_UINT64,
    "delta": _NO_UINT64,
    "initial": _NO_UINT64[:-1],
    "preserve_expiry": (1, 0, "yes", None),
    "durability": (0, 1, "MAJORITY", None, True, DurabilityLevel, HUGE),
    "transcoder": ("json", 7, HUGE, JsonTranscoder, object()),
    "retry_strategy": ("best effort", 7, HUGE, BestEffortRetryStrategy, object()),
    "specs": ((), [], "a", b"a", None, 7, ["a"], {}, LookupInSpec.get("a"), [None]),
    "access_deleted": (1, 0, "yes", None),
    "store_semantics": ("upsert", 1, None, StoreSemantics, True),
}
"""Invalid values of each argument."""

WRONG_IN: Mapping[tuple[str, str], Sequence[object]] = {
    ("unlock", "cas"): (0,),
    ("append", "value"): ("text", bytearray(b"1"), memoryview(b"1"), 1, None),
    ("prepend", "value"): ("text", bytearray(b"1"), memoryview(b"1"), 1, None),
    ("lookup_in", "specs"): ([LookupInSpec.get("a")] * 17, [MutateInSpec.remove("a")]),
    ("lookup_in_any_replica", "specs"): ([LookupInSpec.get("a")] * 17, [MutateInSpec.remove("a")]),
    ("mutate_in", "specs"): (
        [MutateInSpec.remove("a")] * 17,
        [LookupInSpec.get("a")],
        [MutateInSpec.remove(""), MutateInSpec.remove("a")],
        [MutateInSpec.remove("a"), LookupInSpec.get("a")],
    ),
}
"""Further invalid values for arguments of single methods."""


def methods() -> Iterator[tuple[str, str]]:
    """Yield the name of each coroutine method of a collection or its binary collection, with each parameter's name."""
    for kind in (Collection, BinaryCollection):
        for name, method in inspect.getmembers(kind, inspect.iscoroutinefunction):
            for parameter in list(inspect.signature(method).parameters)[1:]:
                yield name, parameter


NAMES = sorted({name for name, _ in methods()})


def method_of(collection: Collection, name: str) -> Callable[..., Awaitable[object]]:
    """Return a method of a collection, or of its binary collection."""
    method: Callable[..., Awaitable[object]] = getattr(collection, name, None) or getattr(collection.binary, name)
    return method


def right_arguments(method: Callable[..., Awaitable[object]]) -> dict[str, object]:
    """Return valid arguments of a method."""
    name = method.__name__
    return {
        parameter: RIGHT_IN.get((name, parameter), RIGHT.get(parameter))
        for parameter in inspect.signature(method).parameters
    }


async def test_valid_arguments_are_sent(autojump_clock: MockClock) -> None:
    """A call with valid arguments, of which the other tests each change one, is sent."""
    async with open_pair() as (fake, _, people):
        await people.exists("ada")
        for name in NAMES:
            before = len(fake.node.command_log)
            method = method_of(people, name)
            # Ignore the node's response: the test checks only that the request was sent.
            with contextlib.suppress(errors.KeyValueException, errors.CasMismatchException):
                await method(**{**right_arguments(method), "key": name})

            assert before + 1 == len(fake.node.command_log), name


@rows("name", NAMES)
async def test_the_strategy_of_a_call_is_submitted(name: str) -> None:
    """The strategy of a call is part of its submission."""

    def refuse(event: Event) -> Sequence[Action]:
        if isinstance(event, OperationSubmitted):
            return [FailOperation(event.token, errors.DocumentNotFoundException("no such document"))]
        return ()

    machine = ScriptedClusterMachine(refuse)
    async with open_scripted(machine) as cluster:
        method = method_of(cluster.bucket("travel").default_collection(), name)
        # Ignore the refusal by the machine, which some methods convert: the test checks only the submission.
        with contextlib.suppress(errors.CouchbaseException):
            await method(**right_arguments(method))

    assert machine.submitted
    assert all(event.retry_strategy is RIGHT["retry_strategy"] for event in machine.submitted)


async def test_a_wrong_argument_is_named(autojump_clock: MockClock) -> None:
    """A wrong argument raises with its name at a checkpoint, nothing is sent, and the client continues."""
    async with open_pair() as (fake, cluster, people):
        await people.exists("ada")
        before = len(fake.node.command_log)
        for name, parameter in methods():
            method = method_of(people, name)
            for wrong in (*WRONG[parameter], *WRONG_IN.get((name, parameter), ())):
                with trio.testing.assert_checkpoints():
                    blamed = await blame(method, {**right_arguments(method), parameter: wrong})

                assert parameter == blamed, f"{name} with {shown(wrong)}"
        await trio.sleep(5)

        assert before == len(fake.node.command_log)
        assert 0 == cluster.statistics().open_operations
        assert not (await people.exists("ada")).exists


async def blame(method: Callable[..., Awaitable[object]], arguments: Mapping[str, object]) -> str | None:
    """Return the name of the argument for which a call is refused; None if it is not refused."""
    try:
        await method(**arguments)
    except errors.InvalidArgumentException as error:
        assert error.parameter is not None
        assert error.parameter in str(error)
        return error.parameter
    return None


def shown(value: object) -> str:
    """Return a value as a failing test shows it."""
    return "a huge number" if value == HUGE else repr(value)[:60]


@rows("expiry", [timedelta(hours=1), HUGE])
async def test_expiry_excludes_preserve_expiry(autojump_clock: MockClock, expiry: Any) -> None:
    """``expiry`` with ``preserve_expiry`` is refused, even an invalid one, unless ``mutate_in`` may create a document."""
    both: Mapping[str, Any] = {"expiry": expiry, "preserve_expiry": True}
    specs = [MutateInSpec.upsert("a", 1)]
    async with open_pair() as (fake, _, people):
        for call in (
            lambda: people.replace("ada", 1, **both),
            lambda: people.mutate_in("ada", specs, **both),
            lambda: entered(people.replace_many([], **both)),
        ):
            with pytest.raises(errors.InvalidArgumentException) as caught:
                await call()
            assert "expiry" == caught.value.parameter
        await trio.sleep(5)
        assert not any(command.key == b"ada" for command in fake.node.command_log)

        if expiry != HUGE:
            await people.mutate_in("ada", specs, store_semantics=StoreSemantics.UPSERT, **both)


async def entered(block: AbstractAsyncContextManager[object]) -> None:
    """Enter a block."""
    async with block:
        pass


async def test_a_value_that_cannot_be_encoded(autojump_clock: MockClock) -> None:
    """A value that cannot be encoded, or a part of one, raises the transcoder's error, and nothing is sent."""
    async with open_pair() as (fake, _, people):
        await people.exists("ada")
        before = len(fake.node.command_log)
        for transcoder, value in ((None, object()), (RawStringTranscoder(), 7), (RawBinaryTranscoder(), "text")):
            for name in ("insert", "upsert", "replace"):
                with pytest.raises(errors.EncodingFailureException):
                    await method_of(people, name)("ada", value, transcoder=transcoder)
        with pytest.raises(errors.EncodingFailureException):
            await people.mutate_in("ada", [MutateInSpec.upsert("a", object())])

        assert before == len(fake.node.command_log)


async def test_a_value_that_is_too_large(autojump_clock: MockClock) -> None:
    """Each of the six calls with a value above 20 MiB raises ValueTooLargeException, and nothing is sent."""
    async with open_pair() as (fake, _, people):
        await people.exists("ada")
        before = len(fake.node.command_log)
        value = bytes(20 * MEBIBYTE + 1)
        calls: list[Callable[[], Awaitable[object]]] = [
            *(
                partial(method_of(people, name), "ada", value, transcoder=RAW)
                for name in ("insert", "upsert", "replace")
            ),
            *(partial(method_of(people, name), "ada", value) for name in ("append", "prepend")),
            lambda: people.mutate_in("ada", [MutateInSpec.upsert("a", value)], transcoder=RAW),
        ]
        for call in calls:
            with pytest.raises(errors.ValueTooLargeException):
                await call()

        assert before == len(fake.node.command_log)


async def test_a_key_in_a_named_collection(autojump_clock: MockClock) -> None:
    """The maximum length of a key is smaller in a named collection, whose id takes some bytes."""
    async with open_pair() as (_, cluster, people):
        await people.upsert("x" * 250, 1)
        named = cluster.bucket("travel").scope("inventory").collection("people")
        await named.upsert("x" * 246, 1)
        with pytest.raises(errors.InvalidArgumentException) as caught:
            await named.upsert("x" * 247, 1)

    assert "key" == caught.value.parameter


BULK_RIGHT: Mapping[str, object] = {
    **RIGHT,
    "keys": ["ada"],
    "items": [("ada", b"1")],
    "concurrency": 64,
    "errors": "collect",
}
"""One valid value per argument of a bulk call. Missing arguments get None."""
BULK_WRONG: Mapping[str, Sequence[object]] = {
    **WRONG,
    "concurrency": (0, -1, 16_385, HUGE, "64", 64.0, True, None),
    "errors": ("ignore", "", None, True, 1, [], ["raise"]),
}
"""Invalid values of each argument of a bulk call, except its source."""
BULK = [name for name in dir(Collection) if name.endswith("_many")]


def bulk_arguments(name: str) -> dict[str, object]:
    """Return valid arguments of a bulk call."""
    given = {each: BULK_RIGHT.get(each) for each in inspect.signature(getattr(Collection, name)).parameters}
    del given["self"]
    return {**given, "expiry": None} if name == "replace_many" else given


@rows("name", [*BULK, "get_all_replicas"])
async def test_wrong_arguments_of_blocks(name: str, autojump_clock: MockClock) -> None:
    """A wrong argument of a call that returns a block raises with its name before the block; valid ones are sent."""
    async with open_pair() as (fake, _, people):
        await people.exists("ada")
        before = len(fake.node.command_log)
        right = bulk_arguments(name)
        for parameter in right.keys() - {"keys", "items"}:
            for wrong in BULK_WRONG[parameter]:
                with pytest.raises(errors.InvalidArgumentException) as caught:
                    getattr(people, name)(**{**right, parameter: wrong})
                assert parameter == caught.value.parameter, f"{name} with {shown(wrong)}"
        await trio.sleep(5)
        assert before == len(fake.node.command_log)

        async with getattr(people, name)(**right) as block:
            await trio.sleep(1)

        assert name not in BULK or 1 == block.taken
        assert before < len(fake.node.command_log)


@pytest.mark.parametrize("is_traced", [True, False])
async def test_an_invalid_parent_span(is_traced: bool, autojump_clock: MockClock) -> None:
    """An invalid parent span is refused by all kinds of calls, with or without a tracer, and no span is started."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer if is_traced else None) as (fake, cluster, people):
        await people.exists("ada")
        before, spans = len(fake.node.command_log), len(tracer.spans)
        for wrong in WRONG["parent_span"]:
            arguments: dict[str, Any] = {"parent_span": wrong}
            calls: Mapping[str, Callable[..., object]] = {
                "query": lambda **given: cluster.query("SELECT 1", **given),
                "analytics_query": lambda **given: cluster.analytics_query("SELECT 1", **given),
                "get_all_replicas": lambda **given: people.get_all_replicas("ada", **given),
                "scan": lambda **given: people.scan(PrefixScan("a"), **given),
            }
            for name, call in calls.items():
                with pytest.raises(errors.InvalidArgumentException) as caught:
                    call(**arguments)
                assert "parent_span" == caught.value.parameter, name
            awaited: Mapping[str, Callable[..., Awaitable[object]]] = {
                "ping": cluster.ping,
                "get_bucket": lambda **given: cluster.buckets().get_bucket("travel", **given),
                "drop_bucket": lambda **given: cluster.buckets().drop_bucket("travel", **given),
                "get_all_indexes": lambda **given: cluster.query_indexes().get_all_indexes("travel", **given),
            }
            for name, method in awaited.items():
                with trio.testing.assert_checkpoints():
                    assert "parent_span" == await blame(method, arguments), name
        await trio.sleep(5)

        assert (before, spans) == (len(fake.node.command_log), len(tracer.spans))
        assert 0 == cluster.statistics().open_operations
        await cluster.buckets().get_bucket("travel")
