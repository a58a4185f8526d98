"""Plans of prepared statements, as far as they are remembered.

The query service plans a statement once and gives the plan a name. A node that has forgotten it, or has another idea of
it by now, says so (4040, 4050, 4070), and the statement is prepared again.

Source: SDK-RFC 0056 ``adhoc``; SDK-RFC 0049 "Response Code Retry List".
"""

from __future__ import annotations

from collections import OrderedDict

from triclinium_core.services.query.request import PlanKey, PreparedPlan

PLANS_MAX = 5000
"""As many as other Couchbase clients remember. A program has dozens of statements; one that writes values into them has
any number, each planned in vain."""
PLANS_SIZE_MAX = 32 * 1024 * 1024
"""Characters of all plans together; those of one statement are some thousands."""


class PreparedPlans:
    """The plans that a client remembers, bounded: the least recently used is forgotten first."""

    def __init__(self, *, count_max: int = PLANS_MAX, size_max: int = PLANS_SIZE_MAX) -> None:
        self._count_max = count_max
        self._size_max = size_max
        self._plans: OrderedDict[PlanKey, PreparedPlan] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._plans)

    def remember(self, key: PlanKey, plan: PreparedPlan) -> None:
        """Keep a plan, in place of an older one."""
        self.forget(key)
        self._plans[key] = plan
        self._size += _size(key, plan)
        # The newest stays, however large: without it a statement would be prepared again and again.
        while len(self._plans) > 1 and (len(self._plans) > self._count_max or self._size > self._size_max):
            self._size -= _size(*self._plans.popitem(last=False))

    def recall(self, key: PlanKey) -> PreparedPlan | None:
        """Return the plan of a statement; None if it has to be prepared."""
        if key not in self._plans:
            return None
        self._plans.move_to_end(key)
        return self._plans[key]

    def forget(self, key: PlanKey) -> None:
        """Drop the plan of a statement, if there is one."""
        plan = self._plans.pop(key, None)
        if plan is not None:
            self._size -= _size(key, plan)


def _size(key: PlanKey, plan: PreparedPlan) -> int:
    return len(key.statement) + len(plan.name) + len(plan.encoded_plan or "")
