"""Operations of a bulk block: their number and order, their source, and their failures, timeouts and telemetry."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.rows import rows
from tests.trio_client import doubles
from tests.trio_client._bulk.blocks import SLOW, keys, sent, totals
from tests.trio_client.pair import Never, Pair, open_pair
from tests.trio_client.recorded_telemetry import RecordedSpan, RecordingMeter, RecordingTracer
from triclinium import JsonTranscoder, client_context, errors, retrying, watching_retries
from triclinium.retries import RetryAction, RetryReason, RetryReport, RetryRequest, RetryScheduled, RetrySucceeded
from triclinium.testing import Opcode, delay, hang_up, temporary_failure
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, FailOperation, OperationSubmitted
from triclinium_core.kv.operation.results import Cas, ExistsResult
from triclinium_core.testing.driver_laws import ScriptedClusterMachine


def value_of(pair: Pair, key: str) -> bytes | None:
    """Return the stored value of a document."""
    document = pair.fake.nodes.documents.get("travel", key)
    return None if document is None else document.value


# -- Concurrency, and the order of outcomes.


class Watched:
    """Source that records the maximum number of its items whose outcomes were not taken."""

    def __init__(self, count: int) -> None:
        self.taken = 0
        self.most = 0
        self._left = iter(keys(count))
        self._unread = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        key = next(self._left)
        self._unread += 1
        self.most = max(self.most, self._unread)
        return key

    def read(self) -> None:
        """Record that the outcome of an item was taken."""
        self._unread -= 1


@pytest.mark.parametrize("concurrency", [1, 2, 5, 64, 16_384])
async def test_concurrency_bounds_unread_items(concurrency: int, autojump_clock: MockClock) -> None:
    """At most ``concurrency`` items are in flight, or finished and unread, however the body takes the outcomes."""
    async with open_pair() as (_, cluster, people):
        source = Watched(200)
        async with people.exists_many(source, concurrency=concurrency) as block:
            await trio.sleep(SLOW)
            assert min(200, concurrency) == source.most == block.taken
            count = 0
            async for _ in block:
                source.read()
                count += 1
                if count % 7 == 0:
                    await trio.sleep(SLOW)
                assert cluster.statistics().open_operations <= concurrency

    assert 200 == count
    assert min(200, concurrency) == source.most


async def test_default_concurrency(autojump_clock: MockClock) -> None:
    """Without ``concurrency``, 64 items are in flight."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.always(Opcode.GET, delay(SLOW))
        async with pair.people.get_many(keys(100), errors="collect") as block:
            await wait_all_tasks_blocked()
            assert (64, 64) == (block.taken, pair.cluster.statistics().open_operations)


async def test_outcomes_come_in_order_of_completion(autojump_clock: MockClock) -> None:
    """Outcomes come in order of completion, and an item that is refused comes first, although it is last."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.SET, delay(SLOW))
        async with pair.people.upsert_many([("slow", 1), ("fast", 1), ("", 1)], errors="collect") as block:
            order = [key async for key, _ in block]

    assert ["", "fast", "slow"] == order


# -- Items with equal keys.


async def test_the_last_value_of_a_key_wins(autojump_clock: MockClock) -> None:
    """An item whose key is in flight waits for it, also after a retry, so that the values are written in order."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.SET, delay(SLOW))
        pair.fake.node.faults.next(Opcode.SET, temporary_failure(), times=3)
        items = [("a", 1), ("b", 1), ("a", 2), ("b", object()), ("a", 3), ("b", 2), ("a", 4)]
        async with pair.people.upsert_many(items, errors="collect") as block:
            found = [(key, outcome.error is None) async for key, outcome in block]

        assert (b"4", b"2") == (value_of(pair, "a"), value_of(pair, "b"))
        assert [("a", True)] * 4 == [each for each in found if each[0] == "a"]
        assert [("b", True), ("b", False), ("b", True)] == [each for each in found if each[0] == "b"]
        assert (7, 6, ("b",)) == (block.taken, block.succeeded, block.not_applied)


class Person(StrEnum):
    """Keys that are members of an enumeration."""

    ADA = "ada"


class Text(str):
    """Key whose type is a subclass of ``str``."""

    __slots__ = ()


