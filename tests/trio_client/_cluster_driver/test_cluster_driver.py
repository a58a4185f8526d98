"""The driver decides nothing: it feeds one machine what happens, and does what the machine orders."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from itertools import count, repeat
from typing import get_args

import msgspec
import pytest
import trio
import trio.testing
import trustme
from trio.testing import MockClock, memory_stream_pair

from tests.trio_client import doubles
from tests.trio_client.pair import PATIENCE, open_pair
from triclinium import client_context, errors, retrying
from triclinium._driver.connector import TcpConnector
from triclinium.abc import ConnectedStream
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.results import Done, GetResult
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.testing.driver_laws import ScriptedClusterMachine, on
from triclinium_core.work import PIECE_WORK, WORK_BEFORE_TIME_MAX, WORK_OF_A_PASS_MAX

# -- Operations.


async def test_an_operation_returns_what_the_machine_completes_it_with() -> None:
    """Submitted as it was made, parked, and woken with the machine's result."""
    machine = ScriptedClusterMachine()
    operation = doubles.get()
    results: list[Done] = []

    async def ask() -> None:
        results.append(await driver.perform(Done, lambda: operation, None, None))

    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        [submitted] = machine.submitted
        machine.answer = on(neutral.BytesReceived, couchbase.CompleteOperation(submitted.token, doubles.DONE))
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))

    assert operation is submitted.operation
    assert submitted.retry_strategy is None
    assert submitted.client_context is None
    assert [doubles.DONE] == results


async def test_an_operation_raises_the_very_error_that_the_machine_fails_it_with() -> None:
    """No copy and no wrapping, and the error keeps no frame alive through itself."""
    error = errors.DocumentNotFoundException("no such document")
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        caught: list[BaseException] = []

        async def ask() -> None:
            try:
                await doubles.perform(driver)
            except errors.DocumentNotFoundException as raised:
                caught.append(raised)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = on(neutral.BytesReceived, couchbase.FailOperation(machine.submitted[0].token, error))
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))

    assert [error] == caught
    assert error is caught[0]


async def test_what_blocks_and_calls_lend_travels_with_the_submission() -> None:
    """The strategy of a call comes before that of a block; the client context travels along."""
    of_block, of_call = BestEffortRetryStrategy(), BestEffortRetryStrategy()
    machine = ScriptedClusterMachine(doubles.settle)
    async with doubles.open_driver(machine) as driver:
        with retrying(of_block), client_context(is_robot=True):
            await driver.perform(Done, doubles.get, None, None)
            await driver.perform(Done, doubles.get, of_call, None)
        await driver.perform(Done, doubles.get, None, None)

    assert [of_block, of_call, None] == [submitted.retry_strategy for submitted in machine.submitted]
    assert [{"is_robot": True}, {"is_robot": True}, None] == [
        submitted.client_context for submitted in machine.submitted
    ]


# -- Checkpoints.


async def test_an_operation_that_is_settled_while_it_is_submitted_is_a_checkpoint() -> None:
    """Other tasks run, although nothing had to be waited for."""
    async with doubles.open_driver(ScriptedClusterMachine(doubles.settle)) as driver:
        with trio.testing.assert_checkpoints():
            result = await doubles.perform(driver)

    assert doubles.DONE == result


async def test_what_has_happened_is_not_cancelled() -> None:
    """A cancellation that comes while an operation is submitted and settled does not hide its result."""
    results: list[Done] = []

    def cancel_and_settle(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.OperationSubmitted):
            scope.cancel()
        return doubles.settle(event)

    async with doubles.open_driver(ScriptedClusterMachine(cancel_and_settle)) as driver:
        with trio.CancelScope() as scope:
            results.append(await doubles.perform(driver))
            await trio.lowlevel.checkpoint()

    assert [doubles.DONE] == results
    assert scope.cancelled_caught


