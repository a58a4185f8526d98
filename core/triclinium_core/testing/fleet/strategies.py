"""The strategies that a fleet may have, by the names that the command uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triclinium_core.retry.backoff import Random, exponential
from triclinium_core.retry.strategy import (
    BestEffortRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryStrategy,
)
from triclinium_core.testing.fleet.calls import Process, ProcessWithoutRetries
from triclinium_core.testing.fleet.couchbase import CouchbaseProcess
from triclinium_core.testing.fleet.scenario import Fleet

MakeProcess = Callable[[Fleet, Random], Process]


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """A strategy, and what it does in half a sentence."""

    meaning: str
    make_process: MakeProcess
    """Called once for each process of the fleet."""


def _couchbase(make_strategy: Callable[[], RetryStrategy]) -> MakeProcess:
    return lambda fleet, rng: CouchbaseProcess(make_strategy(), fleet, rng)


STRATEGIES: Mapping[str, NamedStrategy] = {
    "none": NamedStrategy("sends once", lambda fleet, rng: ProcessWithoutRetries()),
    "best_effort": NamedStrategy(
        "retries after 1, 2, 4 … 500 ms until the deadline", _couchbase(BestEffortRetryStrategy)
    ),
    "best_effort_jittered": NamedStrategy(
        "the same delays, each drawn between 0 and itself",
        _couchbase(lambda: BestEffortRetryStrategy(exponential(jitter=1.0))),
    ),
    "fast_fail_on_terminal_error": NamedStrategy(
        "best effort that gives up where a retry cannot help", _couchbase(FastFailOnTerminalErrorRetryStrategy)
    ),
    "fail_fast": NamedStrategy("retries nothing", _couchbase(FailFastRetryStrategy)),
}
"""In the order in which they are shown."""