@rows("key", [Person.ADA, Text("ada")])
async def test_keys_of_a_subclass_are_in_order(key: str, autojump_clock: MockClock) -> None:
    """Equal keys wait for each other even if some of them are members of an enumeration or of a subclass of str."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.SET, delay(SLOW))
        async with pair.people.upsert_many([(key, 1), ("ada", 2), (key, 3)]) as block:
            await wait_all_tasks_blocked()
            assert 1 == pair.cluster.statistics().open_operations

        assert b"3" == value_of(pair, "ada")
        assert (3, 3) == (block.taken, block.succeeded)


def exists_at_once(event: Event) -> Sequence[Action]:
    """Return the completion of a submitted operation, or its failure if the key is "no"."""
    if not isinstance(event, OperationSubmitted):
        return ()
    if event.operation.key == "no":
        return [FailOperation(event.token, errors.TemporaryFailureException("no"))]
    return [CompleteOperation(event.token, ExistsResult(exists=True, cas=Cas(1)))]


async def test_operations_that_end_during_submission() -> None:
    """Many items with equal keys each have one outcome, even if each operation ends while it is submitted."""
    machine = ScriptedClusterMachine(exists_at_once)
    async with doubles.open_scripted(machine) as cluster:
        people = cluster.bucket("travel").default_collection()
        async with people.exists_many([*["a"] * 5, *["no"] * 5, "b"], errors="collect", concurrency=7) as block:
            found = [key async for key, _ in block]

    assert ["a"] * 5 + ["b"] + ["no"] * 5 == sorted(found)
    assert (11, 6, 5) == (block.taken, block.succeeded, block.failed_count)
    assert 11 == len(machine.submitted)


# -- Sources and their items.


async def asynchronously(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield items; every third one after a checkpoint."""
    for number, item in enumerate(items):
        if number % 3 == 0:
            await trio.lowlevel.checkpoint()
        yield item


