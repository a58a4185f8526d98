"""TimePassed, which the driver sends to the machine when it is due, after bounded work on received bytes."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count, repeat

import msgspec
import pytest
import trio
import trio.testing
import trustme
from trio.testing import MockClock

from tests.trio_client import doubles
from tests.trio_client.pair import PATIENCE
from triclinium._driver.connector import TcpConnector
from triclinium._driver.tls_records import RECORDS_MAX
from triclinium_core.contract import couchbase, neutral
from triclinium_core.testing.driver_laws import ScriptedClusterMachine
from triclinium_core.work import PIECE_WORK, WORK_BEFORE_TIME_MAX, WORK_OF_A_PASS_MAX


@pytest.mark.parametrize(
    ("expected", "wakeups"),
    [
        ([5.0], [10.0, 5.0]),
        ([5.0, 10.0], [5.0, 10.0]),
        ([5.0], [5.0, math.inf]),
        ([], [math.inf, math.inf]),
    ],
)
async def test_the_wakeup_only_moves_earlier(
    autojump_clock: MockClock, expected: list[float], wakeups: list[float]
) -> None:
    """An earlier wakeup replaces a later one; a machine that postpones a wakeup gets one extra, harmless TimePassed."""
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
    """Return a script that sets the wakeup to 5.0; received digits complete the operation whose token they are."""

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = 5.0 if trio.current_time() < 5.0 else math.inf
            return [doubles.OPEN_STREAM] if len(machine.events) == 1 else ()
        if isinstance(event, neutral.BytesReceived) and event.data.isdigit():
            return [couchbase.CompleteOperation(neutral.Token(int(event.data)), doubles.DONE)]
        return ()

    return answer


async def until_time_passed(machine: ScriptedClusterMachine) -> None:
    """Wait until the machine has another ``TimePassed`` after its first event."""
    while not any(isinstance(event, neutral.TimePassed) for event in machine.later_events):
        await trio.lowlevel.checkpoint()


def reported_at_five(machine: ScriptedClusterMachine) -> int:
    """Return the index of the first ``TimePassed`` after the machine's first event."""
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
async def test_received_bytes_precede_time_passed(
    autojump_clock: MockClock, expected: int, pieces: Iterable[bytes]
) -> None:
    """Before it sends TimePassed, the driver reads the bytes that wait on a stream, up to a bound for endless ones."""
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
        await until_time_passed(machine)
        nursery.cancel_scope.cancel()
    reported = reported_at_five(machine)
    is_endless = expected == PIECES_MAX

    assert expected <= sum(isinstance(event, neutral.BytesReceived) for event in machine.events[:reported])
    assert neutral.TimePassed(unread=frozenset({doubles.STREAM} if is_endless else ())) == machine.events[reported]


@pytest.mark.parametrize(
    ("pieces_max", "named", "work"),
    [
        (2, {doubles.STREAM, neutral.StreamId(2)}, WORK_BEFORE_TIME_MAX),
        (4, {doubles.STREAM}, WORK_BEFORE_TIME_MAX // 2),
    ],
    ids=["in-the-first-round", "later"],
)
async def test_time_passed_follows_the_bound_of_work(
    autojump_clock: MockClock, pieces_max: int, named: set[neutral.StreamId], work: int
) -> None:
    """At the bound of work, TimePassed lists a busy stream as unread, and a silent one only if no turn read it."""
    second = msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(2), host="silent")

    async def flood() -> bytes:
        await trio.sleep_until(5.0)
        return b"x"

    def connect(host: str) -> doubles.HalfDeafStream:
        return doubles.HalfDeafStream() if host == "silent" else doubles.HalfDeafStream(receive_some=flood)

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.TimePassed):
            machine.wakeup = 5.0 if trio.current_time() < 5.0 else math.inf
            return [doubles.OPEN_STREAM, second] if len(machine.events) == 1 else ()
        if isinstance(event, neutral.BytesReceived):
            machine.work += work
        return ()

    machine = ScriptedClusterMachine(answer)
    async with doubles.open_driver(machine, doubles.HostConnector(connect)):
        await trio.sleep_until(5.0)
        await until_time_passed(machine)
    reported = reported_at_five(machine)
    pieces = sum(isinstance(event, neutral.BytesReceived) for event in machine.events[:reported])

    time = machine.events[reported]
    assert isinstance(time, neutral.TimePassed)
    assert pieces <= pieces_max
    assert doubles.STREAM in time.unread
    assert set(time.unread) <= named