async def test_a_pending_cancellation_is_noticed_before_anything_is_submitted() -> None:
    """A caller whose time is up already sends nothing."""
    machine = ScriptedClusterMachine(doubles.settle)
    made: list[Operation] = []

    def make() -> Operation:
        made.append(doubles.get())
        return made[-1]

    async with doubles.open_driver(machine) as driver:
        with trio.CancelScope() as scope:
            scope.cancel()
            await driver.perform(Done, make, None, None)

    assert scope.cancelled_caught
    assert [] == made
    assert [] == machine.submitted


async def test_a_pending_cancellation_is_noticed_where_others_wait() -> None:
    """What is put aside for the next event is never submitted, and no one else is the worse for it."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(doubles.perform, driver)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await doubles.perform(driver)
        await trio.testing.wait_all_tasks_blocked()
        [submitted] = machine.submitted
        machine.answer = on(neutral.BytesReceived, couchbase.CompleteOperation(submitted.token, doubles.DONE))
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))

    assert scope.cancelled_caught
    assert 1 == len(machine.submitted)


async def test_a_pending_cancellation_is_noticed_though_the_others_leave() -> None:
    """Whoever else waits may be cancelled by what builds the operation, such as a transcoder of the user's."""
    machine = ScriptedClusterMachine()
    other = trio.CancelScope()

    def make() -> Operation:
        other.cancel()
        return doubles.get()

    async def wait() -> None:
        with other:
            await doubles.perform(driver)

    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await driver.perform(Done, make, None, None)
        await trio.testing.wait_all_tasks_blocked()

    assert scope.cancelled_caught
    assert 1 == len(machine.submitted)


async def test_a_wrong_argument_is_a_checkpoint_too() -> None:
    """What cannot even be made lets other tasks run, is raised as it is, and submits nothing."""
    error = errors.InvalidArgumentException("wrong", parameter="key")
    machine = ScriptedClusterMachine(doubles.settle)

    def fail() -> Operation:
        raise error

    async with doubles.open_driver(machine) as driver:
        with trio.testing.assert_checkpoints(), pytest.raises(errors.InvalidArgumentException) as caught:
            await driver.perform(Done, fail, None, None)

    assert error is caught.value
    assert [] == machine.submitted


async def test_a_result_of_another_type_is_a_defect() -> None:
    """An operation cannot return what its signature does not say."""
    async with doubles.open_driver(ScriptedClusterMachine(doubles.settle)) as driver:
        with pytest.raises(AssertionError, match="get returned Done"):
            await driver.perform(GetResult, doubles.get, None, None)


async def test_a_mistake_among_others(autojump_clock: MockClock) -> None:
    """What tasks ask for in one pass of trio's loop is submitted together; the mistake of one is its own alone."""
    caught = list[errors.InvalidArgumentException]()

    async with open_pair() as (_, cluster, people), trio.open_nursery() as nursery:

        async def mistake() -> None:
            with pytest.raises(errors.InvalidArgumentException) as mistaken:
                await people.get("ada", retry_strategy=BestEffortRetryStrategy)  # type: ignore[arg-type]
            caught.append(mistaken.value)

        for number in range(5):
            nursery.start_soon(people.upsert, str(number), number)
            nursery.start_soon(mistake)

    assert ["retry_strategy"] * 5 == [error.parameter for error in caught]
    assert 0 == cluster.statistics().open_operations


# -- Cancellation.


async def test_a_cancelled_operation_is_abandoned_and_nothing_else() -> None:
    """The machine hears of it once, a late result is dropped, and other operations go on."""
    machine = ScriptedClusterMachine()
    async with doubles.open_driver(machine) as driver, trio.open_nursery() as nursery:
        nursery.start_soon(doubles.perform, driver, "bob")
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(doubles.perform, driver, "ada")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        bob, ada = (submitted.token for submitted in machine.submitted)
        machine.answer = on(
            neutral.BytesReceived,
            couchbase.CompleteOperation(ada, doubles.DONE),
            couchbase.CompleteOperation(bob, doubles.DONE),
        )
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))

    assert 1 == machine.events.count(couchbase.OperationAbandoned(ada))
    assert couchbase.OperationAbandoned(bob) not in machine.events


# -- Time.


