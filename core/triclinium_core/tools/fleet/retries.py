"""Retries of a scenario's clients, as values: each value selects a strategy of the core, and has its parameters.

This module has only the parameters, in seconds and attempts; ``strategies`` creates the strategies.
"""

from __future__ import annotations

from msgspec import Struct

from triclinium_core.checks import check_choice, check_integer, check_number, check_text
from triclinium_core.retry.smithy import Jitter
from triclinium_core.tools.fleet.times import SECONDS_MAX

ATTEMPTS_MAX = 10_000
"""Maximum number of attempts of one operation. Without it, a scenario whose attempts take no time would never end."""


class NoDelay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="none"):
    """Immediate retries."""


class ExponentialDelays(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="exponential"):
    """Delays that double from retry to retry, up to a ceiling. A constant delay has ``base`` equal to ``most``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    base: float
    """Delay before the first retry, without jitter."""
    most: float
    jitter: Jitter = Jitter.FULL

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        check_choice(self.jitter, "jitter", Jitter)


class DecorrelatedDelays(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="decorrelated"):
    """Delays that are drawn between a base and three times the previous delay, up to a ceiling.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    base: float
    most: float

    def __post_init__(self) -> None:
        check_number(self.base, "base", 0.0, SECONDS_MAX)
        check_number(self.most, "most", 0.0, SECONDS_MAX)


Delays = NoDelay | ExponentialDelays | DecorrelatedDelays
"""Delays before retries."""


class CountedRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="counted"):
    """A limited number of attempts, without shared state: ``SimpleRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    name: str
    max_attempts: int
    """Maximum number of attempts, including the first."""
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)


class QuotaRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="quota"):
    """A limited number of attempts, and a quota that successes refill: ``StandardRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    name: str
    max_attempts: int = 3
    quota: int = 500
    """Initial and maximum number of units. A retry costs 14, or 5 after a throttling error."""
    delays: Delays = ExponentialDelays(base=0.05, most=20.0)

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)
        check_integer(self.quota, "quota")


class BudgetRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="budget"):
    """Retries within a budget to which first attempts contribute: ``BudgetRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    name: str
    capacity: float = 5.0
    """Initial and maximum budget. A retry takes 1, and needs more than 1."""
    deposit: float = 0.1
    """Amount that each first attempt adds to the budget."""
    max_attempts: int = ATTEMPTS_MAX
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_number(self.capacity, "capacity", 0.0)
        check_number(self.deposit, "deposit", 0.0)
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)


class BreakerRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="breaker"):
    """A limited number of attempts, but no retries while many attempts fail: ``BreakerRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    name: str
    max_attempts: int = 4
    failure_share: float = 0.1
    """Number of failed attempts per operation above which the strategy permits no retries."""
    delays: Delays = NoDelay()

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_integer(self.max_attempts, "max_attempts", 1, ATTEMPTS_MAX)
        check_number(self.failure_share, "failure_share", 0.0)


class CouchbaseRetries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="couchbase"):
    """Retries until the deadline: ``BestEffortRetryStrategy``.

    Raises:
        InvalidArgumentException: a value is out of range or of the wrong type.
    """

    name: str
    first: float = 0.001
    """Delay before the first retry, without jitter."""
    most: float = 0.5
    factor: float = 2.0
    """Ratio of each delay to the previous one."""
    jitter: float = 0.0
    """Random share of each delay."""

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_number(self.most, "most", 0.0, SECONDS_MAX)
        check_number(self.first, "first", 0.0, self.most)
        check_number(self.factor, "factor", 1.0)
        check_number(self.jitter, "jitter", 0.0, 1.0)


Retries = CountedRetries | QuotaRetries | BudgetRetries | BreakerRetries | CouchbaseRetries
"""Any kind of retries."""
