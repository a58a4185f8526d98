"""Laws for a driver of any machine. Each law is a function, and its docstring states the law.

A law awaits only methods of the bench and the driver under test, so it runs on any event loop.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral
from triclinium_core.testing.driver_laws.neutral.driver_under_test import Bench, DriverUnderTest
from triclinium_core.testing.driver_laws.neutral.scripted_machine import nothing, on
from triclinium_core.testing.driver_laws.neutral.trial import Trial, ensure, on_trial, open_stream
from triclinium_core.work import PIECE_SIZE_BYTES_MAX, PIECE_WORK, WORK_BEFORE_TIME_MAX

E = TypeVar("E")
A = TypeVar("A")
D = TypeVar("D", bound=DriverUnderTest)


class NeutralLaw(Protocol):
    """Function that raises ``LawBroken`` if the driver does not keep a law."""

    __name__: str

    def __call__(self, bench: Bench[E, A, D], /) -> Awaitable[None]:
        """Run the law on a driver."""
        ...


FIRST, SECOND, THIRD = neutral.StreamId(1), neutral.StreamId(2), neutral.StreamId(3)

FAR_SECONDS = 3600.0
SOON_SECONDS = 0.05
"""A delay in seconds that is short enough for a driver with a real clock."""

MORE_THAN_BUFFERS = 16 << 20
"""Number of bytes that exceeds the default buffers of an operating system for a peer that does not read.

Linux buffers at most 4 MiB at the sender and 6 MiB at the receiver.
"""

LARGE = 64 * 1024
"""Number of bytes that a peer sends in one call, and that an event loop may read in one call."""

TURNS_TO_CONNECT = 6
"""Number of connects that a law cancels, each one turn later than the previous one. A connect takes fewer turns."""

PIECES_MORE = 20
"""Number of pieces that a driver may feed above the bound, because it may check its work once per round of streams."""

ROUNDS = 20
"""Number of repetitions of a step whose result depends on task order, which an event loop may randomize."""

ALARMS_MAX = 1000
"""Number of ``TimePassed`` events after which the machine resets a wakeup that stays due."""


class Strategy:
    """Asynchronous strategy that immediately returns or raises a given answer. The same object is its permit."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.asked: int = 0
        self.recorded: int = 0

    async def retry_after(self, request: object, reason: object, /) -> object:
        """Return or raise the answer."""
        return await self.acquire()

    async def acquire(self) -> object:
        """Return or raise the answer."""
        self.asked += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def record(self) -> None:
        """Record a success."""
        self.recorded += 1


def writes(stream: neutral.StreamId, *pieces: bytes) -> Sequence[neutral.NeutralAction]:
    """Return the actions that write pieces in order."""
    return [neutral.SendBytes(stream, piece) for piece in pieces]


async def actions_are_carried_out_in_order(bench: Bench[E, A, D]) -> None:
    """The driver carries out the actions of one event in the given order, after the actions of all earlier events."""
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST, then=on(neutral.StreamOpened, *writes(FIRST, b"1", b"2", b"3")))
        await trial.order(*writes(FIRST, b"4", b"5"), then=on(neutral.BytesReceived, *writes(FIRST, b"6", b"7", b"8")))
        peer.send(b"go on")
        came = await peer.receive(8)

        ensure(came == b"12345678", f"eight actions sent b'12345678', but {came!r} arrived")


async def an_earlier_alarm_rings(bench: Bench[E, A, D]) -> None:
    """The driver feeds ``TimePassed`` at ``wakeup``, even if it last read a ``wakeup`` that was far in the future."""
    async with on_trial(bench) as trial:
        machine = trial.machine
        for _ in range(2):
            machine.wakeup = machine.now + FAR_SECONDS
            await trial.order()
            due = machine.wakeup = machine.now + SOON_SECONDS
            await trial.order(then=trial.ring_once)
            trial.driver.pass_time(SOON_SECONDS)
            await trial.rung(due)


