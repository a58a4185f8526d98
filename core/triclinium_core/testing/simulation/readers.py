"""Callers that query services in a history, and read the rows fast, slowly, or not to the end."""

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
"""Of the histories that have readers. The others are about documents alone, as nothing but a client of documents meets."""
SALT = 57
"""Makes other draws of a seed; by this one the regressions of ``command`` about documents are histories of documents alone."""

ALL_SHARE = 0.5
"""Of those, the histories in which search, analytics and views are asked beside query and management."""
ALL_SALT = 54
"""Makes other draws of a seed; by this one the regressions of ``command`` know query and management alone."""

BURST_MOST = 3
"""Requests that are submitted at one moment."""
SLOW_SHARE = 0.4
"""Of the readers who ask for more rows only now and then."""
STRATEGIES: Sequence[tuple[int, AnyRetryStrategy | None]] = (
    (8, None),
    (2, BestEffortRetryStrategy()),
    (1, FailFastRetryStrategy()),
)
"""Retry strategies of a request, with their weights; None for the client's own."""


SERVICES: Sequence[Service] = (Service.QUERY, Service.QUERY, Service.MANAGEMENT)
"""Whose requests faults strike, as often as they do."""
ALL_SERVICES: Sequence[Service] = (*SERVICES, Service.SEARCH, Service.ANALYTICS, Service.VIEWS)

Brought = Callable[[AnyRetryStrategy | None], AnyRetryStrategy | None]


def readers_chance(seed: int) -> Chance:
    """Return the chance of a history's readers, which leaves all its other draws as they are."""
    return Chance(seed ^ SALT)


def has_readers(seed: int) -> bool:
    """Tell whether anybody asks services in a history."""
    return readers_chance(seed).happens(SHARE)


def asks_all(seed: int) -> bool:
    """Tell whether the readers of a history ask all services."""
    return Chance(seed ^ ALL_SALT).happens(ALL_SHARE)


class Readers:
    """All callers of services in one simulation.

    Args:
        simulation: in which they ask.
        chance: draws what they do.
        brought: returns the strategy of a request, given the one that was drawn for it.
        bucket: in which they manage collections.
        scope: of that bucket.
        asks_all: whether they ask search, analytics and views beside query and management.
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
        """Requests that were not answered when it was looked last."""
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
        """Let something happen while the cluster is in trouble."""
        self._chance.weigh(self._storm)()

    def live_in_peace(self) -> None:
        """Let something happen that every client gets over."""
        self._chance.weigh(self._peace)()

    def finish(self) -> None:
        """Have everybody read to the end from now on."""
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
        self._simulation.tell("-- plans of prepared statements go stale")

    def _set_fault(self) -> None:
        index = self._chance.between(0, len(self._simulation.nodes) - 1)
        service = self._chance.choose(self._services)
        fault, times = self._chance.choose(self._chance.choose(SERVICE_FAULTS)), self._chance.choose(TIMES)
        self._simulation.nodes[index].faults.next(service, fault, times)
        self._simulation.tell(f"-- node {index} will meet {times} requests to {service} with {fault}")
