"""A task that waits for its operation."""

from __future__ import annotations

import trio

from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.requests import DocumentOperation, Operation
from triclinium_core.kv.operation.results import Result


class Waiter:
    """The current task, from the submission of ``operation`` to its settlement."""

    __slots__ = ("_error", "_result", "is_parked", "is_settled", "operation", "task")

    def __init__(self, operation: Operation | Inquiry) -> None:
        self.operation = operation
        self.task = trio.lowlevel.current_task()
        self.is_parked = False
        """Whether the task sleeps, and has to be woken."""
        self.is_settled = False
        self._result: Result | None = None
        self._error: Exception | None = None

    @property
    def key(self) -> str | None:
        """The document id, where the operation has one."""
        return self.operation.key if isinstance(self.operation, DocumentOperation) else None

    def settle(self, result: Result | None, error: Exception | None) -> None:
        """Note the outcome, and wake the task where it sleeps."""
        self.is_settled = True
        self._result, self._error = result, error
        if self.is_parked:
            trio.lowlevel.reschedule(self.task)

    def take(self) -> Result:
        """Return the result, or raise the error, leaving no reference cycle with its traceback."""
        result, error = self._result, self._error
        self._result = self._error = None
        try:
            if error is not None:
                raise error
            assert result is not None
            return result
        finally:
            del error