async def a_caller_that_leaves_spares_the_stream(bench: Bench[E, A, D]) -> None:
    """If a task leaves while its bytes are being sent, the driver reports that once, and sends all bytes in order."""
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST)
        data = bytes(range(256)) * (MORE_THAN_BUFFERS // 256)
        caller, token = await trial.submit(neutral.SendBytes(FIRST, data))
        await trial.quiet()
        caller.leave()
        await trial.outcome_of(caller, "a cancelled caller does not end")
        await trial.order(neutral.SendBytes(FIRST, b"the end"), trial.completion(token))
        came = await peer.receive(len(data) + len(b"the end"))

        ensure(
            came == data + b"the end", f"a caller left, and the {len(came)} bytes that arrived differ from those sent"
        )
        abandoned = trial.abandonments_of(token)
        ensure(abandoned == 1, f"{abandoned} events report that one task left; expected 1")
        ensure(not trial.machine.losses_of(FIRST), "a caller left, and the stream was lost")


async def a_connect_that_fails_is_a_loss(bench: Bench[E, A, D]) -> None:
    """The driver feeds ``StreamLost`` once if a connect is refused or cancelled, or if its host does not resolve."""
    async with on_trial(bench) as trial:
        with trial.listening() as listener:
            refused = open_stream(FIRST, listener)
        nameless = neutral.OpenStream(SECOND, "node..invalid", 11210, tls=False)
        for order, cause in ((refused, neutral.LossCause.REFUSED), (nameless, neutral.LossCause.NAME_NOT_RESOLVED)):
            await trial.order(order)
            lost = await trial.loss_of(order.stream)
            ensure(lost.cause is cause, f"connecting to {order.host!r} failed with {lost.cause}, not {cause}")
        with trial.listening() as listener:
            # Cancel one connect immediately and the others later, so that they have reached different stages.
            called_off = [open_stream(neutral.StreamId(THIRD + turns), listener) for turns in range(TURNS_TO_CONNECT)]
            first, *others = called_off
            await trial.order(first, neutral.CloseStream(first.stream, "cancelled"))
            for turns, order in enumerate(others):
                await trial.order(order)
                for _ in range(turns):
                    await trial.driver.turn()
                await trial.order(neutral.CloseStream(order.stream, "cancelled"))
            for order in called_off:
                await trial.loss_of(order.stream)


async def bytes_handed_over_are_never_fewer(bench: Bench[E, A, D]) -> None:
    """Every ``StreamLost`` has a ``handed_over`` of None, or of at least the number of bytes that arrived."""
    async with on_trial(bench) as trial:

        async def compare(stream: neutral.StreamId, came: bytes) -> None:
            reported = (await trial.loss_of(stream)).handed_over
            is_enough = reported is None or reported >= len(came)
            ensure(is_enough, f"{len(came)} bytes arrived, but StreamLost reported {reported}")

        ordered: Sequence[neutral.NeutralAction] = [
            neutral.SendBytes(FIRST, b"hello"),
            neutral.CloseStream(FIRST, "immediately"),
        ]
        peer = await trial.connect(FIRST, then=on(neutral.StreamOpened, *ordered))
        await compare(FIRST, await peer.receive(len(b"hello")))

        # The machine closes this stream while the driver waits for the peer to read.
        peer = await trial.connect(
            SECOND, then=on(neutral.StreamOpened, neutral.SendBytes(SECOND, bytes(MORE_THAN_BUFFERS)))
        )
        await trial.quiet()
        await trial.order(neutral.CloseStream(SECOND, "blocked"))
        await compare(SECOND, await peer.receive(MORE_THAN_BUFFERS))

        peer = await trial.connect(THIRD, then=on(neutral.StreamOpened, neutral.SendBytes(THIRD, b"hello")))
        came = await peer.receive(len(b"hello"))
        peer.close()
        await compare(THIRD, came)


async def bytes_come_before_the_loss(bench: Bench[E, A, D]) -> None:
    """If the peer closes, the driver feeds all of its bytes before ``StreamLost``, and no event of the stream after."""
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST)
        peer.send(b"last words")
        peer.close()
        await trial.loss_of(FIRST)
        events = [
            event for event in trial.machine.events if isinstance(event, neutral.BytesReceived | neutral.StreamLost)
        ]
        came = b"".join(event.data for event in events if isinstance(event, neutral.BytesReceived))

        ensure(came == b"last words", f"the peer sent b'last words' and hung up; the driver fed {came!r}")
        ensure(isinstance(events[-1], neutral.StreamLost), f"the driver fed {events[-1]!r} after StreamLost")


async def tasks_that_wait_are_settled_at_the_close(bench: Bench[E, A, D]) -> None:
    """When the driver closes, a waiting task gets an error, and so does a task that submits something later.

    For each waiting task, the driver feeds one event, which reports that the task has left.
    """
    async with on_trial(bench) as trial:
        waiting = [await trial.submit() for _ in range(2)]
        submitted = len(trial.submissions)
        await trial.driver.close()
        for _, token in waiting:
            abandoned = trial.abandonments_of(token)
            ensure(abandoned == 1, f"{abandoned} events report that the driver closed while a task waited; expected 1")
        for caller in (*(caller for caller, _ in waiting), trial.driver.submit()):
            outcome = await trial.outcome_of(caller, "after the driver closed, a task still waits")
            ensure(isinstance(outcome, Exception), f"the closed driver gave a task {outcome!r}, not an error")
        ensure(len(trial.submissions) == submitted, "the closed driver fed a submission to the machine")


