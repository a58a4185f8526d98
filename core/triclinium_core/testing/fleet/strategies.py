"""The strategies that a fleet may have, by the names that the command uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.couchbase.strategy import (
    BestEffortRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
)
from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy
from triclinium_core.testing.fleet.calls import Call, MakeProcess
from triclinium_core.testing.fleet.couchbase import couchbase_clients
from triclinium_core.testing.fleet.smithy import smithy_clients


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """A strategy, and what it does in half a sentence."""

    meaning: str
    make_process: MakeProcess
    """Called once for each process of the fleet."""


STRATEGIES: Mapping[str, NamedStrategy] = {
    "none": NamedStrategy("sends once", lambda fleet, rng: Call),
    "best_effort": NamedStrategy(
        "retries after 1, 2, 4 … 500 ms until the deadline", couchbase_clients(BestEffortRetryStrategy)
    ),
    "best_effort_jittered": NamedStrategy(
        "retries after the same delays, each drawn between 0 and itself",
        couchbase_clients(lambda: BestEffortRetryStrategy(exponential(jitter=1.0))),
    ),
    "fast_fail_on_terminal_error": NamedStrategy(
        "retries as best_effort does, and gives up where a retry cannot help",
        couchbase_clients(FastFailOnTerminalErrorRetryStrategy),
    ),
    "fail_fast": NamedStrategy("retries nothing", couchbase_clients(FailFastRetryStrategy)),
    "simple": NamedStrategy(
        "makes five attempts, from 25 ms apart", smithy_clients(lambda rng, clock: SimpleRetryStrategy(rng=rng))
    ),
    "standard": NamedStrategy(
        "makes three attempts while a shared quota lasts",
        smithy_clients(lambda rng, clock: StandardRetryStrategy(rng=rng)),
    ),
    "standard_2020": NamedStrategy(
        "does as standard with the numbers of 2020, from 1 s apart",
        smithy_clients(lambda rng, clock: StandardRetryStrategy(rng=rng, numbers=AwsRetryNumbers.OF_2020)),
    ),
    "adaptive": NamedStrategy(
        "retries as standard does, and sends no more than a throttling service bears",
        smithy_clients(lambda rng, clock: AdaptiveRetryStrategy(rng=rng, clock=clock)),
    ),
}
"""In the order in which they are shown."""