@pytest.mark.parametrize(
    ("expected", "wakeups"),
    [
        ([5.0], [10.0, 5.0]),
        ([5.0, 10.0], [5.0, 10.0]),
        ([5.0], [5.0, math.inf]),
        ([], [math.inf, math.inf]),
    ],
)
async def test_the_alarm_moves_only_to_an_earlier_time(
    autojump_clock: MockClock, expected: list[float], wakeups: list[float]
) -> None:
    """An earlier wakeup rings earlier; one that moved away costs a harmless extra call."""
    left = list(wakeups)

    def next_wakeup(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if not isinstance(event, neutral.TimePassed):
            machine.wakeup = left.pop(0)
        elif trio.current_time() >= machine.wakeup:
            machine.wakeup = math.inf
        return ()

    machine = ScriptedClusterMachine(next_wakeup)
    async with doubles.open_driver(machine) as driver:
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))
        await trio.sleep(1)
        await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))
        await trio.sleep(100)

    times = [
        time for time, event in zip(machine.times, machine.events, strict=True) if isinstance(event, neutral.TimePassed)
    ]
    assert [0.0, *expected] == times


PIECES_MAX = WORK_BEFORE_TIME_MAX // PIECE_WORK
"""Number of pieces that are read before TimePassed if reading is the only work."""


def wake_at_five(machine: ScriptedClusterMachine) -> Callable[[couchbase.Event], Sequence[couchbase.Action]]:
    """Return a script: the alarm is set to 5.0, and bytes that are a number complete the operation with that token."""

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = 5.0 if trio.current_time() < 5.0 else math.inf
            return [doubles.OPEN_STREAM] if len(machine.events) == 1 else ()
        if isinstance(event, neutral.BytesReceived) and event.data.isdigit():
            return [couchbase.CompleteOperation(neutral.Token(int(event.data)), doubles.DONE)]
        return ()

    return answer


def told_at_five(machine: ScriptedClusterMachine) -> int:
    """Return at which place of its events the machine was told that it is 5.0."""
    return next(i for i, event in enumerate(machine.events) if i and isinstance(event, neutral.TimePassed))


@pytest.mark.parametrize(
    ("expected", "pieces"),
    [
        (3, [b"1", b"2", b"3"]),
        (9, [*[b"x"] * 6, b"1", b"2", b"3"]),
        (PIECES_MAX, repeat(b"x")),
    ],
    ids=["answers", "one-in-small-pieces-among-them", "without-end"],
)
async def test_what_came_is_read_before_the_time_is_told(
    autojump_clock: MockClock, expected: int, pieces: Iterable[bytes]
) -> None:
    """An answer that waits on the stream is not late, and a peer that sends on and on does not stop the time."""
    left = iter(pieces)

    async def receive_some() -> bytes:
        await trio.sleep_until(5.0)
        piece = next(left, None)
        return piece if piece is not None else await trio.sleep_forever()

    machine = ScriptedClusterMachine()
    machine.answer = wake_at_five(machine)
    stream = doubles.HalfDeafStream(receive_some=receive_some)
    async with doubles.open_driver(machine, doubles.connector_to(stream)) as driver, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(doubles.perform, driver)
        await trio.sleep_until(5.0)
        while not any(isinstance(event, neutral.TimePassed) for event in machine.later_events):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    told = told_at_five(machine)
    is_endless = expected == PIECES_MAX

    assert expected <= sum(isinstance(event, neutral.BytesReceived) for event in machine.events[:told])
    assert neutral.TimePassed(unread=frozenset({doubles.STREAM} if is_endless else ())) == machine.events[told]


