"""Checked simulations of the real client, and of clients with a defect that distorts their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.core.runtime.kv.simulated import COLLECTIONS, SMALL_MAP, client_options
from tests.core.testing.asked import get
from tests.core.testing.books import COLLECTION_IDS
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

TRAVEL_NODE = FakeNodeOptions(buckets=("travel",), collections=COLLECTIONS, error_map=SMALL_MAP, vbuckets=128)
SETTLED = (couchbase.CompleteOperation, couchbase.FailOperation)


class DistortedMachine(ClientMachine):
    """Client machine with distorted actions. Its timers may always be due, and it may deny ambiguity."""

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
        super().__init__(FakeNode(TRAVEL_NODE), client_options(**options), COLLECTION_IDS)
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


def drops(*kinds: type[couchbase.Action]) -> Distort:
    """Return a defect that drops the actions of these kinds."""
    return lambda event, actions: [action for action in actions if not isinstance(action, kinds)]


def repeats(*kinds: type[couchbase.Action]) -> Distort:
    """Return a defect that performs the actions of these kinds twice."""
    return lambda event, actions: [action for action in actions for _ in range(1 + isinstance(action, kinds))]


def adds(kind: type[couchbase.Event], make: Callable[[Any], couchbase.Action]) -> Distort:
    """Return a defect that adds an action after each event of a kind."""
    return lambda event, actions: [*actions, make(event)] if isinstance(event, kind) else actions


def replaces(*kinds: type[couchbase.Action], make: Callable[[Any], couchbase.Action]) -> Distort:
    """Return a defect that replaces the actions of these kinds."""
    return lambda event, actions: [make(action) if isinstance(action, kinds) else action for action in actions]


def fails_with(error: errors.CouchbaseException) -> Distort:
    """Return a defect that fails each operation at its submission."""
    return adds(couchbase.OperationSubmitted, lambda event: couchbase.FailOperation(event.token, error))


def fails_instead(error: errors.CouchbaseException) -> Distort:
    """Return a defect that replaces each result with this failure."""
    return replaces(*SETTLED, make=lambda action: couchbase.FailOperation(action.token, error))


def always_finds(data: bytes) -> Distort:
    """Return a defect that replaces each successful result with a document that has this content."""
    result = GetResult(Cas(1), 0, data, JSON_TRANSCODER)
    return replaces(couchbase.CompleteOperation, make=lambda action: couchbase.CompleteOperation(action.token, result))


def _denied(failure: couchbase.FailOperation) -> couchbase.FailOperation:
    if not isinstance(failure.error, errors.AmbiguousTimeoutException):
        return failure
    return couchbase.FailOperation(failure.token, errors.UnambiguousTimeoutException("", failure.error.context))


loses_answers = drops(*SETTLED)
never_opens = drops(OpenStream, CloseStream)
never_closes = drops(CloseStream)
sends_twice = repeats(SendBytes)
settles_twice = repeats(*SETTLED)
acknowledges_at_once = adds(
    couchbase.OperationSubmitted, lambda event: couchbase.CompleteOperation(event.token, MutationResult(Cas(9)))
)
fails_when_abandoned = adds(
    couchbase.OperationAbandoned,
    lambda event: couchbase.FailOperation(event.token, errors.RequestCanceledException()),
)
is_never_ambiguous = replaces(couchbase.FailOperation, make=_denied)
is_always_ambiguous = replaces(
    couchbase.FailOperation,
    make=lambda action: couchbase.FailOperation(
        action.token, errors.AmbiguousTimeoutException("", action.error.context)
    ),
)


def content(simulation: Distorted, token: Token) -> bytes:
    """Return the content that a reader got."""
    result = simulation.results[token]
    assert isinstance(result, GetResult)
    return result.data


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
