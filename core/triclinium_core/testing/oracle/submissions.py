"""One operation as its caller sees it: the request, its times, and its certain effects."""

from __future__ import annotations

import math
from typing import NamedTuple

from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.subdocument.specs import StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.kv.operation.validation import RELATIVE_EXPIRY_MAX
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes.commands.index import CHANGING_OPCODES

Instant = tuple[float, int]
"""Seconds, and a count that orders events at the same time."""

NEVER: Instant = (math.inf, 0)
BEFORE_ALL: Instant = (-math.inf, 0)

CHANGES_CAS = (
    document_operations.Store,
    document_operations.Concatenate,
    document_operations.Count,
    document_operations.Remove,
    document_operations.Touch,
    document_operations.GetAndTouch,
    document_operations.GetAndLock,
    MutateIn,
)
"""Operations that change the CAS of a document."""


class Violation(AssertionError):
    """Exception for a result that no history allows, or for a forbidden action of a client, which the message names."""


class Place(NamedTuple):
    """Keyspace and key of a document."""

    keyspace: document_operations.Keyspace
    key: str


class Submission:
    """One operation on a document."""

    __slots__ = ("applied_by", "begin", "created", "is_void", "operation", "over_by", "place", "settled", "token")

    def __init__(self, token: int, operation: document_operations.DocumentOperation, begin: Instant) -> None:
        self.token: int = token
        self.operation: document_operations.DocumentOperation = operation
        self.place: Place = Place(operation.keyspace, operation.key)
        self.begin: Instant = begin
        self.settled: Instant = NEVER
        """Time at which the caller got the outcome of the operation, or left."""
        self.applied_by: Instant = NEVER
        """Time by which the operation had certainly been applied."""
        self.over_by: Instant = NEVER
        """Time by which the operation had been applied, or after which it could not be applied any more."""
        self.is_void: bool = False
        """Whether the operation has certainly not been applied and never will be."""
        self.created: bool = isinstance(operation, document_operations.Store)
        """Whether the operation, if applied, created the document: True for a store, or if a result shows it."""

    @total_repr
    def __repr__(self) -> str:
        return f"operation {self.token} ({self.operation.name} {self.operation.key!r})"

    @property
    def is_open(self) -> bool:
        """Whether the caller waits."""
        return self.settled == NEVER

    @property
    def may_change(self) -> bool:
        """Whether the operation must not be applied twice."""
        return self.operation.opcode in CHANGING_OPCODES

    @property
    def may_create(self) -> bool:
        """Whether the operation may have created the document."""
        operation = self.operation
        return (
            isinstance(operation, document_operations.Store)
            or (isinstance(operation, document_operations.Count) and operation.initial is not None)
            or (isinstance(operation, MutateIn) and operation.store_semantics is not StoreSemantics.REPLACE)
        )

    @property
    def cas(self) -> int:
        """CAS in the request; 0 for none."""
        operation = self.operation
        return (
            operation.cas
            if isinstance(
                operation,
                document_operations.Replace
                | document_operations.Remove
                | document_operations.Concatenate
                | document_operations.Unlock
                | MutateIn,
            )
            else 0
        )

    def expiry(self) -> tuple[Instant, Instant] | None:
        """Return the earliest and the latest time of the expiry that the operation may have set; None without one."""
        operation = self.operation
        if (
            not isinstance(
                operation,
                document_operations.Store
                | document_operations.Count
                | document_operations.Touch
                | document_operations.GetAndTouch,
            )
            or not operation.expiry
            or self.is_void
        ):
            return None
        if operation.expiry > RELATIVE_EXPIRY_MAX:
            return self.begin, NEVER
        return (self.begin[0] + operation.expiry, 0), (self.over_by[0] + operation.expiry, 0)

    def was_applied(self, instant: Instant) -> None:
        """Record that the operation had certainly been applied by ``instant``."""
        self.applied_by = min(self.applied_by, instant)
        self.over_by = min(self.over_by, instant)