@pytest.mark.parametrize(
    ("pieces_max", "named", "work"),
    [
        (2, {doubles.STREAM, neutral.StreamId(2)}, WORK_BEFORE_TIME_MAX),
        (4, {doubles.STREAM}, WORK_BEFORE_TIME_MAX // 2),
    ],
    ids=["in-the-first-round", "later"],
)
async def test_time_is_told_once_the_work_reaches_its_bound(
    autojump_clock: MockClock, pieces_max: int, named: set[neutral.StreamId], work: int
) -> None:
    """At the bound, a stream with much work is named as unread, and a silent one only if it was not read before."""
    second = msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(2), host="silent")

    async def flood() -> bytes:
        await trio.sleep_until(5.0)
        return b"x"

    class ToEither:
        async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
            await trio.lowlevel.checkpoint()
            return ConnectedStream(
                doubles.HalfDeafStream() if host == "silent" else doubles.HalfDeafStream(receive_some=flood)
            )

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = 5.0 if trio.current_time() < 5.0 else math.inf
            return [doubles.OPEN_STREAM, second] if len(machine.events) == 1 else ()
        if isinstance(event, neutral.BytesReceived):
            machine.work += work
        return ()

    machine = ScriptedClusterMachine(answer)
    async with doubles.open_driver(machine, ToEither()):
        await trio.sleep_until(5.0)
        while not any(isinstance(event, neutral.TimePassed) for event in machine.later_events):
            await trio.lowlevel.checkpoint()
    told = told_at_five(machine)
    pieces = sum(isinstance(event, neutral.BytesReceived) for event in machine.events[:told])

    time = machine.events[told]
    assert isinstance(time, neutral.TimePassed)
    assert pieces <= pieces_max
    assert doubles.STREAM in time.unread
    assert set(time.unread) <= named


async def test_one_pass_has_a_bound_for_all_streams(autojump_clock: MockClock) -> None:
    """If many streams have a piece with much work, each pass of the loop feeds one, until all are fed."""
    streams = [msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(number)) for number in range(1, 11)]
    passes = [0]

    async def receive_once(pieces: list[bytes]) -> bytes:
        await trio.sleep_until(5.0)
        return pieces.pop() if pieces else await trio.sleep_forever()

    def connect() -> doubles.HalfDeafStream:
        pieces = [b"x"]
        return doubles.HalfDeafStream(receive_some=lambda: receive_once(pieces))

    class ToMany:
        async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
            await trio.lowlevel.checkpoint()
            return ConnectedStream(connect())

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.BytesReceived):
            machine.work += WORK_OF_A_PASS_MAX
            passes[-1] += 1
        return streams if len(machine.events) == 1 else ()

    machine = ScriptedClusterMachine(answer)
    async with doubles.open_driver(machine, ToMany()):
        await trio.sleep_until(5.0)
        while sum(passes) < len(streams):
            passes.append(0)
            await trio.lowlevel.checkpoint()

    # This test and the readers run in any order within a pass.
    assert max(passes) <= 2
    assert {stream.stream for stream in streams} == {
        event.stream for event in machine.events if isinstance(event, neutral.BytesReceived)
    }


RECORDS = 10 * PIECES_MAX
"""Number of TLS records of one byte: some 57 KB, which the client receives in a few parts."""
DUE_EVERY = PIECES_MAX + 50
"""Number of records from one due time to the next: each part of what the client receives has two of them."""


class CorkedStream(trio.abc.SendStream):
    """The sending half of a socket: it collects what it is given until ``uncork``."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._held: bytearray | None = None

    def cork(self) -> None:
        """Begin to collect."""
        self._held = bytearray()

    async def uncork(self) -> None:
        """Send together what was collected."""
        assert self._held is not None
        held, self._held = self._held, None
        await self._stream.send_all(held)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or collect."""
        if self._held is None:
            await self._stream.send_all(data)
        else:
            await trio.lowlevel.checkpoint()
            self._held += data

    async def wait_send_all_might_not_block(self) -> None:
        """Raise: ``SSLStream`` does not call it here."""
        raise AssertionError

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()


@asynccontextmanager
async def open_flooding_peer() -> AsyncIterator[tuple[TcpConnector, int]]:
    """Give the block a connector, and the port of a TLS peer that sends ``RECORDS`` records of one byte together."""
    authority = trustme.CA()
    of_the_peer, of_the_client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(of_the_peer)
    authority.configure_trust(of_the_client)

    async def serve(listener: trio.SocketListener) -> None:
        accepted = await listener.accept()
        corked = CorkedStream(accepted)
        stapled = trio.StapledStream(corked, accepted)
        async with trio.SSLStream(stapled, of_the_peer, server_side=True) as stream:
            await stream.do_handshake()
            corked.cork()
            for _ in range(RECORDS):
                await stream.send_all(b"x")
            await corked.uncork()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(serve, listener)
        yield TcpConnector(of_the_client), listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()
        await listener.aclose()


