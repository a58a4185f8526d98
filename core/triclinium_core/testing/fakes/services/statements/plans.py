"""Prepared statements of a fake cluster, whose plans a test can make stale.

Source: SDK-RFC 0056 "ICluster#Query", ``adhoc``; query errors 4040, 4050 and 4070.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import msgspec

from triclinium_core import errors
from triclinium_core.testing.fakes.services.script import normalized

STALE_MESSAGES: Mapping[int, str] = {
    4040: "No such prepared statement: {name}",
    4050: "Unrecognizable prepared statement: {name}",
    4070: "Unable to decode prepared statement: {name}",
}
"""Error messages of the query service for unusable plans, by error code."""

PLANS_SIZE_MAX = 4 * 1024 * 1024
"""Maximum number of characters in the statements of all plans; a single plan may have more.

Above this limit, the fake cluster drops the oldest plans; a client prepares their statements again after error 4040.
"""


class FakePlan(msgspec.Struct, frozen=True):
    """One prepared statement."""

    name: str
    statement: str
    """Text as the client sent it, without PREPARE and name."""

    @property
    def encoded(self) -> str:
        """Opaque plan for clients; the fake does not decode it."""
        return base64.b64encode(self.statement.encode()).decode()


class FakePlans:
    """Plans that all nodes have. ``prepared`` counts how often statements were prepared."""

    def __init__(self) -> None:
        self.prepared: int = 0
        self._plans: dict[str, FakePlan] = {}
        self._size = 0
        """Number of characters in the statements of all plans."""
        self._stale: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def prepare(self, statement: str, name: str | None = None) -> FakePlan:
        """Create and return the plan of a statement. Without ``name``, the name depends on the statement."""
        plan = FakePlan(name or f"plan-{zlib.crc32(normalized(statement).encode()):08x}", statement)
        self.prepared += 1
        self._drop(plan.name)
        self._plans[plan.name] = plan
        self._size += len(statement)
        while self._size > PLANS_SIZE_MAX and len(self._plans) > 1:
            self._drop(next(iter(self._plans)))
        return plan

    def _drop(self, name: str) -> None:
        plan = self._plans.pop(name, None)
        self._size -= len(plan.statement) if plan is not None else 0
        self._stale.pop(name, None)

    def find(self, name: str) -> FakePlan | None:
        """Return a plan, stale or not, or None if no plan has this name."""
        return self._plans.get(name)

    def stale_code(self, name: str) -> int | None:
        """Return the code of the error with which a plan fails; None if it is usable, 4040 if it does not exist."""
        return self._stale.get(name) if name in self._plans else 4040

    def forget(self) -> None:
        """Remove all plans, like a node that restarts. Executing a removed plan causes error 4040."""
        self._plans.clear()
        self._size = 0
        self._stale.clear()

    def go_stale(self, code: int = 4050) -> None:
        """Make every current plan fail with an error until its statement is prepared again.

        Raises:
            InvalidArgumentException: ``code`` is not in ``STALE_MESSAGES``.
        """
        if code not in STALE_MESSAGES:
            codes = ", ".join(map(str, STALE_MESSAGES))
            raise errors.InvalidArgumentException(f"code={code!r} must be one of {codes}", parameter="code")
        self._stale = dict.fromkeys(self._plans, code)
