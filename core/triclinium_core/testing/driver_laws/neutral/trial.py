"""Steps and checks of a law: one driver, its scripted machine, and the peers to which the driver connects."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Generic, TypeVar

from triclinium_core.contract import neutral
from triclinium_core.testing.driver_laws.neutral import driver_under_test
from triclinium_core.testing.driver_laws.neutral.scripted_machine import Answer, LawBroken, ScriptedMachine, nothing

E = TypeVar("E")
A = TypeVar("A")
D = TypeVar("D", bound=driver_under_test.DriverUnderTest)

TURNS_MAX = 500
"""Number of turns, at least half a second, after which an event counts as missing."""

TURNS_OF_QUIET = 10
"""Number of turns to wait for an event that must not happen."""

DELAYS_MAX = 12
"""Number of delays, each twice as long as the one before, after which ``wakeup`` counts as reached too early."""

CHUNK = 1 << 20
"""Maximum number of bytes that a peer reads in one call."""


class Peer:
    """The peer's end of a stream."""

    def __init__(self, socket: driver_under_test.PeerSocket, driver: driver_under_test.DriverUnderTest) -> None:
        socket.setblocking(False)
        self._socket = socket
        self._driver = driver

    def send(self, data: bytes) -> None:
        """Send ``data``, which has to fit into the system's buffers."""
        sent = self._socket.send(data)
        assert len(data) == sent, "the system's buffers are too small for a law"

    async def receive(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer if the stream ends first or no more bytes arrive."""
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


class Trial(Generic[E, A, D]):
    """One running driver and its scripted machine."""

    def __init__(
        self, bench: driver_under_test.Bench[E, A, D], machine: ScriptedMachine[E, A], driver: D, cleanup: ExitStack
    ) -> None:
        self.machine = machine
        self.driver = driver
        self._bench = bench
        self._cleanup = cleanup

    @property
    def submissions(self) -> list[neutral.Token]:
        """Submitted tokens, oldest first."""
        return [token for event in self.machine.events if (token := self._bench.submitted(event)) is not None]

    def abandonments_of(self, token: neutral.Token) -> int:
        """Return how many events report that the task of a token has left."""
        return sum(self._bench.abandoned(event) == token for event in self.machine.events)

    def completion(self, token: neutral.Token) -> A:
        """Return the action that resumes the task of a token with a result."""
        return self._bench.completion(token)

    def on_submission(self, *actions: A | neutral.NeutralAction) -> Answer[E, A]:
        """Return an answer that returns ``actions`` for every submission."""
        return lambda event: () if self._bench.submitted(event) is None else actions

    @contextmanager
    def listening(self) -> Iterator[driver_under_test.Listener]:
        """Yield a listening socket."""
        listener = self.driver.listen()
        try:
            listener.setblocking(False)
            yield listener
        finally:
            listener.close()

    async def order(
        self,
        *actions: A | neutral.NeutralAction,
        then: Answer[E, A] = nothing,
        work: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the machine order ``actions`` at a submission, and wait for its task; ``then`` answers other events.

        The machine calls ``work`` while it handles the submission.
        """
        carried_out: list[neutral.Token] = []

        def answer(event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
            token = self._bench.submitted(event)
            if token is not None and not carried_out:
                carried_out.append(token)
                work()
                return [*actions, self.completion(token)]
            return then(event)

        self.machine.answer = answer
        caller = self.driver.submit()
        await self.until(lambda: bool(carried_out), "the driver did not submit the operation of a task")
        await self.result_of(caller, carried_out[0], "a task that was completed immediately has not returned")

    async def submit(self, *actions: A | neutral.NeutralAction) -> tuple[driver_under_test.Caller, neutral.Token]:
        """Start a task that waits, and return it with its token. The machine orders ``actions`` at its submission."""
        self.machine.answer = self.on_submission(*actions)
        count = len(self.submissions)
        caller = self.driver.submit()
        await self.until(lambda: len(self.submissions) > count, "the driver did not submit the operation of a task")
        self.machine.answer = nothing
        return caller, self.submissions[-1]

    async def connect(self, stream: neutral.StreamId, *, then: Answer[E, A] = nothing) -> Peer:
        """Make the machine open a stream, and return the peer's end. ``then`` answers later events."""
        with self.listening() as listener:
            await self.order(open_stream(stream, listener), then=then)
            accepted: list[driver_under_test.PeerSocket] = []

            def is_accepted() -> bool:
                try:
                    accepted.append(listener.accept()[0])
                except BlockingIOError:
                    return False
                return True

            await self.until(is_accepted, "the driver made no connection after OpenStream")
        peer = Peer(accepted[0], self.driver)
        self._cleanup.callback(peer.close)
        await self.until(
            lambda: self.has_received(neutral.StreamOpened, stream), "the driver fed no StreamOpened after a connection"
        )
        return peer

    def ring_once(self, event: E | neutral.NeutralEvent) -> Sequence[A | neutral.NeutralAction]:
        """Answer any event with no actions; if ``wakeup`` is due, set it to infinity."""
        if self.machine.now >= self.machine.wakeup:
            self.machine.wakeup = math.inf
        return ()

    async def keep_busy(self, seconds: float, work: Callable[[], None], *, then: Answer[E, A]) -> float:
        """Keep the driver busy with one event until ``wakeup`` is due, and return ``wakeup``.

        The driver has read ``wakeup`` before the event, in which the machine calls ``work``. ``then`` answers other
        events, and resets a ``wakeup`` that is due. If a real clock reaches ``wakeup`` before the event, as on a busy
        computer, the next delay is twice as long.
        """
        for _ in range(DELAYS_MAX):
            due = self.machine.wakeup = self.machine.now + seconds
            await self.order(then=then)
            if await self._was_busy(due, seconds, work, then):
                return due
            seconds *= 2
        raise LawBroken("the clock of the driver reaches each wakeup before the driver has carried out two orders")

    async def _was_busy(self, due: float, seconds: float, work: Callable[[], None], then: Answer[E, A]) -> bool:
        was_early = False

        def be_busy() -> None:
            nonlocal was_early
            was_early = self.machine.now < due
            if was_early:
                work()
                self.driver.pass_time(seconds)

        await self.order(then=then, work=be_busy)
        return was_early

    async def rung(self, due: float) -> neutral.TimePassed:
        """Wait for a ``TimePassed`` at ``due`` or later, and return it."""

        def fed() -> list[neutral.TimePassed]:
            timed_events = zip(self.machine.events, self.machine.times, strict=True)
            return [event for event, now in timed_events if isinstance(event, neutral.TimePassed) and now >= due]

        await self.until(lambda: bool(fed()), "wakeup is due, but the driver fed no TimePassed")
        return fed()[0]

    async def outcome_of(self, caller: driver_under_test.Caller, otherwise: str) -> object:
        """Wait for the outcome of a task and return it; ``otherwise`` describes the breach if the task does not end."""
        await self.until(lambda: caller.outcome is not None, otherwise)
        return caller.outcome

    async def result_of(self, caller: driver_under_test.Caller, token: neutral.Token, otherwise: str) -> None:
        """Check that a task returns the result of its token; ``otherwise`` describes the breach if it never ends."""
        outcome, expected = await self.outcome_of(caller, otherwise), self._bench.result(token)
        ensure(outcome == expected, f"a task was completed with {expected!r}, but ended with {outcome!r}")

    async def loss_of(self, stream: neutral.StreamId) -> neutral.StreamLost:
        """Wait for the ``StreamLost`` of a stream and return it; the driver must feed exactly one."""
        await self.until(
            lambda: self.has_received(neutral.StreamLost, stream), f"the driver fed no StreamLost for stream {stream}"
        )
        await self.quiet()
        [first, *more] = self.machine.losses_of(stream)
        ensure(not more, f"the driver fed StreamLost {1 + len(more)} times for stream {stream}")
        return first

    def has_received(self, kind: type, stream: neutral.StreamId) -> bool:
        """Return whether the machine got an event of this kind for a stream."""
        return any(
            isinstance(event, kind) and getattr(event, "stream", None) == stream for event in self.machine.events
        )

    async def until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Let the driver work until ``condition`` holds.

        Raises:
            LawBroken: ``condition`` did not hold in time (message: ``otherwise``), or the driver broke its contract.
        """
        for _ in range(TURNS_MAX):
            self.look()
            if condition():
                return
            await self.driver.turn()
        raise LawBroken(otherwise)

    async def quiet(self) -> None:
        """Let the driver run long enough to do all pending work, including work that it must not do."""
        for _ in range(TURNS_OF_QUIET):
            await self.driver.turn()
        self.look()

    def look(self) -> None:
        """Raise the first breach that the machine has recorded, if any."""
        if self.machine.broken:
            raise self.machine.broken[0]


def ensure(holds: bool, otherwise: str) -> None:
    """Check that ``holds`` is true.

    Raises:
        LawBroken: ``holds`` is false; ``otherwise`` is the message.
    """
    if not holds:
        raise LawBroken(otherwise)


def open_stream(stream: neutral.StreamId, listener: driver_under_test.Listener) -> neutral.OpenStream:
    """Return the action that connects to a listening socket."""
    host, port = listener.getsockname()
    return neutral.OpenStream(stream, host, port, tls=False)


@asynccontextmanager
async def on_trial(bench: driver_under_test.Bench[E, A, D]) -> AsyncIterator[Trial[E, A, D]]:
    """Yield a trial of a started driver."""
    with ExitStack() as cleanup:
        async with bench.open() as (machine, driver):
            trial = Trial(bench, machine, driver, cleanup)
            await trial.until(lambda: bool(machine.events), "the driver fed no TimePassed to start the machine")
            yield trial
            await trial.quiet()