async def test_one_byte_records_of_tls_do_not_hold_the_time_up() -> None:
    """If a TLS peer sends many records of one byte, TimePassed follows the bound of work, and no record is lost."""
    received: list[bytes] = []
    due: list[int] = []
    times: list[tuple[int, neutral.TimePassed]] = []

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.BytesReceived):
            received.append(bytes(event.data))
            if len(received) % DUE_EVERY == 0:
                machine.wakeup = -math.inf
                due.append(len(received))
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = math.inf
            if len(machine.events) == 1:
                return [order]
            times.append((len(received), event))
        return ()

    machine = ScriptedClusterMachine(answer)
    with trio.fail_after(PATIENCE):
        async with open_flooding_peer() as (connector, port):
            order = msgspec.structs.replace(doubles.OPEN_STREAM, host="127.0.0.1", port=port, tls=True)
            async with doubles.open_driver(machine, connector):
                while len(received) < RECORDS:
                    await trio.lowlevel.checkpoint()
    late = {count - at: event for at, (count, event) in zip(due, times, strict=False)}

    # Trio runs the tasks of a pass in any order: two records may come before the driver notices that the time is due, and
    # three until it looks at the work again.
    assert PIECES_MAX <= max(late) <= PIECES_MAX + 5
    assert neutral.TimePassed(unread=frozenset({doubles.STREAM})) == late[max(late)]
    assert [b"x"] * RECORDS == received


async def test_answers_to_younger_operations_do_not_hold_the_time_up(autojump_clock: MockClock) -> None:
    """A client that is always busy always has something to read; the alarm waits for what came before it rang."""
    machine = ScriptedClusterMachine()
    machine.answer = wake_at_five(machine)
    answers = count(1)

    async def receive_some() -> bytes:
        await trio.sleep_until(5.0)
        number = next(answers)
        while len(machine.submitted) < number:
            await trio.lowlevel.checkpoint()
        return b"%d" % number

    async with doubles.open_driver(
        machine, doubles.connector_to(doubles.HalfDeafStream(receive_some=receive_some))
    ) as driver:
        await trio.sleep_until(5.0)
        for _ in range(PIECES_MAX):
            await doubles.perform(driver)

    assert told_at_five(machine) < PIECES_MAX // 4


async def test_time_tells_what_is_not_handed_over(autojump_clock: MockClock) -> None:
    """A stream that takes nothing more is named, with what it was given before; one that took everything is not."""
    stuck, free = (
        doubles.OPEN_STREAM,
        msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(2), host="free"),
    )
    streams = {
        "node": doubles.HalfDeafStream(send_all=lambda data: trio.Event().wait()),
        "free": doubles.HalfDeafStream(),
    }

    class ToEither:
        async def connect(self, host: str, port: int, *, tls: bool) -> ConnectedStream:
            await trio.lowlevel.checkpoint()
            return ConnectedStream(streams[host])

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = 5.0 if trio.current_time() < 5.0 else math.inf
            return [stuck, free] if len(machine.events) == 1 else ()
        return (
            [neutral.SendBytes(order.stream, b"12345") for order in (stuck, free)]
            if isinstance(event, neutral.BytesReceived)
            else ()
        )

    machine = ScriptedClusterMachine(answer)
    async with doubles.open_driver(machine, ToEither()) as driver:
        for _ in range(2):
            await trio.sleep(1)
            await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))
        await trio.sleep_until(6.0)

    assert neutral.TimePassed(unsent={doubles.STREAM: 5}) == machine.events[-1]


# -- Streams.


