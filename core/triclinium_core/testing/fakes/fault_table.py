"""Pending faults, by the command, request or connection that they strike."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType

from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.faults import CommandFault, Fault, RefuseConnection, ServiceFault
from triclinium_core.testing.fakes.options import HTTP_SERVICES

Target = int | Service | None
"""An opcode, an HTTP service, or None for any command on a document."""


class Faults:
    """Pending faults of one node."""

    def __init__(self) -> None:
        self._next: list[tuple[Target, CommandFault | ServiceFault]] = []
        self._always: dict[Target, CommandFault | ServiceFault] = {}
        self._next_refusals = 0
        self._always_refuses = False

    @property
    def pending(self) -> int:
        """Number of faults from ``next`` that have not struck yet."""
        return len(self._next) + self._next_refusals

    def next(self, opcode: Target, fault: Fault, times: int = 1) -> None:
        """Queue ``fault`` for the next ``times`` commands with this opcode, after the faults that are already queued.

        Args:
            opcode: opcode of the commands; None for any of ``DATA_OPCODES``, or for a refusal. An HTTP service such as
                ``Service.QUERY`` makes the fault strike requests to that service.

        Raises:
            InvalidArgumentException: ``fault`` is not a fault, or cannot strike the target; ``opcode`` is not a byte,
                ``times`` is not positive, or a refusal has an opcode.
        """
        _check(opcode, fault)
        check_integer(times, "times", 1, UINT32_MAX)
        if isinstance(fault, RefuseConnection):
            self._next_refusals += times
        else:
            self._next += [(opcode, fault)] * times

    def always(self, opcode: Target, fault: Fault) -> None:
        """Make ``fault`` strike every command with this opcode that no fault of ``next`` strikes, until ``clear``.

        An opcode or a service has one such fault; a later fault replaces it. A fault for the opcode itself takes
        precedence over a fault for None.

        Raises:
            InvalidArgumentException: ``fault`` is not a fault, or cannot strike the target; ``opcode`` is not a byte;
                or a refusal has an opcode.
        """
        _check(opcode, fault)
        if isinstance(fault, RefuseConnection):
            self._always_refuses = True
        else:
            self._always[opcode] = fault

    def clear(self) -> None:
        """Remove all faults, including refusals."""
        self._next.clear()
        self._always.clear()
        self._next_refusals = 0
        self._always_refuses = False

    def take(self, opcode: int) -> CommandFault | None:
        """Return the fault that strikes a command with this opcode now, and count it as struck."""
        fault = self._take((opcode, None) if opcode in DATA_OPCODES else (opcode,))
        assert fault is None or isinstance(fault, CommandFault)
        return fault

    def take_of(self, service: Service) -> ServiceFault | None:
        """Return the fault that strikes a request to a service now, and count it as struck."""
        fault = self._take((service,))
        assert fault is None or isinstance(fault, ServiceFault)
        return fault

    def take_refusal(self) -> bool:
        """Return whether a connection is refused now, and count the refusal as struck."""
        if self._next_refusals:
            self._next_refusals -= 1
            return True
        return self._always_refuses

    def _take(self, targets: Sequence[Target]) -> CommandFault | ServiceFault | None:
        for position, (target, fault) in enumerate(self._next):
            if target in targets:
                del self._next[position]
                return fault
        return next((self._always[target] for target in targets if target in self._always), None)


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