async def the_machine_is_not_called_back(bench: Bench[E, A, D]) -> None:
    """The driver feeds an event only after it has carried out all actions that the previous event caused."""
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST)
        caller, token = await trial.submit()

        def leave(event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
            # A user's retry strategy that cancels a task calls the driver in the same way, while the machine runs.
            if isinstance(event, neutral.BytesReceived):
                caller.leave()
            return ()

        trial.machine.answer = leave
        peer.send(b"an answer")
        await trial.until(
            lambda: trial.abandonments_of(token) > 0,
            "a task left while the machine handled an event, but no event reports that",
        )

        other = await trial.connect(SECOND)
        last = on(neutral.StreamLost, neutral.SendBytes(SECOND, b"last"))
        await trial.order(
            neutral.CloseStream(FIRST, "to see what comes first"), neutral.SendBytes(SECOND, b"first "), then=last
        )
        came = await other.receive(len(b"first last"))
        ensure(came == b"first last", f"the actions for StreamLost were carried out too early: {came!r} arrived")


async def time_may_stand_still(bench: Bench[E, A, D]) -> None:
    """If ``wakeup`` is due, the driver feeds ``TimePassed`` even if the clock stands still.

    If ``wakeup`` stays due, the driver still feeds other events.
    """
    async with on_trial(bench) as trial:
        machine = trial.machine
        rung = 0

        def stay_due(event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
            nonlocal rung
            rung += isinstance(event, neutral.TimePassed)
            machine.wakeup = machine.now if rung < ALARMS_MAX else math.inf
            return ()

        machine.answer = stay_due
        trial.driver.submit()
        await trial.until(lambda: rung > 1, "wakeup was already due when it was set, but the driver fed no TimePassed")
        submitted_before = len(trial.submissions)
        trial.driver.submit()
        await trial.until(lambda: len(trial.submissions) > submitted_before, "the driver did not submit an operation")
        ensure(rung < ALARMS_MAX, f"the driver fed TimePassed {rung} times before a submitted operation")
        rung = ALARMS_MAX


async def arrived_bytes_come_before_the_time(bench: Bench[E, A, D]) -> None:
    """The driver feeds ``TimePassed`` after the bytes that arrived by ``wakeup``: they may hold a response in time."""
    async with on_trial(bench) as trial:
        machine = trial.machine
        peer = await trial.connect(FIRST)
        count = 0

        def answer_it() -> None:
            nonlocal count
            count = len(machine.events)
            peer.send(b"answer")

        for _ in range(ROUNDS):
            due = await trial.keep_busy(SOON_SECONDS, answer_it, then=trial.ring_once)
            await trial.rung(due)
            kinds = [type(event) for event in machine.events[count:]]
            ensure(
                neutral.BytesReceived in kinds[: kinds.index(neutral.TimePassed)],
                "a response was readable at wakeup, but the driver fed TimePassed before BytesReceived",
            )


async def a_peer_cannot_stop_the_time(bench: Bench[E, A, D]) -> None:
    """The driver feeds ``TimePassed`` even if there is always more to read: it stops reading at a bound on its work.

    ``TimePassed.unread`` names each stream that the driver stopped reading, and no piece is larger than
    ``PIECE_SIZE_BYTES_MAX``.
    """
    async with on_trial(bench) as trial:
        machine = trial.machine
        peer = await trial.connect(FIRST)

        def go_on(event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
            if isinstance(event, neutral.BytesReceived):
                peer.send(bytes(LARGE))
            return trial.ring_once(event)

        before = machine.work
        due = await trial.keep_busy(SOON_SECONDS, lambda: peer.send(bytes(LARGE)), then=go_on)
        time = await trial.rung(due)
        machine.answer = nothing
        pieces = received(trial, FIRST)
        ensure(bool(pieces), "the driver fed no bytes before TimePassed, although some had arrived")
        largest = max(map(len, pieces))
        ensure(
            largest <= PIECE_SIZE_BYTES_MAX,
            f"the driver fed a piece of {largest} bytes; the maximum is {PIECE_SIZE_BYTES_MAX}",
        )
        work = machine.work_at(time) - before
        ensure(
            work <= WORK_BEFORE_TIME_MAX + PIECES_MORE * PIECE_WORK,
            f"the driver did {work} units of work before TimePassed; the maximum is {WORK_BEFORE_TIME_MAX}",
        )
        ensure(
            work < WORK_BEFORE_TIME_MAX or FIRST in time.unread,
            f"reading ended at its bound, but TimePassed names {sorted(time.unread)!r} as unread",
        )


async def unsent_bytes_are_named_with_the_time(bench: Bench[E, A, D]) -> None:
    """``TimePassed`` counts the handed-over bytes of blocked streams; a later ``StreamLost`` has no fewer, or None."""
    async with on_trial(bench) as trial:
        machine = trial.machine
        await trial.connect(
            FIRST, then=on(neutral.StreamOpened, *writes(FIRST, bytes(MORE_THAN_BUFFERS), b"behind it"))
        )
        await trial.quiet()
        due = machine.wakeup = machine.now + SOON_SECONDS
        await trial.order(then=trial.ring_once)
        trial.driver.pass_time(SOON_SECONDS)
        ordered = MORE_THAN_BUFFERS + len(b"behind it")
        known = (await trial.rung(due)).unsent.get(FIRST, ordered)
        await trial.order(neutral.CloseStream(FIRST, "to compare"))
        handed_over = (await trial.loss_of(FIRST)).handed_over

        ensure(
            handed_over is None or handed_over >= known,
            f"TimePassed reported {known} bytes as handed over, but StreamLost reported {handed_over}",
        )


async def strategies_are_asked_once(bench: Bench[E, A, D]) -> None:
    """The driver calls a strategy once, feeds its answer or its exception once, and records a success once."""
    async with on_trial(bench) as trial:
        answer, mistake = object(), ValueError("raised by a strategy")
        for strategy, expected in ((Strategy(answer), (answer, None)), (Strategy(mistake), (None, mistake))):
            for is_permit in (False, True):
                _, token = await trial.submit()
                asked = strategy.asked
                question: neutral.NeutralAction = neutral.AcquirePermit(token, strategy)
                if not is_permit:
                    question = neutral.ConsultStrategy(token, strategy, "a request", "a reason")
                await trial.order(question)
                decided = await decisions_of(trial, token)
                ensure(
                    (len(decided), strategy.asked - asked) == (1, 1),
                    f"{question!r}: the driver called the strategy {strategy.asked - asked} times and fed {decided!r}",
                )
                fed = decided[0].answer, decided[0].raised
                ensure(fed == expected, f"StrategyDecided has {fed!r}; expected {expected!r}")
        strategy = Strategy(answer)
        _, token = await trial.submit()
        await trial.order(neutral.RecordSuccess(token, strategy))
        await trial.until(lambda: strategy.recorded > 0, "the driver did not carry out RecordSuccess")
        await trial.quiet()
        ensure(strategy.recorded == 1, f"the driver recorded a success {strategy.recorded} times")


async def decisions_of(trial: Trial[E, A, D], token: neutral.Token) -> list[neutral.StrategyDecided]:
    """Wait until the driver has fed at least one decision about a token, and return all decisions about it."""

    def fed() -> list[neutral.StrategyDecided]:
        return [
            event
            for event in trial.machine.events
            if isinstance(event, neutral.StrategyDecided) and event.token == token
        ]

    await trial.until(lambda: bool(fed()), "a strategy has answered, but the driver fed no StrategyDecided")
    await trial.quiet()
    return fed()


async def a_mistake_reaches_its_caller_alone(bench: Bench[E, A, D]) -> None:
    """If ``handle`` raises an ArgumentError for a submission, the driver raises it only in the submitting task.

    The driver forgets that task.
    """
    async with on_trial(bench) as trial:
        other, token = await trial.submit()
        mistake = ArgumentError("a name is missing", parameter="name")

        def refuse(event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
            if bench.submitted(event) is not None:
                raise mistake
            return ()

        trial.machine.answer = refuse
        outcome = await trial.outcome_of(trial.driver.submit(), "a submission was refused, but its task still waits")
        ensure(outcome is mistake, f"a submission was refused with {mistake!r}, but its task got {outcome!r}")
        refused = trial.submissions[-1]
        await trial.order(trial.completion(token))
        await trial.result_of(other, token, "a task was completed after another one was refused, but still waits")
        ensure(not trial.abandonments_of(refused), "the driver reported that a refused task left")


async def a_pause_pauses(bench: Bench[E, A, D]) -> None:
    """After ``PauseReading`` the driver reads the stream at most once more. Other streams and the time continue."""
    async with on_trial(bench) as trial:
        peer, other = await trial.connect(FIRST), await trial.connect(SECOND)
        await trial.order(neutral.PauseReading(FIRST))
        came = received(trial, FIRST)
        for _ in range(ROUNDS):
            peer.send(b"rows")
            other.send(b"answer")
            await trial.driver.turn()
        due = trial.machine.wakeup = trial.machine.now + SOON_SECONDS
        await trial.order(then=trial.ring_once)
        trial.driver.pass_time(SOON_SECONDS)
        await trial.rung(due)
        await trial.quiet()
        pieces = len(received(trial, FIRST)) - len(came)
        ensure(pieces <= 1, f"after PauseReading, the driver fed {pieces} pieces of the stream; the maximum is 1")
        ensure(bool(received(trial, SECOND)), "after PauseReading of one stream, the driver does not read another one")


async def a_pause_loses_nothing(bench: Bench[E, A, D]) -> None:
    """After ``ResumeReading``, the driver feeds the bytes sent during the pause, in order, then the stream's end."""
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST)
        expected = b"".join(b"row %d, " % number for number in range(ROUNDS))
        for half in (expected[: len(expected) // 2], expected[len(expected) // 2 :]):
            await trial.order(neutral.PauseReading(FIRST))
            peer.send(half[:1])
            await trial.quiet()
            peer.send(half[1:])
            await trial.quiet()
            if half.endswith(expected[-1:]):
                peer.close()
                await trial.quiet()
            await trial.order(neutral.ResumeReading(FIRST))
        await trial.loss_of(FIRST)
        came = b"".join(received(trial, FIRST))
        ensure(came == expected, f"after a pause, the driver fed {came!r}; expected {expected!r}")


async def nothing_is_sent_while_something_waits(bench: Bench[E, A, D]) -> None:
    """With ``unless_readable``, the driver sends bytes only if nothing is readable; otherwise it feeds ``StreamLost``.

    A stream is readable if the peer has sent bytes, or has closed, before the action.
    """
    async with on_trial(bench) as trial:
        peer = await trial.connect(FIRST)
        await trial.order(neutral.SendBytes(FIRST, b"request", unless_readable=True))
        came = await peer.receive(len(b"request"))
        ensure(came == b"request", f"with nothing to read, b'request' was sent, but {came!r} arrived")

        for stream, closes in ((SECOND, False), (THIRD, True)):
            peer = await trial.connect(stream, then=on(neutral.StreamOpened, neutral.PauseReading(stream)))
            # The driver may still feed the result of a read that was in progress when the pause began.
            peer.send(b"read")
            await trial.quiet()
            if closes:
                peer.close()
            else:
                peer.send(b"unread")
            await trial.quiet()
            fed = len(b"".join(received(trial, stream)))
            await trial.order(
                neutral.ResumeReading(stream), neutral.SendBytes(stream, b"request", unless_readable=True)
            )
            lost = await trial.loss_of(stream)
            came = b"" if closes else await peer.receive(len(b"request"))
            ensure(not came, f"with something to read, the driver sent {came!r}")
            ensure(lost.handed_over in (0, None), f"{lost.handed_over} bytes were handed over; expected none")
            more = len(b"".join(received(trial, stream))) - fed
            ensure(not more, f"the driver fed {more} waiting bytes, which the machine mistakes for the response")


def received(trial: Trial[E, A, D], stream: neutral.StreamId) -> list[bytes]:
    """Return the pieces of a stream that the driver has fed, oldest first."""
    return [
        event.data
        for event in trial.machine.events
        if isinstance(event, neutral.BytesReceived) and event.stream == stream
    ]


NEUTRAL_LAWS: Sequence[NeutralLaw] = (
    actions_are_carried_out_in_order,
    an_earlier_alarm_rings,
    a_caller_that_leaves_spares_the_stream,
    a_connect_that_fails_is_a_loss,
    bytes_handed_over_are_never_fewer,
    bytes_come_before_the_loss,
    tasks_that_wait_are_settled_at_the_close,
    the_machine_is_not_called_back,
    time_may_stand_still,
    arrived_bytes_come_before_the_time,
    a_peer_cannot_stop_the_time,
    unsent_bytes_are_named_with_the_time,
    strategies_are_asked_once,
    a_mistake_reaches_its_caller_alone,
    a_pause_pauses,
    a_pause_loses_nothing,
    nothing_is_sent_while_something_waits,
)
