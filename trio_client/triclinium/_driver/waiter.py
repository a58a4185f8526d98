"""A task that waits for its operation."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from triclinium_core.contract.couchbase import RowsReceived
from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.requests import DocumentOperation, Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.services.request import ServiceRequest, ServiceResult


class Waiter(msgspec.Struct, eq=False, gc=False):
    """A task, from the submission of its operation to the settlement, and then what came of it.

    Trio asks what a task is woken with for nothing but ``unwrap``, so it is woken with its waiter.
    """

    token: Token
    operation: Operation | Inquiry | ServiceRequest
    task: trio.lowlevel.Task
    give_up: Callable[[Waiter], trio.lowlevel.Abort]
    """What the driver does where the task is cancelled."""
    is_parked: bool = False
    """Whether the task sleeps, and has to be woken."""
    result: Result | ServiceResult | RowsReceived | None = None
    error: Exception | None = None

    @property
    def key(self) -> str | None:
        """The document id, where the operation has one."""
        return self.operation.key if isinstance(self.operation, DocumentOperation) else None

    def abort(self, _: object) -> trio.lowlevel.Abort:
        """Have the operation given up, because the task is being cancelled."""
        return self.give_up(self)

    def unwrap(self) -> Result | ServiceResult | RowsReceived:
        """Return the result, or raise the error, leaving no reference cycle with its traceback."""
        result, error = self.result, self.error
        if result is not None:
            return result
        self.error = None
        assert error is not None, "it is settled"
        try:
            raise error
        finally:
            self.release()
            del error

    def release(self) -> None:
        """Refer to nothing any more: a traceback may keep the waiter, and the collector skips it."""
        del self.task, self.operation, self.give_up
