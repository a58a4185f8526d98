"""Properties of bulk blocks, for random sources, faults, concurrency and endings of the body.

*Safety*: every item taken from the source has one ending. At most ``concurrency`` items are in flight, or finished and
unread. Values of equal keys are written in the order of the source. No acknowledged write is lost. Nothing is sent
after the block. *Liveness*: the block ends in bounded time, and without faults every item that is taken succeeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import trio
from hypothesis import event, given, strategies as st
from trio.testing import MockClock

from tests.trio_client.pair import Pair, open_pair
from triclinium import errors
from triclinium._bulk.outcomes import BulkWrites
from triclinium.retries import RetryAction, RetryReason, RetryRequest
from triclinium.testing import Fault, Opcode, delay, drop_response, hang_up, hang_up_after_applying, temporary_failure
from triclinium_core.kv.operation.results import MutationResult

UNENCODABLE = object()
KEYS = ("a", "b", "c", "d", "")
"""Keys of items; the empty one is refused."""
ENDING_MAX = 60.0
"""Virtual seconds within which each block ends: items are few, and each times out after 2.5 s."""


class SourceError(Exception):
    """Exception of a source."""


class BodyError(Exception):
    """Exception of a body."""


class Quick:
    """Strategy that retries twice, shortly after the failure."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry, or refuse the third one."""
        return RetryAction.after(0.1) if request.retry_attempts < 2 else RetryAction.no_retry()


@dataclass(frozen=True)
class Script:
    """One run."""

    keys: list[str]
    unencodable: frozenset[int]
    """Numbers of the items with a value that the transcoder refuses."""
    raises_after: int | None
    """Number of items after which the source raises; None if it does not."""
    pauses: frozenset[int]
    """Numbers of the items before which an asynchronous source waits."""
    is_async: bool
    concurrency: int
    faults: list[Fault | None]
    """Faults of the first writes in order."""
    reads: int | None
    """Number of outcomes after which the body ends; None for all, 0 if it does not iterate."""
    ending: Literal["normal", "stop", "raise", "cancel", "time"]
    seconds: float
    """Time limit of a scope around the block."""


FAULTS: list[Fault | None] = [
    None,
    temporary_failure(),
    hang_up(),
    hang_up_after_applying(),
    drop_response(),
    delay(0.5),
    delay(10.0),
]

NUMBERS = st.integers(0, 15)
SCRIPTS = st.builds(
    Script,
    keys=st.lists(st.sampled_from(KEYS), max_size=16),
    unencodable=st.frozensets(NUMBERS, max_size=2),
    raises_after=st.none() | NUMBERS,
    pauses=st.frozensets(NUMBERS, max_size=4),
    is_async=st.booleans(),
    concurrency=st.integers(1, 6),
    faults=st.lists(st.sampled_from(FAULTS), max_size=8),
    reads=st.none() | NUMBERS,
    ending=st.sampled_from(["normal", "stop", "raise", "cancel", "time"]),
    seconds=st.sampled_from([0.0, 0.05, 0.6, 3.0]),
)


@dataclass
class Run:
    """Observations of one run."""

    script: Script
    given: list[str] = field(default_factory=list)
    """Keys that the source gave."""
    outcomes: list[tuple[str, Any]] = field(default_factory=list)
    """Outcomes that the body took."""
    most: int = 0
    """Maximum number of given items whose outcomes the body had not taken."""
    is_body_over: bool = False
    leaving: BaseException | None = None

    def values(self) -> Iterator[tuple[str, object]]:
        """Yield the items of the source: each value is its number, or cannot be encoded. Raise as the script says."""
        script = self.script
        for number, key in enumerate(script.keys):
            if script.raises_after == number:
                raise SourceError
            self.given.append(key)
            if not self.is_body_over:
                self.most = max(self.most, len(self.given) - len(self.outcomes))
            yield key, UNENCODABLE if number in script.unencodable else number
        if script.raises_after is not None and script.raises_after >= len(script.keys):
            raise SourceError

    async def values_later(self) -> AsyncIterator[tuple[str, object]]:
        """Yield the items of the source, some after a pause."""
        items = self.values()
        for number in range(len(self.script.keys) + 1):
            if number in self.script.pauses:
                await trio.sleep(0.3)
            for item in items:
                yield item
                break

    async def body(self, block: BulkWrites[MutationResult]) -> None:
        """Take outcomes, and end as the script says."""
        script = self.script
        while script.reads is None or len(self.outcomes) < script.reads:
            try:
                self.outcomes.append(await anext(block))
            except StopAsyncIteration:
                break
        match script.ending:
            case "stop":
                block.stop()
            case "raise":
                raise BodyError
            case _:
                pass

    async def play(self, pair: Pair) -> BulkWrites[MutationResult]:
        """Run the block, and return it after it has ended."""
        script = self.script
        source = self.values_later() if script.is_async else self.values()
        block = pair.people.upsert_many(source, concurrency=script.concurrency, retry_strategy=Quick())
        with trio.CancelScope() as scope:
            if script.ending == "time":
                scope.deadline = trio.current_time() + script.seconds
            try:
                async with block:
                    try:
                        await self.body(block)
                        if script.ending == "cancel":
                            scope.cancel()
                            await trio.lowlevel.checkpoint()
                    finally:
                        self.is_body_over = True
            except Exception as error:
                self.leaving = error
        if isinstance(source, AsyncIterator):
            await source.aclose()  # type: ignore[attr-defined]  # it is a generator
        return block


