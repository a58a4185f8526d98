"""Several clients of several nodes under faults: one reproducible history per seed.

Theory of operation. A history consists of a few rounds of three parts each. In the *storm*, operations are submitted
and abandoned, bytes move in pieces, faults strike, nodes die, are cut off, slow down, keep an old map, join and leave,
and the collection is dropped and created; nodes may learn of a new collection late. Then all faults end, and the
clients must *recover* in bounded time. In the *peace* after that, the map changes only as an administrator would change
it, and prepared plans become stale. No failure has an excuse then. Every law of ``CheckedSimulation`` holds
throughout.

In most histories, callers also query services and read rows (``readers``). In half of all histories, clients and
callers may have token strategies (``token_strategies``). In half, applications may close a client during its work
(``endings``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry import couchbase
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fault_catalogue import SHORT_ERROR_MAP
from triclinium_core.testing.operation_templates import COUNTER_KINDS, TEXT_KINDS, draw_template
from triclinium_core.testing.oracle.submissions import Place, Violation
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.chaos import Chaos, late_chance
from triclinium_core.testing.simulation.endings import Endings, endings_chance, has_endings
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.simulation.logged import LoggedSimulation
from triclinium_core.testing.simulation.readers import Readers, asks_all, has_readers, readers_chance
from triclinium_core.testing.simulation.simulation import client_options
from triclinium_core.testing.simulation.token_strategies import (
    TokenStrategies,
    has_token_strategies,
    token_strategies_chance,
)
from triclinium_core.testing.tapes import MakeMachine

BUCKET = "travel"
DEFAULT, NAMED = Keyspace(BUCKET), Keyspace(BUCKET, "inventory", "hotel")
COLLECTION_IDS = {DEFAULT: 0, NAMED: 8}
TEXTS = [*(Place(DEFAULT, f"k{number}") for number in range(8)), *(Place(NAMED, f"k{number}") for number in range(3))]
COUNTERS = [Place(DEFAULT, "hits"), Place(NAMED, "hits")]

ROUNDS = 3
STORM_STEPS = 90
PEACE_STEPS = 15
BURST_MOST = 5
"""Maximum number of operations submitted at one moment."""
FREQUENT_KINDS = ("get", "upsert", "append")
"""Kinds of operations that are frequent on documents of bytes, so that there is data to lose."""
PIECES = (None, 1, 30)
"""Numbers of bytes to move in one step; None for all available bytes."""
PAUSES = ((6, 0.0), (6, 0.001), (6, 0.05), (5, 0.6), (4, 3.0), (1, 25.0))
"""Seconds to pass in one step, with their weights."""
STRATEGIES: Sequence[tuple[int, AnyRetryStrategy | None]] = (
    (12, None),
    (4, couchbase.BestEffortRetryStrategy()),
    (2, couchbase.ErrorMapRetryStrategy()),
    (1, couchbase.FailFastRetryStrategy()),
)
"""Retry strategies for an operation, with their weights; None for the client's strategy."""

SERVICE_TIMEOUTS = TimeoutOptions(query=4.0, management=4.0, search=4.0, analytics=4.0, views=4.0)
"""Timeouts of requests, short enough that a request without a response ends before the storm does."""

NODE_OPTIONS = FakeNodeOptions(
    buckets=(BUCKET,),
    collections={"_default": {"_default": 0}, NAMED.scope: {NAMED.collection: COLLECTION_IDS[NAMED]}},
    vbuckets=128,
    error_map=SHORT_ERROR_MAP,
)
"""Options with few vbuckets and a short error map, because a history has many bootstraps."""

MakeNodes = Callable[[FakeNodeOptions, int], FakeNodes]
"""Function that creates a cluster with a number of nodes: ``FakeNodes``, or a subclass with a defect."""


@dataclass(frozen=True, slots=True)
class SeedResult:
    """Result of one seed."""

    seed: int
    figures: Figures
    timeline: Sequence[str]
    law: str | None = None
    """Law that was broken, or the crash; None if every law holds."""


def play(seed: int, make_nodes: MakeNodes = FakeNodes, make_machine: MakeMachine = ClientMachine) -> SeedResult:
    """Run the history of a seed, and return its result."""
    history = ClusterHistory(seed, make_nodes, make_machine)
    law = None
    try:
        history.run()
    except AssertionError as violation:
        law = str(violation)
    except Exception as crash:
        law = f"client or node crashed: {type(crash).__name__}: {crash}"
    return SeedResult(seed, history.figures(), history.simulation.timeline, law)


