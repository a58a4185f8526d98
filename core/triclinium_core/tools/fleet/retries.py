"""Retries of the clients of a scenario, as values: a strategy of the core, with its numbers.

``strategies`` makes the strategies; here is only what a scenario says of them. Seconds and attempts.
"""

from __future__ import annotations

from msgspec import Struct

from triclinium_core.checks import check_choice, check_integer, check_number, check_text
from triclinium_core.retry.smithy import Jitter
from triclinium_core.tools.fleet.times import SECONDS_MAX

ATTEMPTS_MAX = 10_000
"""Attempts of one operation. A scenario whose attempts take no time comes to its end with a limit only."""


class NoDelay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="none"):
    """Retries come at once."""


class ExponentialDelays(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="exponential"):
    """Delays that double from retry to retry, up to a ceiling. A constant delay has ``base`` equal to ``most``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    base: float
    """Before the first retry, and before jitter."""
    most: float
    jitter: Jitter = Jitter.FULL

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        check_choice(self.jitter, "jitter", Jitter)


class DecorrelatedDelays(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="decorrelated"):
    """Delays that are drawn between a base and three times the delay before, up to a ceiling.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    base: float
    most: float

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)


Delays = NoDelay | ExponentialDelays | DecorrelatedDelays
"""How long clients wait before a retry."""


class CountedRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="counted"):
    """A number of attempts, and nothing that operations share: ``SimpleRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    name: str
    max_attempts: int
    """The first among them."""
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)


class QuotaRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="quota"):
    """A number of attempts, while a quota lasts that successes refill: ``StandardRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    name: str
    max_attempts: int = 3
    quota: int = 500
    """What it begins with; a retry costs 14, and 5 after a throttling error."""
    delays: Delays = ExponentialDelays(base=0.05, most=20.0)

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)
        check_integer(self.quota, "quota")


class BudgetRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="budget"):
    """Retries while a budget lasts that first attempts feed: ``BudgetRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    name: str
    capacity: float = 5.0
    """Retries that the budget holds at most, and at first."""
    deposit: float = 0.1
    """What each first attempt adds."""
    max_attempts: int = ATTEMPTS_MAX
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_number(self.capacity, "capacity", 0.0)
        check_number(self.deposit, "deposit", 0.0)
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)


class BreakerRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="breaker"):
    """A number of attempts, while few fail: ``BreakerRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    name: str
    max_attempts: int = 4
    failure_share: float = 0.1
    """Attempts that failed, for each operation; above it nothing is retried."""
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)
        check_number(self.failure_share, "failure_share", 0.0)


class CouchbaseRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="couchbase"):
    """Retries until the deadline, as operations of a cluster do: ``BestEffortRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range, or of another type.
    """

    name: str
    first: float = 0.001
    """The delay before the first retry, and before jitter."""
    most: float = 0.5
    factor: float = 2.0
    """What each delay is multiplied by for the next."""
    jitter: float = 0.0
    """The share of each delay that is random."""

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        check_number(self.first, "first", 0.0, self.most)
        check_number(self.factor, "factor", 1.0)
        check_number(self.jitter, "jitter", 0.0, 1.0)


Retries = CountedRetries | QuotaRetries | BudgetRetries | BreakerRetries | CouchbaseRetries
"""How clients retry."""