class Both:
    """Source of "a" and "b" with both kinds of iteration, of which the synchronous one fails."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    def __aiter__(self) -> AsyncIterator[str]:
        return asynchronously("ab")


class WithoutMapping(NamedTuple):
    """Pair whose fields have names."""

    key: str
    value: int


@rows(
    "items",
    [
        {"a": 1, "b": 2},
        {"a": 1, "b": 2}.items(),
        [("a", 1), ("b", 2)],
        (["a", 1], deque(["b", 2])),
        [WithoutMapping("a", 1), WithoutMapping("b", 2)],
        frozenset({("a", 1), ("b", 2)}),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_sources_of_pairs(items: Any, is_async: bool, autojump_clock: MockClock) -> None:
    """A source is a mapping, or an iterable or asynchronous iterable of pairs, which are sequences of two values."""
    given = asynchronously(list(items.items() if isinstance(items, Mapping) else items)) if is_async else items
    async with open_pair() as pair:
        async with pair.people.upsert_many(given) as block:
            pass

        assert (b"1", b"2") == (value_of(pair, "a"), value_of(pair, "b"))
        assert (2, 2) == (block.taken, block.succeeded)


async def test_long_asynchronous_sources(autojump_clock: MockClock) -> None:
    """An asynchronous source longer than all bounds is read to the end."""
    async with open_pair() as (_, _, people), people.exists_many(asynchronously(keys(1000)), concurrency=300) as block:
        found = [key async for key, _ in block]

    assert sorted(keys(1000)) == sorted(found)


async def test_sources_of_keys(autojump_clock: MockClock) -> None:
    """A source of keys is a mapping, whose keys are used, or any iterable; one of both kinds is read asynchronously."""
    async with open_pair() as (_, _, people):
        for source in ({"a": 1, "b": 2}, {"a", "b"}, iter("ab"), asynchronously("ab"), Both()):
            async with people.exists_many(source) as block:
                assert ["a", "b"] == sorted([key async for key, _ in block])


@rows("source", ["ada", b"ada", bytearray(b"ada"), None, 7, object(), asynchronously])
async def test_sources_that_cannot_be_iterated(source: Any, autojump_clock: MockClock) -> None:
    """A text, bytes, or an object without items raises TypeError from the call itself."""
    async with open_pair() as (_, _, people):
        for call in (people.get_many, people.exists_many, people.remove_many):
            with pytest.raises(TypeError, match="iterable"):
                call(source)
        for change in (people.upsert_many, people.insert_many, people.replace_many):
            with pytest.raises(TypeError, match="iterable"):
                change(source)
        with pytest.raises(TypeError, match="iterable"):
            people.touch_many(source, 10)


MAPPING = {"a": 1, "b": 2}


@rows(
    "item",
    ["ab", b"ab", bytearray(b"ab"), (), ("a",), ("a", 1, 2), 7, None, MAPPING, MAPPING.items(), {"a", "b"}, iter("ab")],
)
async def test_items_that_are_no_pairs(item: Any, autojump_clock: MockClock) -> None:
    """An item that is no pair raises TypeError with its number and type; it is not taken, and sends nothing."""
    async with open_pair() as pair:
        for is_async in (False, True):
            items = [("x", 1), ("y", 2), item, ("z", 3)]
            with pytest.raises(TypeError, match=f"item 3 .* of type {type(item).__name__} "):
                async with (
                    aclosing(asynchronously(items)) as source,
                    pair.people.upsert_many(source if is_async else items) as block,
                ):
                    assert ["x", "y"] == sorted([key async for key, _ in block])

            assert (2, 2, 0, 0) == totals(block)
        assert {b"x", b"y"} == set(sent(pair))


@rows("key", ["", "x" * 251, "\ud800", b"ada", 7, None, ["ada"], ("a", 1)])
async def test_keys_that_are_refused(key: Any, autojump_clock: MockClock) -> None:
    """A wrong key is the outcome of its item, with the exception of the single call, and is not sent."""
    async with open_pair() as pair:
        with pytest.raises(errors.InvalidArgumentException) as single:
            await pair.people.get(key)
        async with pair.people.get_many([key, "ada"], errors="collect") as block:
            outcomes = [(found, outcome.error) async for found, outcome in block]

        (refused, error), (found, _) = outcomes
        assert (key, "ada") == (refused, found)
        assert str(single.value) == str(error)
        assert type(error) is errors.InvalidArgumentException
        assert [b"ada"] == sent(pair, Opcode.GET)
        assert (2, 2) == (block.taken, block.failed_count)


class OnlyNumbers(JsonTranscoder):
    """Transcoder of a user, which refuses strings with its own exception."""

    def encode(self, value: object, /) -> Any:
        """Encode any value except a string."""
        if isinstance(value, str):
            raise KeyError(value)
        return super().encode(value)


async def test_values_that_are_refused(autojump_clock: MockClock) -> None:
    """A value that the transcoder refuses is the outcome of its item, with the transcoder's exception."""
    async with open_pair() as pair:
        items = [("a", "text"), ("b", 1), ("c", object())]
        async with pair.people.upsert_many(items, transcoder=OnlyNumbers(), errors="collect") as block:
            found = {key: outcome.error async for key, outcome in block}

        assert isinstance(found["a"], KeyError)
        assert isinstance(found["c"], errors.EncodingFailureException)
        assert (3, 1, ("a", "c"), ()) == (block.taken, block.succeeded, block.not_applied, block.ambiguous)
        assert [b"b"] == sent(pair)


# -- Operations of the items.


async def test_submissions_enter_the_driver_together() -> None:
    """The operations of many items are submitted in few events."""
    machine = ScriptedClusterMachine(exists_at_once)
    batches: list[int] = []
    handle = machine.handle

    def count(event: Event, now: float) -> Sequence[Action]:
        submissions = getattr(event, "submissions", None)
        if submissions is not None:
            batches.append(len(submissions))
        return handle(event, now)

    machine.handle = count  # type: ignore[method-assign]
    async with (
        doubles.open_scripted(machine) as cluster,
        cluster.bucket("travel").default_collection().exists_many(keys(600), concurrency=100) as block,
    ):
        async for _ in block:
            pass

    assert 600 == sum(batches)
    assert len(batches) <= 2 * 600 // 50


async def test_each_operation_has_its_own_timeout(autojump_clock: MockClock) -> None:
    """Each operation times out after its own submission; the block has no timeout."""
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.always(Opcode.SET, delay(100))
        times = []
        began = trio.current_time()
        items = ((key, 1) for key in keys(6))
        async with pair.people.upsert_many(items, concurrency=2, errors="collect") as block:
            async for _, outcome in block:
                assert isinstance(outcome.error, errors.AmbiguousTimeoutException)
                times.append(round(trio.current_time() - began, 1))

    assert [2.5, 2.5, 5.0, 5.0, 7.5, 7.5] == times
    assert (6, 6) == (block.taken, block.ambiguous_count)