async def test_one_pass_has_a_bound_for_all_streams(autojump_clock: MockClock) -> None:
    """If many streams each have a piece with much work, each pass of trio's loop feeds one piece, until all are fed."""
    streams = [msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(number)) for number in range(1, 11)]
    passes = [0]

    async def receive_once(pieces: list[bytes]) -> bytes:
        await trio.sleep_until(5.0)
        return pieces.pop() if pieces else await trio.sleep_forever()

    def connect(_: str) -> doubles.HalfDeafStream:
        pieces = [b"x"]
        return doubles.HalfDeafStream(receive_some=lambda: receive_once(pieces))

    def answer(event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, neutral.BytesReceived):
            machine.work += WORK_OF_A_PASS_MAX
            passes[-1] += 1
        return streams if len(machine.events) == 1 else ()

    machine = ScriptedClusterMachine(answer)
    async with doubles.open_driver(machine, doubles.HostConnector(connect)):
        await trio.sleep_until(5.0)
        while sum(passes) < len(streams):
            passes.append(0)
            await trio.lowlevel.checkpoint()

    # This test and the readers run in any order within a pass.
    assert max(passes) <= 2
    assert {stream.stream for stream in streams} == {
        event.stream for event in machine.events if isinstance(event, neutral.BytesReceived)
    }


RECORDS = 3 * PIECES_MAX * RECORDS_MAX
"""Number of TLS records of one byte: more than a megabyte, which the client receives in many parts."""
DUE_EVERY = PIECES_MAX + 50
"""Number of pieces from one due time to the next."""


class CorkedStream(trio.abc.SendStream):
    """Sending half of a socket, which after ``cork`` collects all data until ``uncork``."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._held: bytearray | None = None

    def cork(self) -> None:
        """Start to collect the data of further calls."""
        self._held = bytearray()

    async def uncork(self) -> None:
        """Send the collected bytes together."""
        assert self._held is not None
        held, self._held = self._held, None
        await self._stream.send_all(held)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send or collect ``data``."""
        if self._held is None:
            await self._stream.send_all(data)
        else:
            await trio.lowlevel.checkpoint()
            self._held += data

    async def wait_send_all_might_not_block(self) -> None:
        """Fail: ``SSLStream`` does not call this method here."""
        raise AssertionError

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()


@asynccontextmanager
async def open_flooding_peer() -> AsyncIterator[tuple[TcpConnector, int]]:
    """Yield a connector, and the port of a TLS peer that sends ``RECORDS`` records of one byte together."""
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


async def test_tls_records_do_not_delay_time_passed() -> None:
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
                while sum(map(len, received)) < RECORDS:
                    await trio.lowlevel.checkpoint()
    late = {count - at: event for at, (count, event) in zip(due, times, strict=False)}

    # Trio runs the tasks of a pass in any order. Two records may therefore arrive before the driver notices that the
    # time is due, and three more before it checks the work again.
    assert PIECES_MAX <= max(late) <= PIECES_MAX + 5
    assert neutral.TimePassed(unread=frozenset({doubles.STREAM})) == late[max(late)]
    assert b"x" * RECORDS == b"".join(received)
    assert RECORDS_MAX == max(map(len, received))


async def test_later_responses_do_not_delay_time_passed(autojump_clock: MockClock) -> None:
    """If bytes arrive without pause, the machine still gets TimePassed after the bytes that preceded the wakeup."""
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

    assert reported_at_five(machine) < PIECES_MAX // 4


async def test_time_passed_lists_unsent_bytes(autojump_clock: MockClock) -> None:
    """TimePassed names each stream with unsent bytes and their offset; a stream that sent everything is not listed."""
    stuck, free = (
        doubles.OPEN_STREAM,
        msgspec.structs.replace(doubles.OPEN_STREAM, stream=neutral.StreamId(2), host="free"),
    )
    streams = {
        "node": doubles.HalfDeafStream(send_all=lambda data: trio.Event().wait()),
        "free": doubles.HalfDeafStream(),
    }

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
    async with doubles.open_driver(machine, doubles.HostConnector(streams.__getitem__)) as driver:
        for _ in range(2):
            await trio.sleep(1)
            await doubles.occur(driver, neutral.BytesReceived(doubles.STREAM, b""))
        await trio.sleep_until(6.0)

    assert neutral.TimePassed(unsent={doubles.STREAM: 5}) == machine.events[-1]
