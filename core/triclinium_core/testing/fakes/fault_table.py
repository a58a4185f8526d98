"""Faults of one node, by the command, request or connection that they strike.

At most one fault strikes a request. If several match, the first one of this list wins:

1. faults with a number of times, in the order in which they were added;
2. standing faults of exactly this opcode or service, the newest first;
3. standing faults of any command on a document, the newest first.

A fault matches a request if it names the request's target, has started, has not ended, and is drawn. Random numbers are
drawn in the same order, only for faults that could strike, and only until one strikes. A request counts
for ``after_requests`` of every fault of its target, even if another fault strikes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Literal, Unpack

from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.fault_conditions import (
    IMMEDIATELY,
    FaultClock,
    FaultConditions,
    Progress,
    check_conditions,
)
from triclinium_core.testing.fakes.faults import CommandFault, Fault, RefuseConnection, ServiceFault
from triclinium_core.testing.fakes.options import HTTP_SERVICES

Target = int | Service | None
"""An opcode, an HTTP service, or None for any command on a document."""

FAULTS_MAX = 10_000
"""Maximum number of faults of one node that have not ended; each takes time at every request."""

_Key = Target | Literal["connection"]
"""A target, or connection attempts."""


class PendingFault:
    """One fault of a node."""

    __slots__ = ("fault", "left", "progress", "target")

    def __init__(self, target: _Key, fault: Fault, left: int | None, progress: Progress) -> None:
        self.target: _Key = target
        self.fault: Fault = fault
        self.left: int | None = left
        """Number of times that it still strikes; None for always."""
        self.progress: Progress = progress


class Faults:
    """Pending faults of one node.

    Args:
        clock: time and randomness for the conditions. Default: the time stands still, and no fault has a probability.
    """

    def __init__(self, clock: FaultClock | None = None) -> None:
        self._clock = FaultClock() if clock is None else clock
        self._next: list[PendingFault] = []
        self._always: list[PendingFault] = []
        """Standing faults, the newest first."""

    @property
    def pending(self) -> int:
        """Number of times that the faults from ``next`` still strike, without the faults that have ended."""
        self._forget_ended()
        return sum(entry.left or 0 for entry in self._next)

    @property
    def entries(self) -> Sequence[PendingFault]:
        """Faults that have not ended, in the order in which they win."""
        self._forget_ended()
        return (*self._next, *self._always)

    def next(self, opcode: Target, fault: Fault, times: int = 1, **conditions: Unpack[FaultConditions]) -> None:
        """Queue ``fault`` for the next ``times`` commands with this opcode, after the faults that are already queued.

        Args:
            opcode: opcode of the commands; None for any of ``DATA_OPCODES``, or for a refusal. An HTTP service such as
                ``Service.QUERY`` makes the fault strike requests to that service.
            fault: the fault.
            times: number of commands that it strikes.
            conditions: ``after_requests``, ``at_seconds``, ``for_seconds`` and ``probability``. ``after_requests``
                counts the requests that the fault could strike, since this call. With ``for_seconds`` the fault may
                end before it has struck ``times`` commands.

        Raises:
            InvalidArgumentException: ``fault`` is not a fault, or cannot strike the target; ``opcode`` is not a byte,
                ``times`` is out of range, a refusal has an opcode, a condition is invalid, or there are too many
                faults.
        """
        _check(opcode, fault)
        check_integer(times, "times", 1, UINT32_MAX)
        self._next.append(self._entry(opcode, fault, times, conditions))

    def always(self, opcode: Target, fault: Fault, **conditions: Unpack[FaultConditions]) -> None:
        """Make ``fault`` strike every command with this opcode that no fault of ``next`` strikes, until it is cleared.

        A later fault of the same opcode or service takes precedence while it is active; without conditions it replaces
        the earlier ones. A fault for the opcode itself takes precedence over a fault for None.

        Args:
            opcode: as for ``next``.
            fault: the fault.
            conditions: as for ``next``.

        Raises:
            InvalidArgumentException: ``fault`` is not a fault, or cannot strike the target; ``opcode`` is not a byte; a
                refusal has an opcode, a condition is invalid, or there are too many faults.
        """
        _check(opcode, fault)
        entry = self._entry(opcode, fault, None, conditions)
        if entry.progress.conditions == IMMEDIATELY:
            self._always = [other for other in self._always if other.target != entry.target]
        self._always.insert(0, entry)

    def clear(self) -> None:
        """Remove all faults, including refusals."""
        self._next.clear()
        self._always.clear()

    def take(self, opcode: int) -> CommandFault | None:
        """Return the fault that strikes a command with this opcode now, or None. Count the fault as struck."""
        fault = self._take((opcode, None) if opcode in DATA_OPCODES else (opcode,))
        assert fault is None or isinstance(fault, CommandFault)
        return fault

    def take_of(self, service: Service) -> ServiceFault | None:
        """Return the fault that strikes a request to a service now, or None. Count the fault as struck."""
        fault = self._take((service,))
        assert fault is None or isinstance(fault, ServiceFault)
        return fault

    def take_refusal(self) -> bool:
        """Return whether a connection is refused now, and count the refusal as struck."""
        return self._take(("connection",)) is not None

    def _entry(self, opcode: Target, fault: Fault, times: int | None, given: FaultConditions) -> PendingFault:
        self._forget_ended()
        if len(self._next) + len(self._always) >= FAULTS_MAX:
            raise errors.InvalidArgumentException(
                f"the node has {FAULTS_MAX} faults, which is the maximum; clear them first", parameter="fault"
            )
        target: _Key = "connection" if isinstance(fault, RefuseConnection) else opcode
        return PendingFault(target, fault, times, Progress(check_conditions(**given), self._clock))

    def _take(self, targets: Sequence[_Key]) -> Fault | None:
        if not self._next and not self._always:
            return None
        matching = [entry for entry in self._next if entry.target in targets]
        for target in targets:
            matching += [entry for entry in self._always if entry.target == target]
        struck = next((entry for entry in matching if entry.progress.is_active and entry.progress.is_drawn()), None)
        for entry in matching:
            entry.progress.request_arrived()
        if struck is None:
            return None
        if struck.left is not None:
            struck.left -= 1
            if not struck.left:
                self._next.remove(struck)
        return struck.fault

    def _forget_ended(self) -> None:
        self._next[:] = [entry for entry in self._next if not entry.progress.is_over]
        self._always[:] = [entry for entry in self._always if not entry.progress.is_over]


def _check(opcode: Target, fault: object) -> None:
    if isinstance(fault, FunctionType):
        name = fault.__name__
        raise errors.InvalidArgumentException(f"fault={name} is a function; call it: {name}()", parameter="fault")
    if not isinstance(fault, Fault):
        raise errors.InvalidArgumentException(
            f"fault={shown(fault)} must be a fault, such as temporary_failure()", parameter="fault"
        )
    if isinstance(opcode, str) and opcode not in HTTP_SERVICES:
        raise errors.InvalidArgumentException(
            f"opcode={shown(opcode)} must be an opcode, or an HTTP service such as Service.QUERY",
            parameter="opcode",
        )
    if opcode is not None and not isinstance(opcode, str):
        check_integer(opcode, "opcode", 0, 0xFF)
    if isinstance(fault, RefuseConnection):
        if opcode is not None:
            raise errors.InvalidArgumentException("a refused connection has no opcode; pass None", parameter="opcode")
        return
    kind, what = (ServiceFault, "an HTTP request") if isinstance(opcode, str) else (CommandFault, "a KV command")
    if not isinstance(fault, kind):
        raise errors.InvalidArgumentException(f"fault={fault!r} does not apply to {what}", parameter="fault")
