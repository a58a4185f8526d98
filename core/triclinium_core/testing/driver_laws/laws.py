"""What a driver must keep, one function a law; the docstring of each is the law.

A law awaits nothing but what the driver under test offers, so it runs on any event loop.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from triclinium_core.contract.couchbase import (
    Action,
    CompleteOperation,
    CompleteRequest,
    Event,
    FailOperation,
    LookUpService,
    OperationSubmitted,
    RowsReceived,
    RowsWanted,
    ServiceLookedUp,
)
from triclinium_core.contract.neutral import (
    AcquirePermit,
    BytesReceived,
    CloseStream,
    ConsultStrategy,
    LossCause,
    OpenStream,
    PauseReading,
    RecordSuccess,
    ResumeReading,
    SendBytes,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
)
from triclinium_core.errors import InvalidArgumentException, RequestCanceledException
from triclinium_core.retry.combined.permits import AsyncPermit
from triclinium_core.retry.couchbase.strategy import RetryAction, RetryRequest
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.smithy.protocols import RetryError, RetryToken
from triclinium_core.retry.smithy.tokens import SingleUseToken
from triclinium_core.services.query.result import QueryMetaData, QueryStatus
from triclinium_core.testing.driver_laws.driver import OpenDriver
from triclinium_core.testing.driver_laws.machine import nothing, on
from triclinium_core.testing.driver_laws.trial import DONE, GET, QUERY, Trial, ensure, on_trial, open_stream
from triclinium_core.testing.simulation import MIDPOINT
from triclinium_core.work import PIECE_SIZE_BYTES_MAX, PIECE_WORK, WORK_BEFORE_TIME_MAX

Law = Callable[[OpenDriver], Awaitable[None]]
"""Raises ``LawBroken`` where the driver does not keep it."""

FIRST, SECOND, THIRD = StreamId(1), StreamId(2), StreamId(3)

FAR_SECONDS = 3600.0
SOON_SECONDS = 0.05
"""Short enough for a driver whose clock is the real one."""

MORE_THAN_BUFFERS = 16 << 20
"""Bytes that no system keeps for a peer that does not read: Linux keeps 4 MiB to send and 6 MiB received, at most."""

LARGE = 64 * 1024
"""Bytes that a peer sends at once, and an event loop may read at once."""

TURNS_TO_CONNECT = 6
"""A connect on loopback is called off at each of so many moments; it takes fewer."""

PIECES_MORE = 20
"""Number of pieces that a driver may feed beyond the bound, because it may check the work once in a round of all
streams."""

ROUNDS = 20
"""Event loops may run tasks in a random order, so what depends on it is tried so often."""

ALARMS_MAX = 1000
"""How often an alarm rings that stays due, before the machine has mercy."""


class Strategy:
    """An asynchronous retry strategy that answers at once, or raises."""

    def __init__(self, answer: RetryAction | Exception) -> None:
        self._answer = answer
        self.asked: int = 0

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return the answer."""
        self.asked += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Lender:
    """An asynchronous token strategy that has one token."""

    def __init__(self) -> None:
        self.token: SingleUseToken = SingleUseToken(self)
        self.recorded: list[RetryToken] = []

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Return the token."""
        return self.token

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> RetryToken:
        """Refuse."""
        raise RetryError("there is one token")

    async def record_success(self, *, token: RetryToken) -> None:
        """Take the token back."""
        self.recorded.append(token)


REQUEST = RetryRequest(service=Service.KV, operation="get", idempotent=True, rng=MIDPOINT, remaining=2.5)
"""What strategies are asked about."""

METADATA = QueryMetaData(request_id="1", client_context_id="", status=QueryStatus.SUCCESS)
"""What comes after rows."""


def writes(stream: StreamId, *pieces: bytes) -> Sequence[Action]:
    """Return the orders to write pieces one after the other."""
    return [SendBytes(stream, piece) for piece in pieces]


async def actions_are_carried_out_in_order(open_driver: OpenDriver) -> None:
    """What one event orders is carried out in the order given, after what was ordered before."""
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST, then=on(StreamOpened, *writes(FIRST, b"1", b"2", b"3")))
        await trial.order(*writes(FIRST, b"4", b"5"), then=on(BytesReceived, *writes(FIRST, b"6", b"7", b"8")))
        peer.send(b"go on")
        came = await peer.receive(8)

        ensure(came == b"12345678", f"b'12345678' was ordered in eight pieces, and {came!r} arrived")


async def an_earlier_alarm_rings(open_driver: OpenDriver) -> None:
    """``TimePassed`` comes when ``wakeup`` has come, also where that was far away when the driver looked before."""
    async with on_trial(open_driver) as trial:
        machine = trial.machine
        for _ in range(2):
            machine.wakeup = machine.now + FAR_SECONDS
            await trial.order()
            due = machine.wakeup = machine.now + SOON_SECONDS
            await trial.order(then=trial.ring_once)
            trial.driver.pass_time(SOON_SECONDS)
            await trial.rung(due)


async def whoever_leaves_leaves_the_stream_alone(open_driver: OpenDriver) -> None:
    """A caller who leaves while its bytes are being sent is reported once; the stream goes on, whole and in order."""
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST)
        data = bytes(range(256)) * (MORE_THAN_BUFFERS // 256)
        caller, token = await trial.submit(SendBytes(FIRST, data))
        await trial.quiet()
        caller.leave()
        await trial.outcome_of(caller, "a caller who left does not end")
        await trial.order(SendBytes(FIRST, b"the end"), CompleteOperation(token, DONE))
        came = await peer.receive(len(data) + len(b"the end"))

        ensure(came == data + b"the end", f"a caller left, and {len(came)} bytes arrived that are not what was ordered")
        abandoned = trial.machine.abandonments_of(token)
        ensure(abandoned == 1, f"OperationAbandoned was told {abandoned} times of one caller")
        ensure(not trial.machine.losses_of(FIRST), "the stream was lost because a caller left")


async def a_connect_that_fails_is_a_loss(open_driver: OpenDriver) -> None:
    """``StreamLost`` comes once for a stream that never opened: refused, not resolved, or called off at any moment."""
    async with on_trial(open_driver) as trial:
        with trial.listening() as listener:
            refused = open_stream(FIRST, listener)
        nameless = OpenStream(SECOND, "node..invalid", 11210, tls=False)
        for order, cause in ((refused, LossCause.REFUSED), (nameless, LossCause.NAME_NOT_RESOLVED)):
            await trial.order(order)
            lost = await trial.loss_of(order.stream)
            ensure(lost.cause is cause, f"connecting to {order.host!r} failed with {lost.cause}, not {cause}")
        with trial.listening() as listener:
            # In the same breath, and later: the connect may be anywhere by then.
            called_off = [open_stream(StreamId(THIRD + turns), listener) for turns in range(TURNS_TO_CONNECT)]
            first, *others = called_off
            await trial.order(first, CloseStream(first.stream, "called off"))
            for turns, order in enumerate(others):
                await trial.order(order)
                for _ in range(turns):
                    await trial.driver.turn()
                await trial.order(CloseStream(order.stream, "called off"))
            for order in called_off:
                await trial.loss_of(order.stream)


async def what_was_handed_over_is_never_less(open_driver: OpenDriver) -> None:
    """``StreamLost`` tells of as many bytes as arrived, or more, however the stream ends; or that it does not know."""
    async with on_trial(open_driver) as trial:

        async def compare(stream: StreamId, came: bytes) -> None:
            told = (await trial.loss_of(stream)).handed_over
            ensure(told is None or told >= len(came), f"{len(came)} bytes arrived, and {told} were told in StreamLost")

        ordered: Sequence[Action] = [SendBytes(FIRST, b"hello"), CloseStream(FIRST, "at once")]
        peer = await trial.connect(FIRST, then=on(StreamOpened, *ordered))
        await compare(FIRST, await peer.receive(len(b"hello")))

        # Closed while it waits for the peer to read.
        peer = await trial.connect(SECOND, then=on(StreamOpened, SendBytes(SECOND, bytes(MORE_THAN_BUFFERS))))
        await trial.quiet()
        await trial.order(CloseStream(SECOND, "blocked"))
        await compare(SECOND, await peer.receive(MORE_THAN_BUFFERS))

        peer = await trial.connect(THIRD, then=on(StreamOpened, SendBytes(THIRD, b"hello")))
        came = await peer.receive(len(b"hello"))
        peer.close()
        await compare(THIRD, came)


async def bytes_come_before_the_loss(open_driver: OpenDriver) -> None:
    """All that a peer sent is told before ``StreamLost``, and nothing of the stream after it."""
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST)
        peer.send(b"last words")
        peer.close()
        await trial.loss_of(FIRST)
        events = [event for event in trial.machine.events if isinstance(event, BytesReceived | StreamLost)]
        came = b"".join(event.data for event in events if isinstance(event, BytesReceived))

        ensure(came == b"last words", f"the peer sent b'last words' and hung up; the machine was told {came!r}")
        ensure(isinstance(events[-1], StreamLost), f"after StreamLost the machine was told of {events[-1]!r}")


async def whoever_waits_at_the_close_is_settled(open_driver: OpenDriver) -> None:
    """When the driver is closed, who waits gets an error, and so does who reads on, or asks for something, later."""
    async with on_trial(open_driver) as trial:
        waiting = [(await trial.submit())[0] for _ in range(2)]
        reader, _ = await trial.ask(lambda token: RowsReceived(token, [b"1"]))
        await trial.until(lambda: bool(reader.rows), "RowsReceived was ordered, and its reader got nothing")
        heard = len(trial.machine.submitted)
        await trial.driver.close()
        reader.read_on()
        for caller in (*waiting, reader, trial.driver.submit(GET), trial.driver.ask(QUERY)):
            outcome = await trial.outcome_of(caller, "a closed driver leaves a caller waiting")
            ensure(isinstance(outcome, Exception), f"a closed driver gave a caller {outcome!r}")
        ensure(len(trial.machine.submitted) == heard, "a closed driver told the machine of an operation")


async def the_machine_is_not_called_back(open_driver: OpenDriver) -> None:
    """What happens while an event is handled, or while its actions are carried out, is told after that."""
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST)
        caller, token = await trial.submit()

        def leave(event: Event) -> Sequence[Action]:
            # So does a retry strategy of the user's that cancels something.
            if isinstance(event, BytesReceived):
                caller.leave()
            return ()

        trial.machine.answer = leave
        peer.send(b"an answer")
        await trial.until(
            lambda: trial.machine.abandonments_of(token) > 0,
            "a caller left while an event was handled, and OperationAbandoned was not told",
        )

        other = await trial.connect(SECOND)
        last = on(StreamLost, SendBytes(SECOND, b"last"))
        await trial.order(CloseStream(FIRST, "to see what comes first"), SendBytes(SECOND, b"first "), then=last)
        came = await other.receive(len(b"first last"))
        ensure(came == b"first last", f"what StreamLost led to was carried out too early: {came!r} arrived")


async def time_may_stand_still(open_driver: OpenDriver) -> None:
    """A wakeup that is due now rings now, though the clock stands still; one that stays due keeps nobody else out."""
    async with on_trial(open_driver) as trial:
        machine = trial.machine
        rung = 0

        def stay_due(event: Event) -> Sequence[Action]:
            nonlocal rung
            rung += isinstance(event, TimePassed)
            machine.wakeup = machine.now if rung < ALARMS_MAX else math.inf
            return ()

        machine.answer = stay_due
        trial.driver.submit(GET)
        await trial.until(lambda: rung > 1, "wakeup had come already when it was set, and no TimePassed")
        heard = len(machine.submitted)
        trial.driver.submit(GET)
        await trial.until(lambda: len(machine.submitted) > heard, "an operation was not submitted")
        ensure(rung < ALARMS_MAX, f"TimePassed was fed {rung} times before an operation that had been submitted")
        rung = ALARMS_MAX


async def what_can_be_read_is_read_before_time_passes(open_driver: OpenDriver) -> None:
    """Bytes that have arrived when ``wakeup`` comes are told before ``TimePassed``: they may be the answer in time."""
    async with on_trial(open_driver) as trial:
        machine = trial.machine
        peer = await trial.connect(FIRST)
        for number in range(ROUNDS):
            due = machine.wakeup = machine.now + SOON_SECONDS
            await trial.order(then=trial.ring_once)
            count = len(machine.events)
            peer.send(b"answer %d" % number)
            trial.driver.pass_time(SOON_SECONDS)
            await trial.rung(due)
            kinds = [type(event) for event in machine.events[count:]]
            ensure(
                BytesReceived in kinds[: kinds.index(TimePassed)],
                "an answer could be read when the time came, and TimePassed was fed before BytesReceived",
            )


async def a_peer_cannot_stop_the_time(open_driver: OpenDriver) -> None:
    """The driver feeds ``TimePassed`` even if there is always more to read: it stops reading at the bound on work.

    It names each stream that it stopped reading in ``unread``, and no piece is larger than ``PIECE_SIZE_BYTES_MAX``.
    """
    async with on_trial(open_driver) as trial:
        machine = trial.machine
        peer = await trial.connect(FIRST)

        def go_on(event: Event) -> Sequence[Action]:
            if isinstance(event, BytesReceived):
                peer.send(bytes(LARGE))
            return trial.ring_once(event)

        due = machine.wakeup = machine.now + SOON_SECONDS
        await trial.order(then=go_on)
        peer.send(bytes(LARGE))
        before = machine.work
        trial.driver.pass_time(SOON_SECONDS)
        time = await trial.rung(due)
        machine.answer = nothing
        pieces = received(trial, FIRST)
        largest = max(map(len, pieces))
        ensure(
            largest <= PIECE_SIZE_BYTES_MAX, f"a piece of {largest} bytes was fed; {PIECE_SIZE_BYTES_MAX} are permitted"
        )
        work = machine.work_at(time) - before
        ensure(
            work <= WORK_BEFORE_TIME_MAX + PIECES_MORE * PIECE_WORK,
            f"{work} units of work were done before TimePassed; {WORK_BEFORE_TIME_MAX} are permitted",
        )
        ensure(
            work < WORK_BEFORE_TIME_MAX or FIRST in time.unread,
            f"reading ended at its bound, and TimePassed names {sorted(time.unread)!r} as unread",
        )


async def what_waits_to_be_sent_is_told_with_the_time(open_driver: OpenDriver) -> None:
    """``TimePassed`` names the streams on which bytes wait with the driver, and ``StreamLost`` does not contradict it."""
    async with on_trial(open_driver) as trial:
        machine = trial.machine
        await trial.connect(FIRST, then=on(StreamOpened, *writes(FIRST, bytes(MORE_THAN_BUFFERS), b"behind it")))
        await trial.quiet()
        due = machine.wakeup = machine.now + SOON_SECONDS
        await trial.order(then=trial.ring_once)
        trial.driver.pass_time(SOON_SECONDS)
        ordered = MORE_THAN_BUFFERS + len(b"behind it")
        known = (await trial.rung(due)).unsent.get(FIRST, ordered)
        await trial.order(CloseStream(FIRST, "to compare"))
        handed_over = (await trial.loss_of(FIRST)).handed_over

        ensure(
            handed_over is None or handed_over >= known,
            f"TimePassed told that {known} bytes were handed over, and StreamLost told of {handed_over}",
        )


async def questions_are_answered_once(open_driver: OpenDriver) -> None:
    """A service that is looked up, and a strategy that is asked, is answered once, also where the strategy raises.

    A token strategy is asked before the first attempt as well, and told of a success, once.
    """
    async with on_trial(open_driver) as trial:
        heard = trial.machine.events
        looked_up = ServiceLookedUp("_couchbase._tcp.cluster.invalid")
        await trial.order(LookUpService(looked_up.service))
        await trial.until(lambda: looked_up in heard, "LookUpService was not answered with ServiceLookedUp")

        answer, mistake = RetryAction.after(0.5), ValueError("a strategy's own")
        for strategy, expected in ((Strategy(answer), (answer, None)), (Strategy(mistake), (None, mistake))):
            decided = await decision_of(trial, strategy)
            told = decided.answer, decided.raised
            ensure(told == expected, f"StrategyDecided was to tell of {expected!r}, and told of {told!r}")
        ensure(heard.count(looked_up) == 1, "LookUpService was answered more than once")
        lender = Lender()
        permit = AsyncPermit(lender, None)
        _, token = await trial.submit()
        await trial.order(AcquirePermit(token, permit))
        expected_decision = StrategyDecided(token, RetryAction.after(0.0))
        await trial.until(lambda: expected_decision in heard, "AcquirePermit was not answered with StrategyDecided")
        permit.end(succeeded=True)
        await trial.order(RecordSuccess(token, permit))
        await trial.until(lambda: lender.recorded == [lender.token], "RecordSuccess was not carried out")


async def decision_of(trial: Trial, strategy: Strategy) -> StrategyDecided:
    """Return the one report of what a strategy decided."""
    _, token = await trial.submit()
    await trial.order(ConsultStrategy(token, strategy, REQUEST, RetryReason.KV_LOCKED))

    def told() -> list[StrategyDecided]:
        return [event for event in trial.machine.events if isinstance(event, StrategyDecided) and event.token == token]

    await trial.until(lambda: bool(told()), "ConsultStrategy was not answered with StrategyDecided")
    await trial.quiet()
    ensure(1 == strategy.asked == len(told()), f"a strategy was asked {strategy.asked} times, and told of {told()!r}")
    return told()[0]


async def a_mistake_reaches_its_caller_alone(open_driver: OpenDriver) -> None:
    """What ``handle`` raises at a submission is raised in that caller, who is forgotten; nobody else notices."""
    async with on_trial(open_driver) as trial:
        other, token = await trial.submit()
        mistake = InvalidArgumentException("bucket=None: get needs one", parameter="bucket")

        def refuse(event: Event) -> Sequence[Action]:
            if isinstance(event, OperationSubmitted):
                raise mistake
            return ()

        trial.machine.answer = refuse
        outcome = await trial.outcome_of(trial.driver.submit(GET), "a submission was refused, and its caller waits")
        ensure(outcome is mistake, f"a submission was refused with {mistake!r}; its caller got {outcome!r}")
        refused = trial.machine.submitted[-1].token
        await trial.order(CompleteOperation(token, DONE))
        outcome = await trial.outcome_of(other, "an operation was completed, and its caller waits")
        ensure(outcome == DONE, f"an operation was completed after another was refused; its caller got {outcome!r}")
        ensure(
            not trial.machine.abandonments_of(refused),
            "the machine was told that a caller left whose operation it had refused",
        )


async def rows_come_as_they_are_wanted(open_driver: OpenDriver) -> None:
    """A reader gets the rows in order, and then the end; ``RowsWanted`` comes when it has taken them, once for each piece."""
    async with on_trial(open_driver) as trial:
        reader, token = await trial.ask(lambda token: RowsReceived(token, [b"1", b"2"]))
        wanted = RowsWanted(token)
        await trial.until(lambda: bool(reader.rows), "RowsReceived was ordered, and its reader got nothing")
        await trial.quiet()
        ensure(wanted not in trial.machine.events, "RowsWanted was told before the reader had taken what there was")

        answers: Sequence[Action] = (RowsReceived(token, [b"3"]), CompleteRequest(token, METADATA))
        for pieces, answer in enumerate(answers, start=1):
            trial.machine.answer = on(RowsWanted, answer)
            reader.read_on()
            count = await trial.count_of(wanted, pieces, "a reader reads on, and no RowsWanted")
            ensure(count == pieces, f"a reader read on {pieces} times, and RowsWanted was told {count} times")
        outcome = await trial.outcome_of(reader, "a request that was completed has not returned")
        ensure([*reader.rows] == [b"1", b"2", b"3"], f"rows 1, 2 and 3 were handed out, and {[*reader.rows]!r} arrived")
        ensure(outcome == METADATA, f"a request was completed; its reader got {outcome!r}")
        ensure(not trial.machine.abandonments_of(token), "a request that was over was abandoned")

        error = RequestCanceledException("query: cancelled")
        refused, _ = await trial.ask(lambda token: FailOperation(token, error))
        outcome = await trial.outcome_of(refused, "a request that failed has not returned")
        ensure(outcome is error, f"a request failed; its reader got {outcome!r}")


async def whoever_stops_reading_abandons(open_driver: OpenDriver) -> None:
    """A reader who leaves is told of with ``OperationAbandoned``, once, whether it waits or has rows in its hands."""
    async with on_trial(open_driver) as trial:
        waiting, first = await trial.ask()
        reading, second = await trial.ask(lambda token: RowsReceived(token, [b"1"]))
        await trial.until(lambda: bool(reading.rows), "RowsReceived was ordered, and its reader got nothing")
        for reader, token in ((waiting, first), (reading, second)):
            reader.leave()
            await trial.outcome_of(reader, "a reader who left does not end")
            count = await trial.abandonments_of(token, "a reader left, and no OperationAbandoned")
            ensure(count == 1, f"OperationAbandoned was told {count} times of one reader")


async def a_pause_pauses(open_driver: OpenDriver) -> None:
    """After ``PauseReading`` nothing is read but what was being read; other streams are, and the time goes on."""
    async with on_trial(open_driver) as trial:
        peer, other = await trial.connect(FIRST), await trial.connect(SECOND)
        await trial.order(PauseReading(FIRST))
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
        ensure(pieces <= 1, f"a stream was to pause, and BytesReceived was told {pieces} times of it")
        ensure(bool(received(trial, SECOND)), "a stream was to pause, and another one is not read either")


async def what_a_pause_held_back_comes_whole(open_driver: OpenDriver) -> None:
    """After ``ResumeReading`` all comes that the peer has sent meanwhile, in order, and then its end."""
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST)
        expected = b"".join(b"row %d, " % number for number in range(ROUNDS))
        for half in (expected[: len(expected) // 2], expected[len(expected) // 2 :]):
            await trial.order(PauseReading(FIRST))
            peer.send(half[:1])
            await trial.quiet()
            peer.send(half[1:])
            await trial.quiet()
            if half.endswith(expected[-1:]):
                peer.close()
                await trial.quiet()
            await trial.order(ResumeReading(FIRST))
        await trial.loss_of(FIRST)
        came = b"".join(received(trial, FIRST))
        ensure(came == expected, f"after a pause {expected!r} was to come, and {came!r} came")


async def nothing_is_sent_while_something_waits(open_driver: OpenDriver) -> None:
    """With ``unless_readable``, the driver sends on a silent stream, and loses any other with nothing sent.

    Something waits if the peer has sent bytes, or has closed, before the order.
    """
    async with on_trial(open_driver) as trial:
        peer = await trial.connect(FIRST)
        await trial.order(SendBytes(FIRST, b"request", unless_readable=True))
        came = await peer.receive(len(b"request"))
        ensure(came == b"request", f"nothing waited to be read, b'request' was ordered, and {came!r} arrived")

        for stream, closes in ((SECOND, False), (THIRD, True)):
            peer = await trial.connect(stream, then=on(StreamOpened, PauseReading(stream)))
            # The result of a read that was in progress when the pause began may still be fed.
            peer.send(b"read")
            await trial.quiet()
            if closes:
                peer.close()
            else:
                peer.send(b"unread")
            await trial.quiet()
            fed = len(b"".join(received(trial, stream)))
            await trial.order(ResumeReading(stream), SendBytes(stream, b"request", unless_readable=True))
            lost = await trial.loss_of(stream)
            came = b"" if closes else await peer.receive(len(b"request"))
            ensure(not came, f"something waited to be read, and {came!r} was sent")
            ensure(lost.handed_over in (0, None), f"{lost.handed_over} bytes were handed over; none may be sent")
            more = len(b"".join(received(trial, stream))) - fed
            ensure(not more, f"{more} waiting bytes were fed, which the machine takes for the answer")


def received(trial: Trial, stream: StreamId) -> list[bytes]:
    """Return what the machine was told of a stream, piece by piece."""
    return [event.data for event in trial.machine.events if isinstance(event, BytesReceived) and event.stream == stream]


LAWS: Sequence[Law] = (
    actions_are_carried_out_in_order,
    an_earlier_alarm_rings,
    whoever_leaves_leaves_the_stream_alone,
    a_connect_that_fails_is_a_loss,
    what_was_handed_over_is_never_less,
    bytes_come_before_the_loss,
    whoever_waits_at_the_close_is_settled,
    the_machine_is_not_called_back,
    time_may_stand_still,
    what_can_be_read_is_read_before_time_passes,
    a_peer_cannot_stop_the_time,
    what_waits_to_be_sent_is_told_with_the_time,
    questions_are_answered_once,
    a_mistake_reaches_its_caller_alone,
    rows_come_as_they_are_wanted,
    whoever_stops_reading_abandons,
    a_pause_pauses,
    what_a_pause_held_back_comes_whole,
    nothing_is_sent_while_something_waits,
)
