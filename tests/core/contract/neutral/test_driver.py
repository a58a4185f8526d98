"""The half of a driver that needs no event loop, with a scripted machine and streams in memory.

The laws of drivers test the rest, with real sockets: ``tests/core/testing/driver_laws``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import partial

import pytest

from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral
from triclinium_core.contract.neutral.driver import DEBUG, ERROR, WARNING
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.testing.driver_laws import ScriptedMachine, on
from triclinium_core.work import PIECE_SIZE_BYTES_MAX, PIECE_WORK, WORK_BEFORE_TIME_MAX

STREAM, OTHER = neutral.StreamId(1), neutral.StreamId(2)
TOKEN = neutral.Token(1)


@dataclass(frozen=True)
class Submitted:
    """First event of a caller."""

    token: neutral.Token


@dataclass(frozen=True)
class Wanted:
    """Later event of a caller."""

    token: neutral.Token


@dataclass(frozen=True)
class Abandoned:
    """Event of a caller that left."""

    token: neutral.Token


ToyEvent = Submitted | Wanted | Abandoned
Machine = ScriptedMachine[ToyEvent, object]


class MemoryStream:
    """Stream that lists the driver's calls."""

    def __init__(self, order: neutral.OpenStream) -> None:
        self.outbox = neutral.Outbox()
        self.order = order
        self.done: list[str] = []

    def start(self) -> None:
        if self.order.host == "nowhere":
            raise ConnectionRefusedError("refused")
        if self.order.host == "interrupted":
            raise KeyboardInterrupt
        self.done.append("start")

    def flush(self) -> None:
        self.done.append("flush")

    def set_paused(self, is_paused: bool) -> None:
        self.done.append("pause" if is_paused else "resume")

    def abort(self) -> None:
        self.done.append("abort")


