"""The retry quota, which limits retries while a service is down.

Each scope has a bucket. A retry takes units from it and a success returns some; time alone refills nothing. Only the
missing units are stored, so a scope with a full bucket takes no memory.

Source: smithy-core's ``StandardRetryQuota``, botocore's ``RetryQuota``; decision S5.
"""

from __future__ import annotations

from triclinium_core.retry.checks import check_integer
from triclinium_core.shown import total_repr

SCOPES_MAX = 10_000
"""Maximum number of scopes with missing units that are stored. Beyond that, the scope whose last retry, granted
or refused, is longest ago counts as full again: scope names may come from user input, which is unbounded."""


class RetryQuota:
    """Buckets of all scopes, each between 0 and ``capacity``, for use in one thread, such as that of an event loop.

    Args:
        capacity: initial and maximum content of each bucket; 0 permits no retry.

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
        """Whether the bucket of any scope is not full."""
        return bool(self._taken)

    def available(self, scope: str | None = None) -> int:
        """Return the content of the bucket of ``scope``."""
        return self.capacity - self._taken.get(scope, 0)

    def acquire(self, amount: int, scope: str | None = None) -> bool:
        """Take ``amount`` and return True. If the bucket contains less, take nothing and return False."""
        taken = self._taken.pop(scope, 0)
        permitted = taken + amount <= self.capacity
        if permitted:
            taken += amount
        if taken:
            # Removing and inserting the scope again makes it the newest.
            self._taken[scope] = taken
            if len(self._taken) > SCOPES_MAX:
                del self._taken[next(iter(self._taken))]
        return permitted

    def release(self, amount: int, scope: str | None = None) -> None:
        """Return ``amount`` to the bucket of ``scope``, up to its capacity."""
        taken = self._taken.get(scope, 0)
        if taken > amount:
            self._taken[scope] = taken - amount
        else:
            self._taken.pop(scope, None)