async def test_streams_are_opened_written_to_and_read() -> None:
    """The orders of one event are carried out in order, and what the stream does comes back as events."""

    def speak(event: couchbase.Event) -> Sequence[couchbase.Action]:
        match event:
            case neutral.TimePassed():
                return [doubles.OPEN_STREAM]
            case neutral.StreamOpened():
                return [neutral.SendBytes(doubles.STREAM, b"hel"), neutral.SendBytes(doubles.STREAM, b"lo")]
            case _:
                return ()

    machine = ScriptedClusterMachine(speak)
    ours, theirs = memory_stream_pair()
    async with doubles.open_driver(machine, doubles.connector_to(ours)) as driver:
        greeting = await theirs.receive_some()
        await theirs.send_all(b"welcome")
        await theirs.aclose()
        await trio.testing.wait_all_tasks_blocked()
        left = list(driver._streams.numbers)

    assert b"hello" == greeting
    assert [] == left
    assert [
        neutral.StreamOpened(doubles.STREAM, "a nonce", "local:1", "remote:2"),
        neutral.BytesReceived(doubles.STREAM, b"welcome"),
        neutral.StreamLost(doubles.STREAM, neutral.LossCause.END_OF_STREAM, "", 5),
    ] == machine.later_events
    assert all(type(event.data) is bytes for event in machine.events if isinstance(event, neutral.BytesReceived))


async def test_a_stream_that_is_closed_reports_only_how_much_was_handed_over() -> None:
    """Closing is final, and closes the socket."""
    machine = ScriptedClusterMachine(on(neutral.TimePassed, doubles.OPEN_STREAM))
    ours, theirs = memory_stream_pair()
    async with doubles.open_driver(machine, doubles.connector_to(ours)) as driver:
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = on(neutral.TimePassed, neutral.SendBytes(doubles.STREAM, b"12345"))
        await doubles.occur(driver, neutral.TimePassed())
        await trio.testing.wait_all_tasks_blocked()
        machine.answer = on(neutral.TimePassed, neutral.CloseStream(doubles.STREAM, "because"))
        await doubles.occur(driver, neutral.TimePassed())
        came = await theirs.receive_some(), await theirs.receive_some()

    assert (b"12345", b"") == came
    assert [
        neutral.StreamOpened(doubles.STREAM, "a nonce", "local:1", "remote:2"),
        neutral.TimePassed(),
        neutral.TimePassed(),
        neutral.StreamLost(doubles.STREAM, neutral.LossCause.CLOSED_BY_US, handed_over=5),
    ] == machine.later_events


async def test_orders_for_a_stream_that_is_gone_are_ignored() -> None:
    """The machine may not have heard of the loss yet."""
    machine = ScriptedClusterMachine(doubles.settle)
    async with doubles.open_driver(machine) as driver:
        gone = neutral.StreamId(99)
        machine.answer = on(neutral.TimePassed, neutral.SendBytes(gone, b"late"), neutral.CloseStream(gone, "late"))
        await doubles.occur(driver, neutral.TimePassed())
        machine.answer = doubles.settle
        result = await doubles.perform(driver)

    assert doubles.DONE == result


async def test_connections_do_not_inherit_the_variables_of_an_operation() -> None:
    """A connection serves many tasks, so it runs in the context in which the cluster was opened."""
    seen: list[str] = []
    variable = ContextVar("variable", default="of nobody")

    async def connect() -> trio.abc.Stream:
        seen.append(variable.get())
        return doubles.HalfDeafStream()

    def open_at_first_use(event: couchbase.Event) -> Sequence[couchbase.Action]:
        return [doubles.OPEN_STREAM, *doubles.settle(event)] if isinstance(event, couchbase.OperationSubmitted) else ()

    variable.set("of the opener")
    async with doubles.open_driver(
        ScriptedClusterMachine(open_at_first_use), doubles.FunctionConnector(connect)
    ) as driver:
        variable.set("of the first user")
        await doubles.perform(driver)
        await trio.testing.wait_all_tasks_blocked()

    assert ["of the opener"] == seen


def test_every_action_has_a_handler() -> None:
    """There is no order that the driver would not know how to carry out."""
    assert set(get_args(couchbase.Action)) == {*doubles.driver_of(ScriptedClusterMachine())._handlers}