def check_counts(run: Run, block: BulkWrites[MutationResult]) -> None:
    """Check that each item that the source gave has one ending, which the counts and the lists include."""
    assert len(run.given) == block.taken
    assert block.taken == block.succeeded + block.not_applied_count + block.ambiguous_count
    failed = [*block.not_applied, *block.ambiguous]
    assert Counter(failed) <= Counter(run.given)
    assert len(failed) == block.not_applied_count + block.ambiguous_count
    assert Counter(key for key, _ in run.outcomes) <= Counter(run.given)
    assert sum(outcome._error is None for _, outcome in run.outcomes) <= block.succeeded
    assert "" not in block.ambiguous


def check_ending(run: Run, block: BulkWrites[MutationResult]) -> None:
    """Check that an exception that left the block is from the body or the source, or is a correct BulkFailure."""
    failed = block.not_applied_count + block.ambiguous_count
    match run.leaving:
        case BodyError():
            assert "raise" == run.script.ending
        case SourceError():
            assert run.script.raises_after is not None
        case errors.BulkFailure() as failure:
            assert failed == failure.count == sum(failure.counts.values())
            assert min(20, failed) == len(failure.failures)
            assert Counter(key for key, _ in failure.failures) == Counter([*block.not_applied, *block.ambiguous])
        case None:
            assert not failed or run.script.ending in ("cancel", "time")
        case other:
            raise AssertionError(repr(other))


def check_values(run: Run, block: BulkWrites[MutationResult], pair: Pair) -> None:
    """Check that a key has the value of its last item, or of an earlier one if all later ones may have failed."""
    numbers: dict[str, list[int]] = {}
    for number, key in enumerate(run.given):
        if number not in run.script.unencodable:
            numbers.setdefault(key, []).append(number)
    unsure = Counter([*block.not_applied, *block.ambiguous])
    for key in {*numbers} - {""}:
        document = pair.fake.nodes.documents.get("travel", key)
        refused = sum(number in run.script.unencodable and run.given[number] == key for number in range(len(run.given)))
        failed = unsure[key] - refused
        allowed = [b"%d" % number for number in numbers[key][max(0, len(numbers[key]) - 1 - failed) :]]
        if document is None:
            assert failed >= len(numbers[key])
        else:
            assert document.value in allowed


def check_log(run: Run, pair: Pair, before: int) -> None:
    """Check that only keys of the source were written, and that at most ``concurrency`` items were unread."""
    written = {command.key.decode() for command in pair.fake.node.command_log[before:] if command.opcode == Opcode.SET}
    assert run.most <= run.script.concurrency
    assert written <= {*run.given} - {""}


async def check(script: Script) -> None:
    """Run a script, and check the properties of this module."""
    run = Run(script)
    async with open_pair() as pair:
        await pair.people.exists("a")
        for fault in [fault for fault in script.faults if fault is not None]:
            pair.fake.node.faults.next(Opcode.SET, fault)
        before, began = len(pair.fake.node.command_log), trio.current_time()
        block = await run.play(pair)
        ended = trio.current_time()
        assert ended - began <= ENDING_MAX
        assert 0 == pair.cluster.statistics().open_operations
        check_counts(run, block)
        check_ending(run, block)
        check_log(run, pair, before)
        given, sent = len(run.given), len(pair.fake.node.command_log)
        assert [0, 0, 0] == [len(block._work.open), len(block._work._held), len(block._work.finished)]
        await trio.sleep(20)
        assert given == len(run.given)
        later = pair.fake.node.command_log[sent:]
        assert not [each for each in later if each.opcode == Opcode.SET and each.now > ended]
        check_values(run, block, pair)
        if not any(script.faults) and script.ending in ("normal", "stop"):
            refused = sum(number in script.unencodable or not key for number, key in enumerate(run.given))
            assert block.taken - refused == block.succeeded
        await pair.people.get_or_none("a")
        event(f"{script.ending}, {type(run.leaving).__name__}")


@given(SCRIPTS)
def test_blocks_are_safe_and_live(script: Script) -> None:
    """Each block has the properties that this module states, for any source, faults and body."""
    trio.run(check, script, clock=MockClock(autojump_threshold=0))