async def test_one_span_and_metric_for_each_item(autojump_clock: MockClock) -> None:
    """Each valid item has the span and the metric of its single call, and the given parent; the block has none."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_pair(tracer=tracer, meter=meter) as pair:
        await pair.people.upsert("single", 1)
        [single] = tracer.of("upsert")
        tracer.spans.clear()
        meter.values.clear()
        parent = RecordedSpan("mine", None)
        async with pair.people.upsert_many([("a", 1), ("", 1), ("a", 2)], parent_span=parent, errors="collect"):
            pass

        assert [single.shape()] * 2 == [span.shape() for span in parent.children]
        assert {id(span) for span in tracer.spans} == {
            id(span) for each in parent.children for span in (each, *each.children)
        }
        assert 2 == len([tags for _, tags, _ in meter.values])
        assert [] == tracer.broken_rules


async def test_an_abandoned_item_ends_its_span(autojump_clock: MockClock) -> None:
    """The span of each operation that was abandoned has ended, like that of a cancelled call."""
    tracer = RecordingTracer()
    async with open_pair(tracer=tracer) as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.always(Opcode.SET, delay(SLOW))
        with trio.move_on_after(SLOW / 2):
            async with pair.people.upsert_many([("a", 1), ("a", 2), ("b", 1)]):
                await trio.sleep_forever()
        await trio.sleep(2 * SLOW)

        assert 2 == len(tracer.of("upsert"))
        assert [] == tracer.broken_rules


variable: ContextVar[str] = ContextVar("variable", default="unset")


class Asking:
    """Strategy that records its context, and retries."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Retry after a delay."""
        self.seen.append((variable.get(), request.client_context.get("user")))
        return RetryAction.after(0.5)


class AskingAsync(Asking):
    """Asynchronous variant."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:  # type: ignore[override]
        """Retry after a delay."""
        await trio.lowlevel.checkpoint()
        return super().retry_after(request, reason)


@pytest.mark.parametrize("is_argument", [True, False])
@pytest.mark.parametrize("make", [Asking, AskingAsync])
async def test_blocks_around_the_block(
    make: Callable[[], Asking], is_argument: bool, autojump_clock: MockClock
) -> None:
    """The strategy of the call or of its block, a context and hooks apply to each operation, in the task's context."""
    reports: list[tuple[str, RetryReport]] = []
    strategy = make()
    async with open_pair() as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.SET, temporary_failure(), times=3)
        variable.set("mine")
        with (
            retrying(Never() if is_argument else strategy),
            client_context(user="ada"),
            watching_retries(lambda report: reports.append((variable.get(), report))),
        ):
            given: dict[str, Any] = {"retry_strategy": strategy} if is_argument else {}
            async with pair.people.upsert_many(dict.fromkeys(keys(3), 1), **given) as block:
                variable.set("of the body")

    assert 3 == block.succeeded
    if make is AskingAsync:
        assert [("mine", "ada")] * 3 == strategy.seen
    assert ["ada"] * 3 == [user for _, user in strategy.seen]
    assert {"mine"} == {value for value, _ in reports}
    assert [RetryScheduled] * 3 + [RetrySucceeded] * 3 == [type(report) for _, report in reports]


async def test_ambiguous_and_certain_failures(autojump_clock: MockClock) -> None:
    """A lost connection makes a sent write ambiguous; a refused retry of a request that was not applied does not."""
    async with open_pair(retry_strategy=Never()) as pair:
        await pair.people.exists("ada")
        pair.fake.node.faults.next(Opcode.SET, temporary_failure())
        async with pair.people.upsert_many([("certain", 1)], errors="collect") as certain:
            pass
        pair.fake.node.faults.next(Opcode.SET, hang_up())
        async with pair.people.upsert_many([("ambiguous", 1)], errors="collect") as ambiguous:
            pass
        pair.fake.node.faults.next(Opcode.GET, hang_up())
        async with pair.people.get_many(["ambiguous"], errors="collect") as read:
            pass

    assert (("certain",), ()) == (certain.not_applied, certain.ambiguous)
    assert ((), ("ambiguous",)) == (ambiguous.not_applied, ambiguous.ambiguous)
    assert ("ambiguous",) == read.failed
