"""Hypothesis state machine that runs a key-value client against a fake node and checks the client's laws.

Needs the extra ``testing``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from hypothesis import currently_in_test_context, strategies as st
from hypothesis.control import current_build_context
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.neutral import LossCause, StrategyDecided, StreamId, Token
from triclinium_core.kv.operation.document_operations import (
    Concatenate,
    Count,
    DocumentOperation,
    Exists,
    Get,
    Keyspace,
    Operation,
    Store,
    Upsert,
)
from triclinium_core.kv.operation.subdocument.specs import StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import CircuitBreakerOptions, RetryAction
from triclinium_core.retry.smithy import StandardRetryStrategy
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing import hypothesis_strategies
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.faults import Fault, RefuseConnection, drop_response
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.store.documents import Document
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle import unique_lists
from triclinium_core.testing.oracle.checked_strategies import CheckedStrategy
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.request_templates import DrawnRequest
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.simulation.history import BUCKET, COLLECTION_IDS, DEFAULT, NODE_OPTIONS, SERVICE_TIMEOUTS
from triclinium_core.testing.simulation.simulation import MIDPOINT, client_options
from triclinium_core.testing.steps import Step, Steps, beginnings
from triclinium_core.testing.tapes import MakeMachine, Tapes
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS

_KEYS = ("ada", "bob")
_COUNTERS = ("hits",)
_LISTS = ("basket",)


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

    ``keys`` draws keys of documents of bytes, ``counters`` keys of counters, ``lists`` keys of documents with a list.
    Rules must write unique values, so that every document identifies its writer: submit writes with
    ``submit_document``, ``submit_count``, ``submit_list`` and ``submit_query``, and reads with ``submit``.

    Most steps of the machine itself are arguments of one rule, ``step``. A step that cannot apply, such as ``abandon``
    without a waiting caller, does nothing.
    """

    keys: ClassVar[st.SearchStrategy[str]] = st.sampled_from(_KEYS)
    counters: ClassVar[st.SearchStrategy[str]] = st.sampled_from(_COUNTERS)
    lists: ClassVar[st.SearchStrategy[str]] = st.sampled_from(_LISTS)
    keyspace: ClassVar[Keyspace] = DEFAULT
    keyspaces: ClassVar[Sequence[Keyspace]] = tuple(COLLECTION_IDS)
    keep_tape: ClassVar[Callable[[str, bytes], object] | None] = None
    """Function that receives the event tape of the minimal failing example, after the name of the machine. None records
    no tape. The pytest plugin of triclinium sets it, and names the file in the report of the test."""

    _steps = Steps(
        [Place(keyspace, key) for keyspace in COLLECTION_IDS for key in _KEYS],
        [Place(keyspace, key) for keyspace in COLLECTION_IDS for key in _COUNTERS],
    )

    def __init__(self) -> None:
        super().__init__()
        self._tapes = Tapes() if type(self).keep_tape is not None and _is_final() else None
        self.make_machine: MakeMachine = ClientMachine if self._tapes is None else self._tapes.make_machine
        """Factory of the client's machine, which records its events in the run that shows the failure."""
        self.simulation: CheckedSimulation = self.make_simulation()
        self._queries = 0
        self._strategies: Mapping[str, AnyRetryStrategy | None] = {
            **hypothesis_strategies.RETRY_STRATEGIES,
            **hypothesis_strategies.token_strategies(self.simulation.loans),
        }

    def make_simulation(self) -> CheckedSimulation:
        """Return a client and a node that are not connected yet. Override this method to use other options.

        Pass ``make_machine`` on, or no event tape is kept.
        """
        node = FakeNode(NODE_OPTIONS)
        # The threshold is low enough for a short history to open the breaker.
        breaker = CircuitBreakerOptions(volume_threshold=3)
        # A query without a response must end before ``recover`` gives up.
        options = replace(client_options(FakeNodes.around(node)), circuit_breaker=breaker, timeouts=SERVICE_TIMEOUTS)
        return CheckedSimulation(node, options, COLLECTION_IDS, make_machine=self.make_machine)

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

    def submit_document(
        self,
        kind: type[Store | Concatenate],
        key: str,
        *,
        keyspace: Keyspace = DEFAULT,
        retry_strategy: str = "default",
        **fields: object,
    ) -> Token:
        """Submit a write of a document with a new unique value, and return its token.

        Args:
            kind: ``Upsert``, ``Insert``, ``Replace``, ``Append`` or ``Prepend``.
            key: a key from ``keys``.
            fields: further fields of the operation, such as ``expiry`` or ``cas``.
        """
        if issubclass(kind, Store):
            fields = {"flags": BINARY_FLAGS, **fields}
        return self._submit(kind, keyspace, key, retry_strategy, value=self.model.unique_values.fragment(), **fields)

    def submit_count(
        self,
        kind: type[Count],
        key: str,
        *,
        creates: bool = True,
        keyspace: Keyspace = DEFAULT,
        retry_strategy: str = "default",
        **fields: object,
    ) -> Token:
        """Submit an increment or decrement with a new unique delta, and return its token.

        A history has 24 distinguishable deltas. After that, the method submits a ``Get`` instead.

        Args:
            kind: ``Increment`` or ``Decrement``.
            key: a key from ``counters``.
            creates: whether the operation creates a missing counter.
            fields: further fields of the operation, such as ``expiry``.
        """
        if not self.model.unique_values.has_counters:
            return self.submit(Get(keyspace, key), retry_strategy=retry_strategy)
        delta, initial = self.model.unique_values.counter()
        fields = {"delta": delta, "initial": initial if creates else None, **fields}
        return self._submit(kind, keyspace, key, retry_strategy, **fields)

    def submit_list(
        self,
        kind: type[Store | MutateIn],
        key: str,
        *,
        keyspace: Keyspace = DEFAULT,
        retry_strategy: str = "default",
        **fields: object,
    ) -> Token:
        """Submit a write to a document with a list of unique values, and return its token.

        The document is ``{"parts": ["<3>", "<7>"]}``. Read it with a ``Get``, or with a ``LookupIn`` of ``parts``.

        Args:
            kind: ``MutateIn`` appends a value to ``parts``, and creates a missing document; ``Upsert``, ``Insert`` and
                ``Replace`` write a list of one value.
            key: a key from ``lists``.
            fields: further fields of the operation, such as ``expiry`` or ``cas``.
        """
        fragment = self.model.unique_values.fragment()
        if issubclass(kind, Store):
            fields = {"value": unique_lists.list_document(fragment), "flags": JSON_FLAGS, **fields}
        else:
            specs = (unique_lists.list_append(fragment),)
            fields = {"specs": specs, "store_semantics": StoreSemantics.UPSERT, **fields}
        return self._submit(kind, keyspace, key, retry_strategy, **fields)

    def submit_query(
        self,
        statement: str,
        rows: Sequence[object] = (1,),
        *,
        readonly: bool = False,
        retry_strategy: str = "default",
    ) -> Token:
        """Submit a query, script its rows, and return its token. The reader must get the rows, each once and in order.

        A query that is not ``readonly`` must be executed at most once. The rows are in ``simulation.rows``.

        Args:
            statement: any text. The method adds a comment that identifies the request.
            rows: values that JSON can encode.
        """
        self._queries += 1
        mark = f"request-{self._queries:05d}"
        text, answer = f"{statement} /* {mark} */", FakeAnswer(rows=rows)
        self.simulation.nodes.script.answer(text, answer)
        request = QueryRequest(statement=text, readonly=readonly, client_context_id=mark)
        drawn = DrawnRequest(request, (b"POST", mark.encode()), tuple(answer.row_texts()))
        return self.simulation.ask(drawn, retry_strategy=self._strategies[retry_strategy], reads_slowly=False)

    def _submit(
        self, kind: type[DocumentOperation], keyspace: Keyspace, key: str, retry_strategy: str, **fields: object
    ) -> Token:
        build: Callable[..., Operation] = kind
        return self.submit(build(keyspace, key, **fields), retry_strategy=retry_strategy)

    def document(self, place: Place) -> Document | None:
        """Return the current document on the node, or None if it does not exist."""
        self.node.time_passed(self.now)
        return self.node.documents.get(BUCKET, place.key, collection_id=COLLECTION_IDS[place.keyspace])

    @rule(step=_steps.strategy())
    def step(self, step: Step) -> None:
        """Take one of the steps below."""
        take: Callable[..., None] = getattr(self, step.name)
        take(**step.arguments)

    # Start, and steps of callers and strategies.

    @initialize(step=beginnings())
    def start(self, step: Step) -> None:
        """Begin the run."""
        self.step(step=step)

    def begin(self, is_connected: bool, strike: hypothesis_strategies.Strike | None) -> None:
        """Start the client, already connected or not, with or without a pending fault."""
        self.simulation.tick()
        if is_connected:
            self.submit(Get(self.keyspace, "ada"))
            self.simulation.flow()
        if strike is not None:
            strike.arm(self.node.faults)

    def operate(self, template: OperationTemplate, retry_strategy: str) -> None:
        """Submit an operation."""
        self.submit(template.make(self.model), retry_strategy=retry_strategy)

    def exchange(self, template: OperationTemplate, retry_strategy: str) -> None:
        """Submit an operation and let all bytes arrive."""
        self.submit(template.make(self.model), retry_strategy=retry_strategy)
        self.simulation.flow()

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

    def go_silent(self, members: list[OperationTemplate]) -> None:
        """Submit operations while the node drops its replies for the key-value timeout; the breaker may open."""
        self.node.faults.always(None, drop_response())
        self.simulation.submit_together([(template.make(self.model), None) for template in members])
        self.simulation.flow_for(self.simulation.options.timeouts.kv)
        self.node.faults.clear()

    def abandon(self, position: int) -> None:
        """Abandon the operation or the query of one caller, if one waits."""
        waiting = [*(each.token for each in self.model.open), *(each.token for each in self.simulation.requests.open)]
        if waiting:
            self.simulation.abandon(Token(waiting[position % len(waiting)]))

    def decide(self, answer: str) -> None:
        """Feed the decision of the oldest consulted asynchronous strategy, if there is one."""
        if not self.simulation.consulted:
            return
        token = self.simulation.consulted.pop(0).token
        answers = {"retry": RetryAction.after(0.02), "refuse": RetryAction.no_retry()}
        raised = ZeroDivisionError("a strategy with a defect") if answer == "raise" else None
        self.simulation.feed(StrategyDecided(token, answers.get(answer), raised))

    def go_on(self, position: int) -> None:
        """Continue a call of an awaited token strategy, if any. A call that never continues is cancelled in the end."""
        thinking = self.simulation.consultations.open
        if thinking:
            self.simulation.go_on(thinking[position % len(thinking)])

    def call_off(self, finishes_late: bool) -> None:
        """Set whether cancelled token strategies still finish their calls or stay silent."""
        self.simulation.consultations.finishes_late = finishes_late

    # Steps of the network and the node.

    def move(self, position: int, size: int | None) -> None:
        """Complete a connect, or deliver bytes of one stream in one direction."""
        moves = self._moves()
        if moves:
            moves[position % len(moves)](size)

    def lose_stream(self, position: int, cause: LossCause, begun: int) -> None:
        """Break a stream while the driver is writing the next ``begun`` bytes, which never arrive."""
        streams = list(self.simulation.links)
        if not streams:
            return
        stream = streams[position % len(streams)]
        link = self.simulation.links[stream]
        if link.is_open:
            link.handed_over += min(begun, len(link.outgoing))
        self.simulation.lose(stream, cause)

    def strike(self, strike: hypothesis_strategies.Strike, is_standing: bool) -> None:
        """Queue the fault for the next matching commands or connections.

        A refusal may last until all faults are cleared.
        """
        strike.arm(self.node.faults)
        if is_standing and isinstance(strike.fault, RefuseConnection):
            self.node.faults.always(None, strike.fault)

    def stall(self, seconds: float) -> None:
        """Let time pass while nothing moves."""
        self.simulation.advance(seconds)

    def flow(self) -> None:
        """Let all bytes arrive."""
        self.simulation.flow()

    def run(self, seconds: float) -> None:
        """Let time pass while everything moves."""
        self.simulation.flow_for(seconds)

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
            if (link.incoming or link.is_hung_up) and not link.is_paused:
                moves.append(partial(simulation.deliver, stream))
        return moves

    # Liveness.

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
        """Recover, unless the run has failed already. Pass the event tape of the minimal failing example on."""
        try:
            if sys.exc_info()[0] is None:
                self.recover(is_busy=True)
        finally:
            keep = type(self).keep_tape
            if keep is not None and self._tapes is not None and sys.exc_info()[0] is not None:
                for tape in self._tapes.contents():
                    keep(type(self).__name__, tape)


class TokenStateMachine(KVStateMachine):
    """State machine whose client has a token strategy. Operations without another strategy share a small quota."""

    quota_capacity: ClassVar[int] = 40

    def make_simulation(self) -> CheckedSimulation:
        """Return a client with a token strategy and a node that are not connected yet."""
        other = super().make_simulation()
        own = CheckedStrategy(other.loans, StandardRetryStrategy(rng=MIDPOINT, quota_capacity=self.quota_capacity))
        options = replace(other.options, retry_strategy=own)
        return CheckedSimulation(other.node, options, COLLECTION_IDS, loans=other.loans, make_machine=self.make_machine)


def _is_final() -> bool:
    """Return whether Hypothesis has found the minimal failing example and runs it for the report."""
    return currently_in_test_context() and current_build_context().is_final


def _open(simulation: CheckedSimulation, stream: StreamId, size: int | None) -> None:
    simulation.open(stream)