class ClusterHistory:
    """One history."""

    def __init__(self, seed: int, make_nodes: MakeNodes = FakeNodes, make_machine: MakeMachine = ClientMachine) -> None:
        self._chance = Chance(seed)
        options = replace(NODE_OPTIONS, replicas=self._chance.between(0, 1))
        # Separate draws keep a history without readers independent of the code for services.
        chance = readers_chance(seed)
        reads = has_readers(seed)
        if reads:
            options = replace(options, enhanced_prepared_statements=chance.happens(0.5))
        self.nodes: FakeNodes = make_nodes(options, self._chance.between(3, 5))
        # The threshold is low enough for a short history to open the breaker.
        breaker = couchbase.CircuitBreakerOptions(volume_threshold=5)
        client = replace(client_options(self.nodes), circuit_breaker=breaker)
        if reads:
            client = replace(client, timeouts=SERVICE_TIMEOUTS)
        self.token_strategies: TokenStrategies | None = (
            TokenStrategies(token_strategies_chance(seed), lambda: self.simulation.now)
            if has_token_strategies(seed)
            else None
        )
        if self.token_strategies is not None and self.token_strategies.own is not None:
            client = replace(client, retry_strategy=self.token_strategies.own)
        self.simulation: LoggedSimulation = LoggedSimulation(
            self.nodes,
            client,
            COLLECTION_IDS,
            rng=self._chance.fork(),
            clients=self._chance.between(1, 3),
            loans=None if self.token_strategies is None else self.token_strategies.book,
            make_machine=make_machine,
        )
        self.readers: Readers | None = (
            Readers(
                self.simulation,
                chance,
                self._brought,
                bucket=BUCKET,
                scope=NAMED.scope,
                asks_all=asks_all(seed),
            )
            if reads
            else None
        )
        self.endings: Endings | None = Endings(self.simulation, endings_chance(seed)) if has_endings(seed) else None
        self.chaos: Chaos = Chaos(self.simulation, self._chance, NAMED, late_chance(seed))
        self._storm: Sequence[tuple[int, Callable[[], object]]] = (
            (45, self._ask),
            (3, self._leave),
            (25, self._pass_time),
            (6, self._move_bytes),
            (30, self.chaos.strike),
        )

    def run(self) -> None:
        """Run the history; raise ``Violation`` if a law is broken."""
        simulation = self.simulation
        simulation.note(f"nodes: {len(self.nodes)}, clients: {len(simulation.clients)}")
        simulation.tick()
        simulation.flow()
        for _ in range(ROUNDS):
            self._live_in_storm()
            self.chaos.calm_down()
            if self.readers is not None:
                self.readers.finish()
            if self.token_strategies is not None:
                self.token_strategies.finish(simulation)
            self._recover()
            self._live_in_peace()

    def _live_in_storm(self) -> None:
        """Run the storm."""
        if self.token_strategies is not None:
            self.token_strategies.begin_storm(self.simulation.consultations)
        for _ in range(STORM_STEPS):
            self._chance.weigh(self._storm)()
            if self.readers is not None:
                self.readers.live_in_storm()
            if self.token_strategies is not None:
                self.token_strategies.live_in_storm(self.simulation)
            if self.endings is not None:
                self.endings.live_in_storm()

    def figures(self) -> Figures:
        """Return the statistics so far."""
        met = [command.fault for node in self.nodes for command in node.command_log]
        struck: list[object] = [fault for fault in met if fault is not None]
        struck += [entry.fault for node in self.nodes for entry in node.request_log if entry.fault is not None]
        figures = Figures(virtual_seconds=self.simulation.now)
        figures.add(self.simulation.figures)
        figures.faults.update(_words(type(fault).__name__) for fault in struck)
        return figures

    def _ask(self) -> None:
        self.simulation.submit_together([self._draw() for _ in range(self._chance.between(1, BURST_MOST))])

    def _draw(self) -> tuple[Operation, AnyRetryStrategy | None]:
        is_counter = self._chance.happens(0.1)
        place = self._chance.choose(COUNTERS if is_counter else TEXTS)
        kinds = COUNTER_KINDS if is_counter else FREQUENT_KINDS if self._chance.happens(0.4) else TEXT_KINDS
        kind = self._chance.choose(kinds)
        operation = draw_template(kind, place, self._chance.choose).make(self.simulation.model)
        return operation, self._brought(self._chance.weigh(STRATEGIES))

    def _brought(self, drawn: AnyRetryStrategy | None) -> AnyRetryStrategy | None:
        """Return the retry strategy of a caller: a token strategy, or the Couchbase strategy ``drawn`` for it."""
        return drawn if self.token_strategies is None else self.token_strategies.strategy(drawn)

    def _leave(self) -> None:
        callers = self.simulation.model.open
        if callers:
            self.simulation.abandon(Token(self._chance.choose(callers).token))

    def _pass_time(self) -> None:
        self.simulation.flow_for(self._chance.weigh(PAUSES))

    def _move_bytes(self) -> None:
        streams = [stream for stream, link in self.simulation.links.items() if link.is_open]
        if streams:
            move = self._chance.choose((self.simulation.hand_over, self.simulation.deliver))
            stream, size = self._chance.choose(streams), self._chance.choose(PIECES)
            if move != self.simulation.deliver or not self.simulation.links[stream].is_paused:
                move(stream, size)

    def _recover(self) -> None:
        """Wait until the clients are healthy. A draw decides whether callers submit operations meanwhile."""
        self.simulation.recover(
            (lambda: self.simulation.submit_together([self._draw()])) if self._chance.happens(0.5) else None
        )
        if self.readers is not None:
            # Also wait until the breakers of the services have slept and their canaries have ended.
            breaker = self.simulation.options.circuit_breaker
            self.simulation.flow_for(breaker.sleep_window + breaker.canary_timeout)
            self.simulation.requests.recovered()
        self.simulation.note("all operations succeed again")

    def _live_in_peace(self) -> None:
        """Submit operations while the map changes, then read all documents."""
        for _ in range(PEACE_STEPS):
            self._ask()
            if self.readers is not None:
                self.readers.live_in_peace()
            self._chance.weigh(((2, self._pass_time), (1, self.simulation.flow), (1, self.chaos.rearrange)))()
        if self.readers is not None:
            self.readers.finish()
        self.simulation.submit_together([(Get(*place), None) for place in [*TEXTS, *COUNTERS]])
        self.simulation.flow_for(self.simulation.options.timeouts.kv)
        if self.simulation.requests.open:
            # The strategies of open requests may wait longer than a document operation may take.
            self.simulation.flow_for(SERVICE_TIMEOUTS.query)
        if self.simulation.open_operations:
            raise Violation(f"the number of operations open after their deadlines is {self.simulation.open_operations}")
        self.simulation.check_frames()


def _words(name: str) -> str:
    """Return the name of a fault's class in words: ``HangUpMidReply`` is "hang up mid reply"."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).lstrip()
