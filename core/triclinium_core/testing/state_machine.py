"""Hypothesis state machine that runs a key-value client against a fake node and checks the client's laws.

Needs the extra ``testing``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from triclinium_core.contract.neutral import LossCause, StrategyDecided, StreamId, Token
from triclinium_core.kv.operation.document_operations import Exists, Get, Keyspace, Operation, Upsert
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import CircuitBreakerOptions, RetryAction
from triclinium_core.retry.smithy import StandardRetryStrategy
from triclinium_core.testing import hypothesis_strategies
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import Fault, RefuseConnection, drop_response
from triclinium_core.testing.fakes.store.documents import Document
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle.checked_strategies import CheckedStrategy
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.simulation.history import BUCKET, COLLECTION_IDS, DEFAULT, NODE_OPTIONS
from triclinium_core.testing.simulation.simulation import MIDPOINT, client_options
from triclinium_core.transcoding.flags import BINARY_FLAGS

_positions = st.integers(0, 3)


class KVStateMachine(RuleBasedStateMachine):
    """One client, one node, and everything that may happen between them.

    The machine draws steps: operations are submitted and abandoned, streams open and are lost, bytes move in pieces,
    faults strike, time passes. It checks every step, as described in ``simulation.checked``. Occasionally, and at the
    end of every run that has not failed, it clears the faults, and the client must recover and complete its operations.

    Derive from it to add a rule or a law::

        class LockedDocuments(KVStateMachine):
            @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
            def lock(self, key: str, seconds: int) -> None:
                self.submit(GetAndLock(self.keyspace, key, seconds))

            @invariant()
            def only_the_holder_writes(self) -> None:
                for place, lock in self.model.locks.items():
                    assert lock.cas == self.document(place).cas


        TestLockedDocuments = LockedDocuments.TestCase

    ``keys`` draws keys of documents of bytes, ``counters`` keys of counters. Rules must write values from
    ``self.model.unique_values``, so that every document identifies its writer.
    """

    keys: ClassVar[st.SearchStrategy[str]] = st.sampled_from(("ada", "bob"))
    counters: ClassVar[st.SearchStrategy[str]] = st.just("hits")
    keyspace: ClassVar[Keyspace] = DEFAULT
    keyspaces: ClassVar[Sequence[Keyspace]] = tuple(COLLECTION_IDS)

    _templates = hypothesis_strategies.operation_templates(
        st.tuples(st.sampled_from(keyspaces), keys).map(lambda parts: Place(*parts)),
        st.tuples(st.sampled_from(keyspaces), counters).map(lambda parts: Place(*parts)),
    )

    def __init__(self) -> None:
        super().__init__()
        self.simulation: CheckedSimulation = self.make_simulation()
        self._strategies: Mapping[str, AnyRetryStrategy | None] = {
            **hypothesis_strategies.RETRY_STRATEGIES,
            **hypothesis_strategies.token_strategies(self.simulation.loans),
        }

    def make_simulation(self) -> CheckedSimulation:
        """Return a client and a node that are not connected yet. Override this method to use other options."""
        node = FakeNode(NODE_OPTIONS)
        # The threshold is low enough that a short history opens the breaker.
        breaker = CircuitBreakerOptions(volume_threshold=3)
        options = replace(client_options(FakeNodes.around(node)), circuit_breaker=breaker)
        return CheckedSimulation(node, options, COLLECTION_IDS)

    # Interface for rules and laws.

    @property
    def node(self) -> FakeNode:
        """Node of the client."""
        return self.simulation.node

    @property
    def model(self) -> Model:
        """Model of the documents, as far as the callers know them."""
        self.simulation.model.now = self.simulation.now
        return self.simulation.model

    @property
    def now(self) -> float:
        """Current time in seconds."""
        return self.simulation.now

    def submit(self, operation: Operation, *, retry_strategy: str = "default") -> Token:
        """Submit an operation now, and return its token.

        Args:
            retry_strategy: a name in ``RETRY_STRATEGIES`` or ``token_strategies``.
        """
        return self.simulation.submit(operation, retry_strategy=self._strategies[retry_strategy])

    def document(self, place: Place) -> Document | None:
        """Return the current document on the node, or None if it does not exist."""
        self.node.time_passed(self.now)
        return self.node.documents.get(BUCKET, place.key, collection_id=COLLECTION_IDS[place.keyspace])

    # Steps of callers.

    @initialize(is_connected=st.booleans(), strike=st.none() | hypothesis_strategies.strikes())
    def begin(self, is_connected: bool, strike: hypothesis_strategies.Strike | None) -> None:
        """Start the client, already connected or not, with or without a pending fault."""
        self.simulation.tick()
        if is_connected:
            self.submit(Get(self.keyspace, "ada"))
            self.simulation.flow()
        if strike is not None:
            strike.arm(self.node.faults)

    @rule(template=_templates, retry_strategy=hypothesis_strategies.retry_strategies())
    def operate(self, template: OperationTemplate, retry_strategy: str) -> None:
        """Submit an operation."""
        self.submit(template.make(self.model), retry_strategy=retry_strategy)

    @rule(template=_templates, retry_strategy=hypothesis_strategies.retry_strategies())
    def exchange(self, template: OperationTemplate, retry_strategy: str) -> None:
        """Submit an operation and let all bytes arrive."""
        self.submit(template.make(self.model), retry_strategy=retry_strategy)
        self.simulation.flow()

    @rule(
        template=_templates,
        retry_strategy=hypothesis_strategies.retry_strategies(),
        fault=hypothesis_strategies.data_faults(),
        is_for_question=st.booleans(),
    )
    def struck_exchange(
        self, template: OperationTemplate, retry_strategy: str, fault: Fault, is_for_question: bool
    ) -> None:
        """Let a fault strike an operation or its collection id request, then read a document of the same collection."""
        operation = template.make(self.model)
        is_for_question = is_for_question and not operation.keyspace.is_default_collection
        self.node.faults.next(Opcode.GET_COLLECTION_ID if is_for_question else operation.opcode, fault)
        self.submit(operation, retry_strategy=retry_strategy)
        self.simulation.flow()
        self.submit(Exists(operation.keyspace, "ada"))
        self.simulation.flow()

    @rule(members=st.lists(_templates, min_size=1, max_size=5))
    def go_silent(self, members: list[OperationTemplate]) -> None:
        """Make the node drop its replies until several operations time out, which may open the circuit breaker."""
        self.node.faults.always(None, drop_response())
        self.simulation.submit_together([(template.make(self.model), None) for template in members])
        self.simulation.flow_for(self.simulation.options.timeouts.kv)
        self.node.faults.clear()

    @precondition(lambda self: self.model.open)
    @rule(position=_positions)
    def abandon(self, position: int) -> None:
        """Abandon the operation of one caller."""
        submissions = self.model.open
        self.simulation.abandon(Token(submissions[position % len(submissions)].token))

    @precondition(lambda self: self.simulation.consulted)
    @rule(answer=st.sampled_from(("retry", "refuse", "raise", "nonsense")))
    def decide(self, answer: str) -> None:
        """Feed the decision of the oldest consulted asynchronous strategy."""
        token = self.simulation.consulted.pop(0).token
        answers = {"retry": RetryAction.after(0.02), "refuse": RetryAction.no_retry()}
        raised = ZeroDivisionError("a strategy with a defect") if answer == "raise" else None
        self.simulation.feed(StrategyDecided(token, answers.get(answer), raised))

    @precondition(lambda self: self.simulation.consultations.open)
    @rule(position=_positions)
    def go_on(self, position: int) -> None:
        """Continue a call of an awaited token strategy. A call that never continues is cancelled in the end."""
        thinking = self.simulation.consultations.open
        self.simulation.go_on(thinking[position % len(thinking)])

    @rule(finishes_late=st.booleans())
    def call_off(self, finishes_late: bool) -> None:
        """Set whether cancelled token strategies still finish their calls or stay silent."""
        self.simulation.consultations.finishes_late = finishes_late

    # Steps of the network.

    @precondition(lambda self: self._moves())
    @rule(position=_positions, size=hypothesis_strategies.cuts())
    def move(self, position: int, size: int | None) -> None:
        """Complete a connect, or deliver bytes of one stream in one direction."""
        moves = self._moves()
        moves[position % len(moves)](size)

    @precondition(lambda self: self.simulation.links)
    @rule(
        position=_positions,
        cause=st.sampled_from((LossCause.RESET, LossCause.UNREACHABLE, LossCause.TLS)),
        begun=st.integers(0, 100),
    )
    def lose_stream(self, position: int, cause: LossCause, begun: int) -> None:
        """Break a stream while the driver is writing the next ``begun`` bytes, which never arrive."""
        streams = list(self.simulation.links)
        stream = streams[position % len(streams)]
        link = self.simulation.links[stream]
        if link.is_open:
            link.handed_over += min(begun, len(link.outgoing))
        self.simulation.lose(stream, cause)

    @rule(strike=hypothesis_strategies.strikes(), is_standing=st.booleans())
    def strike(self, strike: hypothesis_strategies.Strike, is_standing: bool) -> None:
        """Queue the fault for the next matching commands or connections.

        A refusal may last until all faults are cleared.
        """
        strike.arm(self.node.faults)
        if is_standing and isinstance(strike.fault, RefuseConnection):
            self.node.faults.always(None, strike.fault)

    @rule(seconds=st.sampled_from((0.001, 0.05, 0.6, 2.5, 25.0)))
    def stall(self, seconds: float) -> None:
        """Let time pass while nothing moves."""
        self.simulation.advance(seconds)

    @rule(seconds=st.sampled_from((0, 0, 0.001, 0.05, 0.6, 2.5, 25.0)))
    def run(self, seconds: float) -> None:
        """Let time pass while everything moves."""
        self.simulation.flow_for(seconds)

    # Liveness.

    @rule(is_busy=st.booleans())
    def recover(self, is_busy: bool) -> None:
        """Clear all faults, with or without work meanwhile; the client must recover and complete operations again."""
        self.node.faults.clear()
        self.simulation.recover((lambda: self.submit(Get(self.keyspace, "ada"))) if is_busy else None)
        self._serve()

    def _serve(self) -> None:
        """Write and read a document in each keyspace; without faults, no failure has an excuse."""
        for keyspace in self.keyspaces:
            self.submit(Upsert(keyspace, "ada", self.model.unique_values.fragment(), BINARY_FLAGS))
            self.submit(Get(keyspace, "ada"))
        self.simulation.flow_for(self.simulation.options.timeouts.kv)

    def teardown(self) -> None:
        """Recover, unless the run has failed already."""
        if sys.exc_info()[0] is None:
            self.recover(is_busy=True)

    def _moves(self) -> list[Callable[[int | None], None]]:
        """Return the possible next steps of the network, for each stream and direction."""
        simulation = self.simulation
        moves: list[Callable[[int | None], None]] = []
        for stream, link in simulation.links.items():
            if not link.is_open:
                moves.append(partial(_open, simulation, stream))
                continue
            if link.outgoing:
                moves.append(partial(simulation.hand_over, stream))
            if link.incoming or link.is_hung_up:
                moves.append(partial(simulation.deliver, stream))
        return moves


class TokenStateMachine(KVStateMachine):
    """State machine whose client has a token strategy. Operations without another strategy share a small quota."""

    quota_capacity: ClassVar[int] = 40

    def make_simulation(self) -> CheckedSimulation:
        """Return a client with a token strategy and a node that are not connected yet."""
        other = super().make_simulation()
        own = CheckedStrategy(other.loans, StandardRetryStrategy(rng=MIDPOINT, quota_capacity=self.quota_capacity))
        options = replace(other.options, retry_strategy=own)
        return CheckedSimulation(other.node, options, COLLECTION_IDS, loans=other.loans)


def _open(simulation: CheckedSimulation, stream: StreamId, size: int | None) -> None:
    simulation.open(stream)
