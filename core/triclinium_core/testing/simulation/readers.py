"""Callers that query services in a history, and read rows fast, slowly, or partly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium_core.contract.neutral import Token
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, FailFastRetryStrategy, Service
from triclinium_core.testing.fakes.services.statements.plans import STALE_MESSAGES
from triclinium_core.testing.fault_catalogue import SERVICE_FAULTS, TIMES
from triclinium_core.testing.request_templates import DrawnRequest, RequestTemplates
from triclinium_core.testing.simulation.chance import Chance
from triclinium_core.testing.simulation.logged import LoggedSimulation

SHARE = 0.75
"""Share of the histories that have readers. All other histories use only documents."""
SALT = 57
"""Salt of the seed for the draws of readers.

With this salt, the regressions of ``simulation_command`` that concern documents have no readers.
"""

ALL_SHARE = 0.5
"""Share of the histories with readers that use search, analytics and views in addition to query and management."""
ALL_SALT = 54
"""Salt of the seed for the draw of ``asks_all``.

With this salt, the regressions of ``simulation_command`` use no services other than query and management.
"""

BURST_MOST = 3
"""Maximum number of requests submitted at one moment."""
SLOW_SHARE = 0.4
"""Share of the readers that request more rows only occasionally."""
STRATEGIES: Sequence[tuple[int, AnyRetryStrategy | None]] = (
    (8, None),
    (2, BestEffortRetryStrategy()),
    (1, FailFastRetryStrategy()),
)
"""Retry strategies for a request, with their weights; None for the client's strategy."""


SERVICES: Sequence[Service] = (Service.QUERY, Service.QUERY, Service.MANAGEMENT)
"""Targets of faults; each service is repeated according to its weight."""
ALL_SERVICES: Sequence[Service] = (*SERVICES, Service.SEARCH, Service.ANALYTICS, Service.VIEWS)

Brought = Callable[[AnyRetryStrategy | None], AnyRetryStrategy | None]


def readers_chance(seed: int) -> Chance:
    """Return the source of draws for readers, which leaves all other draws unchanged."""
    return Chance(seed ^ SALT)


def has_readers(seed: int) -> bool:
    """Return whether a history has service requests."""
    return readers_chance(seed).happens(SHARE)


def asks_all(seed: int) -> bool:
    """Return whether the readers of a history query all services."""
    return Chance(seed ^ ALL_SALT).happens(ALL_SHARE)


class Readers:
    """Callers of services in one simulation.

    Args:
        simulation: simulation of the callers.
        chance: source of their actions.
        brought: takes the strategy drawn for a request, and returns the strategy that the request uses.
        bucket: bucket in which the callers manage collections.
        scope: scope in that bucket.
        asks_all: whether the callers use search, analytics and views in addition to query and management.
    """

    def __init__(
        self,
        simulation: LoggedSimulation,
        chance: Chance,
        brought: Brought,
        *,
        bucket: str,
        scope: str,
        asks_all: bool = False,
    ) -> None:
        self._simulation = simulation
        self._chance = chance
        self._brought = brought
        self._services: Sequence[Service] = ALL_SERVICES if asks_all else SERVICES
        self._templates = RequestTemplates(
            simulation.nodes.script, chance.choose, bucket=bucket, scope=scope, asks_all=asks_all
        )
        self._waiting: dict[Token, DrawnRequest] = {}
        """Requests without a response at the last check."""
        self._peace: Sequence[tuple[int, Callable[[], object]]] = (
            (6, self._ask),
            (4, self._read_on),
            (1, self._forget_plans),
            (4, lambda: None),
        )
        self._storm: Sequence[tuple[int, Callable[[], object]]] = (
            *self._peace,
            (1, self._leave),
            (2, self._set_fault),
            (24, lambda: None),
        )

    def live_in_storm(self) -> None:
        """Take a random step while the cluster is in trouble."""
        self._chance.weigh(self._storm)()

    def live_in_peace(self) -> None:
        """Take a random step that every client survives."""
        self._chance.weigh(self._peace)()

    def finish(self) -> None:
        """Make all readers request rows until their responses end."""
        self._simulation.slow_readers.clear()
        for token in self._holding():
            self._simulation.read_on(token)

    def _ask(self) -> None:
        for token in [token for token in self._waiting if token in self._simulation.answers]:
            self._templates.made(self._waiting.pop(token))
        for _ in range(self._chance.between(1, BURST_MOST)):
            strategy = self._brought(self._chance.weigh(STRATEGIES))
            reads_slowly = self._chance.happens(SLOW_SHARE)
            drawn = self._templates.draw()
            self._waiting[self._simulation.ask(drawn, retry_strategy=strategy, reads_slowly=reads_slowly)] = drawn

    def _holding(self) -> list[Token]:
        return [Token(asked.token) for asked in self._simulation.requests.open if not asked.wants_rows]

    def _read_on(self) -> None:
        holding = self._holding()
        if holding:
            self._simulation.read_on(self._chance.choose(holding))

    def _leave(self) -> None:
        callers = self._simulation.requests.open
        if callers:
            self._simulation.abandon(Token(self._chance.choose(callers).token))

    def _forget_plans(self) -> None:
        code = self._chance.choose([None, *STALE_MESSAGES])
        if code is None:
            self._simulation.nodes.plans.forget()
        else:
            self._simulation.nodes.plans.go_stale(code)
        self._simulation.figures.changes["plans gone stale"] += 1
        self._simulation.note("-- plans of prepared statements become stale")

    def _set_fault(self) -> None:
        index = self._chance.between(0, len(self._simulation.nodes) - 1)
        service = self._chance.choose(self._services)
        fault, times = self._chance.choose(self._chance.choose(SERVICE_FAULTS)), self._chance.choose(TIMES)
        self._simulation.nodes[index].faults.next(service, fault, times)
        self._simulation.note(f"-- node {index} will apply {fault} to {times} requests to {service}")
