"""Retry quota, which limits retries while a service is down.

Each scope has a bucket of units. A retry takes units from the bucket, and a success returns some; the passing of time
returns none. The quota stores only how many units are missing, so a scope with a full bucket takes no memory.

Source: smithy-core's ``StandardRetryQuota``, botocore's ``RetryQuota``; decision S5.
"""

from __future__ import annotations

from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import total_repr

SCOPES_MAX = 10_000
"""Maximum number of scopes that a strategy stores. User input may determine the names of scopes.
If there are more, a quota regards the bucket of the scope that requested a retry longest ago as full again."""


class RetryQuota:
    """Buckets of all scopes. Use it only in one thread, such as that of an event loop.

    Args:
        capacity: initial and maximum number of units in each bucket; 0 permits no retry.

    Raises:
        ArgumentError: ``capacity`` is not an integer of at least 0.
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
        """Whether at least one scope has a bucket that is not full."""
        return bool(self._taken)

    def available(self, scope: str | None = None) -> int:
        """Return the number of units in the bucket of ``scope``."""
        return self.capacity - self._taken.get(scope, 0)

    def acquire(self, amount: int, scope: str | None = None) -> bool:
        """Take ``amount`` units and return True. If the bucket has fewer units, take none and return False."""
        taken = self._taken.pop(scope, 0)
        permitted = taken + amount <= self.capacity
        if permitted:
            taken += amount
        if taken:
            # Removing the scope and inserting it again makes it the newest entry of the dict.
            self._taken[scope] = taken
            if len(self._taken) > SCOPES_MAX:
                del self._taken[next(iter(self._taken))]
        return permitted

    def release(self, amount: int, scope: str | None = None) -> None:
        """Return ``amount`` units to the bucket of ``scope``, up to its capacity."""
        taken = self._taken.get(scope, 0)
        if taken > amount:
            self._taken[scope] = taken - amount
        else:
            self._taken.pop(scope, None)
