"""The retry quota, which limits retries while a service is down.

Each scope has a bucket. A retry takes from it, a success gives back, and time alone refills nothing. Only what was taken
and not given back is kept, so a scope in which all is well costs no memory.

Source: smithy-core's ``StandardRetryQuota``, botocore's ``RetryQuota``; decision S5.
"""

from __future__ import annotations

from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import total_repr

SCOPES_MAX = 10_000
"""Scopes whose shortage is remembered. Beyond that the one that was refused or served a retry longest ago counts as full
again: scope names may come from user input, which is unbounded."""


class RetryQuota:
    """The buckets of all scopes, each between 0 and ``capacity``. For one thread, such as that of an event loop.

    Args:
        capacity: what each bucket begins with; 0 permits no retry.

    Raises:
        ArgumentError: ``capacity`` is no whole number of at least 0.
    """

    __slots__ = ("_taken", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity: int = check_integer(capacity, "quota_capacity")
        self._taken: dict[str | None, int] = {}

    @total_repr
    def __repr__(self) -> str:
        return f"<RetryQuota: capacity={self.capacity} taken={sum(self._taken.values())}>"

    @property
    def lacks(self) -> bool:
        """Whether the bucket of any scope is not full."""
        return bool(self._taken)

    def available(self, scope: str | None = None) -> int:
        """Return what is left in the bucket of ``scope``."""
        return self.capacity - self._taken.get(scope, 0)

    def acquire(self, amount: int, scope: str | None = None) -> bool:
        """Take ``amount`` and return True; where less is left, take nothing and return False."""
        taken = self._taken.pop(scope, 0)
        permitted = taken + amount <= self.capacity
        if permitted:
            taken += amount
        if taken:
            # Popped and put back, the scope is now the newest.
            self._taken[scope] = taken
            if len(self._taken) > SCOPES_MAX:
                del self._taken[next(iter(self._taken))]
        return permitted

    def release(self, amount: int, scope: str | None = None) -> None:
        """Give back ``amount``, or what the bucket of ``scope`` lacks where that is less."""
        taken = self._taken.get(scope, 0)
        if taken > amount:
            self._taken[scope] = taken - amount
        else:
            self._taken.pop(scope, None)
