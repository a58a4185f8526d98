"""A driver on trial: one driver around one machine, with peers that it connects to."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager

from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, OperationSubmitted, RequestSubmitted
from triclinium_core.contract.neutral import OpenStream, StreamId, StreamLost, StreamOpened, TimePassed, Token
from triclinium_core.kv.operation.requests import Get, Keyspace
from triclinium_core.kv.operation.results import Done, Result
from triclinium_core.services.query.request import QueryRequest
from triclinium_core.services.request import ServiceResult
from triclinium_core.testing.driver_laws.driver import (
    Caller,
    DriverUnderTest,
    Listener,
    OpenDriver,
    PeerSocket,
    Reader,
)
from triclinium_core.testing.driver_laws.machine import Answer, LawBroken, ScriptedMachine, nothing, on

TURNS_MAX = 500
"""What has not happened after so many turns, half a second at least, never will."""

TURNS_OF_QUIET = 10
"""Turns that are waited for what must not happen."""

CHUNK = 1 << 20
"""Bytes that a peer reads at once, at most."""

DONE = Done()


class Peer:
    """The other end of a stream."""

    def __init__(self, socket: PeerSocket, driver: DriverUnderTest) -> None:
        socket.setblocking(False)
        self._socket = socket
        self._driver = driver

    def send(self, data: bytes) -> None:
        """Send ``data``, which has to fit into the system's buffers."""
        sent = self._socket.send(data)
        assert len(data) == sent, "the system's buffers are too small for a law"

    async def receive(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer where the stream ends before, or nothing more comes."""
        pieces: list[bytes] = []
        turns = 0
        while size > 0 and turns < TURNS_MAX:
            try:
                piece = self._socket.recv(min(size, CHUNK))
            except BlockingIOError:
                turns += 1
                await self._driver.turn()
                continue
            except ConnectionError:
                break
            if not piece:
                break
            turns = 0
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close the stream."""
        self._socket.close()


class Trial:
    """One driver at work."""

    def __init__(self, machine: ScriptedMachine, driver: DriverUnderTest, cleanup: ExitStack) -> None:
        self.machine = machine
        self.driver = driver
        self._cleanup = cleanup

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        """Give the block a listening socket."""
        listener = self.driver.listen()
        try:
            listener.setblocking(False)
            yield listener
        finally:
            listener.close()

    async def order(self, *actions: Action, then: Answer = nothing) -> None:
        """Have the machine order ``actions`` in answer to one event, and ``then`` answer what follows."""
        carried_out: list[Token] = []

        def answer(event: Event) -> Sequence[Action]:
            if isinstance(event, OperationSubmitted) and not carried_out:
                carried_out.append(event.token)
                return [*actions, CompleteOperation(event.token, DONE)]
            return then(event)

        self.machine.answer = answer
        outcome = await self.outcome_of(
            self.driver.submit(GET), "an operation that was completed at once has not returned"
        )
        ensure(outcome == DONE, f"an operation that was completed at once ended with {outcome!r}")

    async def submit(self, *actions: Action) -> tuple[Caller, Token]:
        """Return a caller that waits until the machine settles its operation, and its token; ``actions`` are ordered then."""
        self.machine.answer = on(OperationSubmitted, *actions)
        count = len(self.machine.submitted)
        caller = self.driver.submit(GET)
        await self.until(lambda: len(self.machine.submitted) > count, "an operation was not submitted")
        self.machine.answer = nothing
        return caller, self.machine.submitted[-1].token

    async def ask(self, *actions: Callable[[Token], Action]) -> tuple[Reader, Token]:
        """Return a task that asks a service, and its token; what the machine orders at that, made with the token."""

        def answer(event: Event) -> Sequence[Action]:
            return [make(event.token) for make in actions] if isinstance(event, RequestSubmitted) else ()

        self.machine.answer = answer
        count = len(self.machine.requested)
        reader = self.driver.ask(QUERY)
        await self.until(lambda: len(self.machine.requested) > count, "a request to a service was not submitted")
        self.machine.answer = nothing
        return reader, self.machine.requested[-1].token

    async def connect(self, stream: StreamId, *, then: Answer = nothing) -> Peer:
        """Have the machine open a stream; return its other end. ``then`` answers what follows, ``StreamOpened`` first."""
        with self.listening() as listener:
            await self.order(open_stream(stream, listener), then=then)
            accepted: list[PeerSocket] = []

            def is_accepted() -> bool:
                try:
                    accepted.append(listener.accept()[0])
                except BlockingIOError:
                    return False
                return True

            await self.until(is_accepted, "OpenStream has not led to a connection")
        peer = Peer(accepted[0], self.driver)
        self._cleanup.callback(peer.close)
        await self.until(lambda: self.has_heard(StreamOpened, stream), "a connection has not led to StreamOpened")
        return peer

    def ring_once(self, event: Event) -> Sequence[Action]:
        """Order nothing, and set no other alarm when one has rung: an answer of the machine."""
        if self.machine.now >= self.machine.wakeup:
            self.machine.wakeup = math.inf
        return ()

    async def rung(self, due: float) -> TimePassed:
        """Wait for a ``TimePassed`` at ``due`` or later, and return it."""

        def told() -> list[TimePassed]:
            heard = zip(self.machine.events, self.machine.times, strict=True)
            return [event for event, now in heard if isinstance(event, TimePassed) and now >= due]

        await self.until(lambda: bool(told()), "wakeup has come, and no TimePassed")
        return told()[0]

    async def outcome_of(self, caller: Caller, otherwise: str) -> Result | ServiceResult | BaseException:
        """Wait for what a caller gets; that it gets nothing means ``otherwise``."""
        await self.until(lambda: caller.outcome is not None, otherwise)
        outcome = caller.outcome
        assert outcome is not None
        return outcome

    async def loss_of(self, stream: StreamId) -> StreamLost:
        """Return the one report of the end of a stream."""
        await self.until(lambda: self.has_heard(StreamLost, stream), f"StreamLost was not told of stream {stream}")
        await self.quiet()
        [first, *more] = self.machine.losses_of(stream)
        ensure(not more, f"StreamLost was told {1 + len(more)} times of stream {stream}")
        return first

    async def count_of(self, event: Event, least: int, otherwise: str) -> int:
        """Return how often the machine hears of an event, at least so often; that it does not means ``otherwise``."""
        await self.until(lambda: self.machine.events.count(event) >= least, otherwise)
        await self.quiet()
        return self.machine.events.count(event)

    async def abandonments_of(self, token: Token, otherwise: str) -> int:
        """Return how often an operation is abandoned, at least once; ``otherwise`` is the error if it is not."""
        await self.until(lambda: self.machine.abandonments_of(token) > 0, otherwise)
        await self.quiet()
        return self.machine.abandonments_of(token)

    def has_heard(self, kind: type[Event], stream: StreamId) -> bool:
        """Tell whether the machine got an event of this kind for a stream."""
        return any(
            isinstance(event, kind) and getattr(event, "stream", None) == stream for event in self.machine.events
        )

    async def until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Let the driver work until ``condition`` holds.

        Raises:
            LawBroken: it never does, which means ``otherwise``; or the machine was called as it must not be.
        """
        for _ in range(TURNS_MAX):
            self.look()
            if condition():
                return
            await self.driver.turn()
        raise LawBroken(otherwise)

    async def quiet(self) -> None:
        """Let the driver do what it still has to do, and what it must not."""
        for _ in range(TURNS_OF_QUIET):
            await self.driver.turn()
        self.look()

    def look(self) -> None:
        """Raise what the machine has seen of the driver that is against the law."""
        if self.machine.broken:
            raise self.machine.broken[0]


def ensure(holds: bool, otherwise: str) -> None:
    """Pass what holds.

    Raises:
        LawBroken: it does not, which means ``otherwise``.
    """
    if not holds:
        raise LawBroken(otherwise)


GET = Get(Keyspace("travel"), "ada")
"""What callers ask for; the machine never sends it."""

QUERY = QueryRequest(statement="SELECT airline.* FROM airline")
"""What readers ask for; the machine never sends it."""


def open_stream(stream: StreamId, listener: Listener) -> OpenStream:
    """Return the order to connect to a listening socket."""
    host, port = listener.getsockname()
    return OpenStream(stream, host, port, tls=False)


@asynccontextmanager
async def on_trial(open_driver: OpenDriver) -> AsyncIterator[Trial]:
    """Give the block a driver that has started."""
    machine = ScriptedMachine()
    with ExitStack() as cleanup:
        async with open_driver(machine) as driver:
            trial = Trial(machine, driver, cleanup)
            await trial.until(lambda: bool(machine.events), "no TimePassed has started the machine")
            yield trial
            await trial.quiet()