class MemoryLog:
    """Log that keeps its lines in a list."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str, BaseException | None]] = []

    def log(self, level: int, message: object, /, *arguments: object, exc_info: BaseException | None = None) -> None:
        self.lines.append((level, str(message) % arguments, exc_info))


class MemoryDriver(neutral.Driver[ToyEvent, object, list[object], MemoryStream]):
    """Driver in which a list stands for a waiting caller."""

    def __init__(self, machine: Machine) -> None:
        self.report = MemoryLog()
        self.alarms: list[float] = []
        super().__init__(
            machine, now=lambda: 7.0, open_stream=MemoryStream, make_nonce=lambda: "nonce", log=self.report
        )

    def set_alarm(self, time: float) -> None:
        super().set_alarm(time)
        self.alarms.append(time)

    def wake(self, waiter: list[object], outcome: object) -> None:
        waiter.append(outcome)

    def submitted(self, event: ToyEvent | neutral.NeutralEvent) -> AbstractSet[neutral.Token]:
        return {event.token} if isinstance(event, Submitted) else set()

    def abandoned(self, token: neutral.Token) -> Abandoned:
        return Abandoned(token)


@pytest.fixture
def machine() -> Machine:
    """Return a scripted machine that returns no actions."""
    return ScriptedMachine()


@pytest.fixture
def driver(machine: Machine) -> MemoryDriver:
    """Return a driver with one open stream, whose machine returns no more actions."""
    made = MemoryDriver(machine)
    machine.answer = on(neutral.TimePassed, neutral.OpenStream(STREAM, "node", 11210, tls=False))
    made.feed(neutral.TimePassed())
    machine.answer = lambda event: ()
    made.opened(STREAM, ("127.0.0.1", 1), ("::1", 2, 0, 0))
    return made


def test_a_stream_opens_with_its_addresses(driver: MemoryDriver, machine: Machine) -> None:
    """An open stream has a nonce and both addresses; a stream without TCP addresses has empty ones."""
    driver.opened(STREAM, "/socket", None)

    assert [
        neutral.StreamOpened(STREAM, "nonce", "127.0.0.1:1", "[::1]:2"),
        neutral.StreamOpened(STREAM, "nonce"),
    ] == machine.later_events
    assert ["start"] == driver.streams[STREAM].done


def test_a_failed_start_is_a_loss(driver: MemoryDriver, machine: Machine) -> None:
    """A stream whose start raises is reported as lost, with its cause and without bytes handed over."""
    machine.answer = on(Wanted, neutral.OpenStream(OTHER, "nowhere", 11210, tls=False))
    driver.feed(Wanted(TOKEN))

    assert neutral.StreamLost(OTHER, neutral.LossCause.REFUSED, "refused", 0) == machine.events[-1]
    assert [STREAM] == list(driver.streams)


def test_an_interrupted_start_is_not_aborted(driver: MemoryDriver, machine: Machine) -> None:
    """Control-C while a stream starts is raised and ends the driver, which aborts the other streams only."""
    started = driver.streams[STREAM]
    interrupted = MemoryStream(neutral.OpenStream(OTHER, "interrupted", 11210, tls=False))
    driver._open_stream = lambda order: interrupted
    machine.answer = on(Wanted, interrupted.order)
    with pytest.raises(KeyboardInterrupt):
        driver.feed(Wanted(TOKEN))

    assert driver.is_ended
    assert (["start", "abort"], []) == (started.done, interrupted.done)


def test_actions_reach_their_stream(driver: MemoryDriver, machine: Machine) -> None:
    """Actions of a stream reach it in order, and those of a lost stream are ignored."""
    stream = driver.streams[STREAM]
    machine.answer = on(
        Wanted,
        neutral.SendBytes(STREAM, b"bytes"),
        neutral.PauseReading(STREAM),
        neutral.ResumeReading(STREAM),
        neutral.CloseStream(STREAM, "done"),
        neutral.SendBytes(STREAM, b"late"),
        neutral.PauseReading(STREAM),
        neutral.ResumeReading(STREAM),
        neutral.CloseStream(STREAM, "again"),
    )
    driver.feed(Wanted(TOKEN))
    driver.opened(STREAM, None, None)
    driver.received(STREAM, b"late", may_have_more=False)

    assert ["start", "flush", "pause", "resume", "abort"] == stream.done
    assert [Wanted(TOKEN), neutral.StreamLost(STREAM, neutral.LossCause.CLOSED_BY_US, "done", 0)] == machine.events[2:]


def test_reads_are_fed_in_pieces(driver: MemoryDriver, machine: Machine) -> None:
    """A large read is fed in pieces of limited size, and an empty one is the end of the stream."""
    driver.received(STREAM, bytes(PIECE_SIZE_BYTES_MAX + 1), may_have_more=True)
    driver.received(STREAM, b"", may_have_more=False)

    sizes = [len(event.data) for event in machine.events if isinstance(event, neutral.BytesReceived)]
    assert [PIECE_SIZE_BYTES_MAX, 1] == sizes
    assert neutral.StreamLost(STREAM, neutral.LossCause.END_OF_STREAM, "", 0) == machine.events[-1]


def test_bytes_before_a_checked_request(driver: MemoryDriver, machine: Machine) -> None:
    """If the first piece of a read causes a checked request, the rest of the read ends the stream instead."""
    machine.answer = on(neutral.BytesReceived, neutral.SendBytes(STREAM, b"request", unless_readable=True))
    driver.received(STREAM, bytes(PIECE_SIZE_BYTES_MAX + 1), may_have_more=True)

    assert neutral.StreamLost(STREAM, neutral.LossCause.UNSOLICITED, "", 0) == machine.events[-1]


def test_an_outcome_reaches_its_caller_once(driver: MemoryDriver, machine: Machine) -> None:
    """A caller gets outcomes until the last one; afterwards its token is unknown, and it cannot request more."""
    first, second = list[object](), list[object]()
    driver.wait({TOKEN: first}, Submitted(TOKEN))
    driver.settle(TOKEN, "rows", is_last=False)
    driver.wait({TOKEN: second}, Wanted(TOKEN))
    driver.settle(TOKEN, "the end")
    driver.settle(TOKEN, "ignored")
    driver.leave(TOKEN)

    assert (["rows"], ["the end"]) == (first, second)
    assert [Submitted(TOKEN), Wanted(TOKEN)] == machine.events[2:]
    with pytest.raises(neutral.ClosedError, match="has ended"):
        driver.wait({TOKEN: second}, Wanted(TOKEN))


def test_leaving_is_reported_once(driver: MemoryDriver, machine: Machine) -> None:
    """The driver reports once that a caller leaves, by default with the event of an abandoned token."""
    other = neutral.Token(2)
    for token in (TOKEN, other):
        driver.wait({token: []}, Submitted(token))
    driver.leave(TOKEN, other)
    driver.wait({TOKEN: []}, Submitted(TOKEN))
    driver.leave(TOKEN, event=Wanted(TOKEN))
    driver.leave(TOKEN)

    assert [Abandoned(TOKEN), Abandoned(other), Submitted(TOKEN), Wanted(TOKEN)] == machine.events[4:]


def test_a_refused_submission_reaches_its_caller(driver: MemoryDriver, machine: Machine) -> None:
    """A caller gets the error of its refused submission; the driver goes on."""
    mistake, outcomes = ArgumentError("no name", parameter="name"), list[object]()

    def refuse(event: ToyEvent | neutral.NeutralEvent) -> Sequence[object]:
        raise mistake

    machine.answer = refuse
    driver.wait({TOKEN: outcomes}, Submitted(TOKEN))

    assert [mistake] == outcomes
    assert not driver.is_ended


def test_a_defect_ends_the_driver(driver: MemoryDriver, machine: Machine) -> None:
    """If the machine raises for an event that is not a submission, callers get ClosedError, and streams are closed."""
    stream, outcomes = driver.streams[STREAM], list[object]()
    driver.wait({TOKEN: outcomes}, Submitted(TOKEN))

    def fail(event: ToyEvent | neutral.NeutralEvent) -> Sequence[object]:
        raise ArgumentError("no submission", parameter="event")

    machine.answer = fail
    with pytest.raises(ArgumentError):
        driver.feed(Wanted(TOKEN))

    assert driver.is_ended
    assert "abort" == stream.done[-1]
    assert isinstance(outcomes[0], neutral.ClosedError)
    assert "no submission" in str(outcomes[0])


def test_a_closed_driver_feeds_nothing(driver: MemoryDriver, machine: Machine) -> None:
    """Closing abandons open tokens and closes streams without a report; then events have no effect and waits raise."""
    outcomes = list[object]()
    with driver:
        driver.wait({TOKEN: outcomes}, Submitted(TOKEN))
    driver.close()
    driver.feed(Wanted(TOKEN))

    assert [Submitted(TOKEN), Abandoned(TOKEN)] == machine.events[2:]
    assert isinstance(outcomes[0], neutral.ClosedError)
    assert not driver.streams
    with pytest.raises(neutral.ClosedError, match="was closed or has failed"):
        driver.wait({TOKEN: outcomes}, Submitted(TOKEN))


def test_a_driver_closed_meanwhile_opens_nothing(driver: MemoryDriver, machine: Machine) -> None:
    """If an action closes the driver, a later action of the same event opens no stream."""
    driver._handlers[Wanted] = lambda action: driver.close()
    machine.answer = on(Wanted, Wanted(TOKEN), neutral.OpenStream(OTHER, "node", 11210, tls=False))
    driver.feed(Wanted(TOKEN))

    assert not driver.streams


@pytest.mark.parametrize("is_within", [True, False])
def test_closing_abandons_each_token_once(driver: MemoryDriver, machine: Machine, is_within: bool) -> None:
    """Closing abandons each token once, during an event or not, even if handlers of the last actions close again."""
    outcomes, second = list[object](), neutral.Token(TOKEN + 1)
    driver._handlers |= {Wanted: driver.feed, Abandoned: lambda action: driver.close()}
    machine.answer = on(Wanted, Wanted(TOKEN), Abandoned(TOKEN))
    for token in (TOKEN, second):
        driver.wait({token: outcomes}, Submitted(token))
    machine.wakeup = 5.0
    if not is_within:
        machine.answer = on(Abandoned, Abandoned(TOKEN), Wanted(TOKEN))
        driver.close()
    driver.feed(Wanted(TOKEN))
    driver.feed(Wanted(TOKEN))

    # If ``is_within``, the second ``Wanted`` was queued before the driver closed.
    wanted = [Wanted(TOKEN)] * 2 if is_within else []
    submitted = [Submitted(TOKEN), Submitted(second)]
    assert [*submitted, *wanted, Abandoned(TOKEN), Abandoned(second)] == machine.events[2:]
    assert [neutral.ClosedError] * 2 == [type(outcome) for outcome in outcomes]
    assert driver.is_ended


def test_the_alarm_moves_only_forward(driver: MemoryDriver, machine: Machine) -> None:
    """The alarm is set when ``wakeup`` becomes earlier, and again after it has rung."""
    for machine.wakeup in (20.0, 30.0, 10.0):
        driver.feed(Wanted(TOKEN))
    for _ in driver.pass_time():
        pass

    assert [20.0, 10.0, 10.0] == driver.alarms


def test_time_passes_after_reading(driver: MemoryDriver, machine: Machine) -> None:
    """Streams are read again while reads are full, then time passes with the bytes that were handed over."""
    stream = driver.streams[STREAM]
    stream.outbox.put(b"blocked")
    stream.outbox.advance(3)
    reads = iter([True, False])
    for _ in driver.pass_time():
        assert [] == list(driver.pass_time()), "a second alarm meanwhile"
        driver.received(STREAM, b"bytes", may_have_more=next(reads))

    assert [] == list(reads)
    assert neutral.TimePassed({STREAM: 3}) == machine.events[-1]


def test_an_interrupted_alarm_stays_due(driver: MemoryDriver, machine: Machine) -> None:
    """If the reading before ``TimePassed`` is interrupted, the next attempt feeds ``TimePassed``."""
    interrupted = driver.pass_time()
    next(interrupted)
    # An exception in the loop's body ends the generator in the same way.
    del interrupted
    for _ in driver.pass_time():
        pass

    assert neutral.TimePassed() == machine.events[-1]


def test_reading_before_the_time_is_bounded(driver: MemoryDriver, machine: Machine) -> None:
    """After a maximum of work on received bytes, time passes, and the event names the unread streams."""
    rounds = 0
    for _ in driver.pass_time():
        rounds += 1
        driver.received(STREAM, b"bytes", may_have_more=True)

    assert WORK_BEFORE_TIME_MAX // PIECE_WORK == rounds
    assert neutral.TimePassed({}, frozenset({STREAM})) == machine.events[-1]


class Strategy:
    """Strategy and permit in one object, whose methods raise, wait or return."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def retry_after(self, request: object, reason: object) -> object:
        """Return or raise the answer, or wait for it."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        return await self._answer if isinstance(self._answer, Waiting) else self._answer

    async def acquire(self) -> object:
        """Return or raise the answer, or wait for it."""
        return await self.retry_after(None, None)

    async def record(self) -> None:
        """Raise the answer if it is an exception, or wait for it."""
        await self.retry_after(None, None)


class Waiting(Awaitable[object]):
    """Awaitable that never ends."""

    def __await__(self) -> Generator[object, None, object]:
        """Wait."""
        yield "for an event loop"
        raise AssertionError("the awaitable was resumed without an event loop")


def test_strategies_without_an_event_loop(driver: MemoryDriver, machine: Machine) -> None:
    """A strategy's answer or exception is fed; a strategy that waits fails; one without a caller is not called."""
    mistake = ValueError("by the strategy")
    for answer in (mistake, 3.0, Waiting()):
        strategy = Strategy(answer)
        machine.answer = on(Submitted, neutral.AcquirePermit(TOKEN, strategy))
        driver.wait({TOKEN: []}, Submitted(TOKEN))
    driver.leave(TOKEN)
    machine.answer = on(Wanted, neutral.ConsultStrategy(TOKEN, Strategy(1), "request", "reason"))
    driver.feed(Wanted(TOKEN))

    decided = [event for event in machine.events if isinstance(event, neutral.StrategyDecided)]
    assert [(None, mistake), (3.0, None)] == [(event.answer, event.raised) for event in decided[:2]]
    [failed] = decided[2:]
    assert isinstance(failed.raised, RuntimeError)


