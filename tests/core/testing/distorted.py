"""Checked simulations of the real client, and of clients with a defect that distorts their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.core.runtime.kv.simulated import COLLECTIONS, SMALL_MAP, client_options
from tests.core.testing.asked import HOTELS, HOTELS_ID, TRAVEL, get
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import CloseStream, OpenStream, SendBytes, StreamId, Token
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, DocumentOperation, Operation
from triclinium_core.kv.operation.results import Cas, GetResult, MutationResult
from triclinium_core.options import ClientOptions
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.simulation import MIDPOINT
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.state_machine import KVStateMachine

Distort = Callable[[couchbase.Event, list[couchbase.Action]], Sequence[couchbase.Action]]
"""Function that replaces the client's actions for an event."""


SETTLED = (couchbase.CompleteOperation, couchbase.FailOperation)


class DistortedMachine(ClientMachine):
    """Client machine with distorted actions. Its timers may be always due, and it may report ambiguity as False."""

    def __init__(self, options: ClientOptions, distort: Distort | None) -> None:
        super().__init__(options, rng=MIDPOINT)
        self.distort = distort
        self._stands_still = False
        self.denies = False

    def handle(self, event: couchbase.Event, now: float) -> Sequence[couchbase.Action]:
        """Handle the event, distort the actions, and set the wakeup to 0 if the timers are always due."""
        actions = super().handle(event, now)
        if self._stands_still:
            self.wakeup = 0.0
        return actions if self.distort is None else self.distort(event, list(actions))

    def stand_still(self) -> None:
        """Make the timers always due after this call."""
        self._stands_still, self.wakeup = True, 0.0

    def is_ambiguous(self, token: Token) -> bool:
        """Return whether the operation is ambiguous; always False if this client denies it."""
        return not self.denies and super().is_ambiguous(token)


class Distorted(CheckedSimulation):
    """Checked simulation of a client that a test can distort at any time."""

    def __init__(self, distort: Distort | None = None, **options: Any) -> None:
        node = FakeNode(FakeNodeOptions(buckets=("travel",), collections=COLLECTIONS, error_map=SMALL_MAP))
        super().__init__(node, client_options(**options), {TRAVEL: 0, HOTELS: HOTELS_ID})
        self.client = DistortedMachine(self.options, distort)
        self.machine = self.client

    @property
    def newest(self) -> StreamId:
        """The open stream that was opened last."""
        return max(self.links)

    def serve(self, operation: Operation, **options: Any) -> Token:
        """Submit an operation and let all bytes flow."""
        token = self.submit(operation, **options)
        self.flow()
        return token

    def store(self, make: Callable[[bytes], DocumentOperation]) -> bytes:
        """Write a new value and return it."""
        value = self.model.unique_values.fragment()
        token = self.serve(make(value))
        assert token in self.results
        return value


def ready(distort: Distort | None = None, **options: Any) -> Distorted:
    """Return a simulation of a connected client whose later actions are distorted."""
    simulation = Distorted(**options)
    simulation.tick()
    simulation.serve(get())
    assert simulation.is_healthy
    simulation.client.distort = distort
    return simulation


def loses_answers(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Drop the results of all operations."""
    return [action for action in actions if not isinstance(action, SETTLED)]


def never_closes(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Drop the orders to close a stream."""
    return [action for action in actions if not isinstance(action, CloseStream)]


def sends_twice(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Send all bytes twice."""
    return [action for action in actions for _ in range(1 + isinstance(action, SendBytes))]


def settles_twice(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Settle each operation twice."""
    return [action for action in actions for _ in range(1 + isinstance(action, SETTLED))]


def acknowledges_at_once(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Complete each operation before anything is sent."""
    if isinstance(event, couchbase.OperationSubmitted):
        actions.append(couchbase.CompleteOperation(event.token, MutationResult(Cas(9))))
    return actions


def fails_when_abandoned(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Fail operations that their callers have abandoned."""
    if isinstance(event, couchbase.OperationAbandoned):
        actions.append(couchbase.FailOperation(event.token, errors.RequestCanceledException()))
    return actions


def is_never_ambiguous(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Replace ambiguous timeouts with unambiguous ones."""
    return [
        couchbase.FailOperation(action.token, errors.UnambiguousTimeoutException("", action.error.context))
        if isinstance(action, couchbase.FailOperation) and isinstance(action.error, errors.AmbiguousTimeoutException)
        else action
        for action in actions
    ]


def is_always_ambiguous(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Replace all failures with ambiguous timeouts."""
    return [
        couchbase.FailOperation(action.token, errors.AmbiguousTimeoutException("", action.error.context))
        if isinstance(action, couchbase.FailOperation)
        else action
        for action in actions
    ]


def always_finds(data: bytes) -> Distort:
    """Return a defect that replaces each success with a document with this content."""
    result = GetResult(Cas(1), 0, data, JSON_TRANSCODER)

    def distort(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
        return [
            couchbase.CompleteOperation(action.token, result)
            if isinstance(action, couchbase.CompleteOperation)
            else action
            for action in actions
        ]

    return distort


def content(simulation: Distorted, token: Token) -> bytes:
    """Return the content that a reader got."""
    result = simulation.results[token]
    assert isinstance(result, GetResult)
    return result.data


def fails_with(error: errors.CouchbaseException) -> Distort:
    """Return a defect that fails each operation at its submission."""

    def distort(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.OperationSubmitted):
            actions.append(couchbase.FailOperation(event.token, error))
        return actions

    return distort


def fails_instead(error: errors.CouchbaseException) -> Distort:
    """Return a defect that replaces each result with this failure."""

    def distort(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
        return [
            couchbase.FailOperation(action.token, error) if isinstance(action, SETTLED) else action
            for action in actions
        ]

    return distort


def never_opens(event: couchbase.Event, actions: list[couchbase.Action]) -> Sequence[couchbase.Action]:
    """Drop the orders to open a stream, and therefore the orders to close it."""
    return [action for action in actions if not isinstance(action, OpenStream | CloseStream)]


def distorted(distort: Distort) -> type[KVStateMachine]:
    """Return a state machine whose client has a defect."""

    class Distorted(KVStateMachine):
        def make_simulation(self) -> CheckedSimulation:
            """Return a simulation of the distorted client."""
            simulation = super().make_simulation()
            simulation.machine = DistortedMachine(simulation.options, distort)
            return simulation

    return Distorted


def connected() -> KVStateMachine:
    """Return a state machine whose client is connected."""
    machine = KVStateMachine()
    machine.begin(is_connected=True, strike=None)
    return machine


def newest(machine: KVStateMachine) -> StreamId:
    """Return the open stream that was opened last."""
    return max(machine.simulation.links)