class Cancelled(BaseException):
    """Cancellation, as an event loop raises it."""


def test_a_strategy_cancelled_by_others(driver: MemoryDriver, machine: Machine) -> None:
    """A cancellation within a strategy is its failure, unless the driver cancels it; Control-C is raised."""
    cancelled = Cancelled()

    async def fail(error: BaseException) -> object:
        raise error

    driver.waiters[TOKEN] = []
    with pytest.raises(KeyboardInterrupt):
        driver.run(driver._decide(TOKEN, partial(fail, KeyboardInterrupt())))
    driver.run(driver._decide(TOKEN, partial(fail, cancelled)))
    driver.waiters.clear()
    with pytest.raises(Cancelled):
        driver.run(driver._decide(TOKEN, partial(fail, Cancelled())))
    recorded = neutral.RecordSuccess(TOKEN, Strategy(cancelled))
    driver.run(driver._record(recorded))
    driver.close()
    with pytest.raises(Cancelled):
        driver.run(driver._record(recorded))

    assert [neutral.StrategyDecided(TOKEN, None, cancelled)] == machine.events[2:]
    assert [cancelled] == [error for _, _, error in driver.report.lines]


def test_reports_are_logged(driver: MemoryDriver, machine: Machine) -> None:
    """Reports have the level of the contract, and the traceback of an exception."""
    mistake, fault = ValueError("by the strategy"), DecoderFault(Decoder.HTTP, "ValueError", "a text")
    machine.answer = on(
        Wanted,
        neutral.ReportConnection(STREAM, "node", "ready", neutral.ReportLevel.DEBUG),
        neutral.ReportConnection(STREAM, "node", "lost", neutral.ReportLevel.WARNING),
        neutral.ReportDecoderFault(STREAM, "node", fault),
        neutral.RecordSuccess(TOKEN, Strategy(mistake)),
    )
    driver.feed(Wanted(TOKEN))

    assert [
        (DEBUG, "node: ready", None),
        (WARNING, "node: lost", None),
        (ERROR, f"node: {fault}", fault),
        (ERROR, "a retry strategy failed to record a success", mistake),
    ] == driver.report.lines
