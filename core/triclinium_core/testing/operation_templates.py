"""Templates of operations on whole documents, with small, readable values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.shown import total_repr
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.transcoding.flags import BINARY_FLAGS

NOT_UNDERSTOOD: tuple[type[document_operations.DocumentOperation], ...] = (
    document_operations.GetReplica,
    LookupIn,
    LookupInReplica,
    MutateIn,
)
"""Document operations without a template, because they read old versions, or access parts of a document."""

UNDERSTOOD: tuple[type[document_operations.DocumentOperation], ...] = tuple(
    kind
    for kind in OPERATIONS
    if issubclass(kind, document_operations.DocumentOperation) and kind not in NOT_UNDERSTOOD
)
"""Operations whose effect on a document the model knows."""

_KINDS: Mapping[str, type[document_operations.DocumentOperation]] = {kind.name: kind for kind in UNDERSTOOD}

TEXT_KINDS: tuple[str, ...] = tuple(
    name for name, kind in _KINDS.items() if not issubclass(kind, document_operations.Count)
)
"""Names of the operations for documents of bytes."""
COUNTER_KINDS: tuple[str, ...] = tuple(
    name
    for name, kind in _KINDS.items()
    if not issubclass(kind, document_operations.Store | document_operations.Concatenate)
)
"""Names of the operations for counters."""

DURABLE_KINDS: tuple[str, ...] = tuple(
    name for name, kind in _KINDS.items() if issubclass(kind, document_operations.Mutation)
)
"""Names of the operations that can be durable."""
DURABILITY_LEVELS: tuple[DurabilityLevel, ...] = (*[DurabilityLevel.NONE] * 5, *DurabilityLevel)
"""Durability levels; each is repeated according to its weight."""

_FLAGS = (False, True)
_CAS = (None, 0, 0, 1)
_EXPIRIES = (0, 0, 1, 3, 3600)

_CHOICES: Mapping[type[document_operations.Operation], Mapping[str, Sequence[object]]] = {
    document_operations.Store: {"expiry": _EXPIRIES},
    document_operations.Upsert: {"flag": _FLAGS},
    document_operations.Replace: {"flag": _FLAGS, "cas": _CAS},
    document_operations.Concatenate: {"cas": _CAS},
    document_operations.Remove: {"cas": _CAS},
    document_operations.Unlock: {"cas": (0,)},
    document_operations.Count: {"flag": _FLAGS, "expiry": _EXPIRIES},
    document_operations.Touch: {"expiry": _EXPIRIES},
    document_operations.GetAndTouch: {"expiry": _EXPIRIES},
    document_operations.GetAndLock: {"lock_time": (1, 15)},
}
"""Choices for the further fields of each kind of operation, which also has the fields of its base classes."""


@dataclass(frozen=True, slots=True, repr=False)
class OperationTemplate:
    """An operation without the parts that depend on the history: its value, and a CAS returned earlier."""

    kind: str
    place: Place
    cas: int | None = None
    """Index of a known CAS value, counted from the newest; None for no CAS."""
    expiry: int = 0
    lock_time: int = 1
    flag: bool = False
    """Whether a write preserves the expiry, or a count creates the document."""
    durability: DurabilityLevel = DurabilityLevel.NONE
    """Level of a write. A level excuses results when nodes are lost, so most writes have none."""

    @total_repr
    def __repr__(self) -> str:
        of_default = self.place.keyspace.is_default_collection
        scope, collection, key = self.place.keyspace.scope, self.place.keyspace.collection, self.place.key
        path = key if of_default else f"{scope}.{collection}/{key}"
        changed = [field.name for field in fields(self)[2:] if getattr(self, field.name) != field.default]
        return f"<{' '.join([self.kind, path, *(f'{name}={getattr(self, name)!r}' for name in changed)])}>"

    def make(self, model: Model) -> document_operations.DocumentOperation:
        """Return the operation; a get replaces an unlock without a known CAS, or a count without a unique value."""
        known = model.known_cas(self.place)
        cas = known[-1 - self.cas % len(known)] if known and self.cas is not None else Cas(0)
        kind, values = _KINDS[self.kind], model.unique_values
        if (kind is document_operations.Unlock and not cas) or (
            issubclass(kind, document_operations.Count) and not values.has_counters
        ):
            kind = document_operations.Get
        values_of: dict[str, object] = {
            "flags": BINARY_FLAGS,
            "expiry": self.expiry,
            "preserve_expiry": self.flag,
            "cas": cas,
            "lock_time": self.lock_time,
            "durability": self.durability,
        }
        if issubclass(kind, document_operations.Store | document_operations.Concatenate):
            values_of["value"] = values.fragment()
        if issubclass(kind, document_operations.Count):
            values_of["delta"], initial = values.counter()
            values_of["initial"] = initial if self.flag else None
        build: Callable[..., document_operations.DocumentOperation] = kind
        return build(*self.place, **{name: values_of[name] for name in kind.__struct_fields__ if name in values_of})


def draw_template(kind: str, place: Place, choose: Callable[[Sequence[object]], object]) -> OperationTemplate:
    """Return a template of this kind with fields picked by ``choose``."""
    make: Callable[..., OperationTemplate] = OperationTemplate
    return make(kind, place, **{parameter: choose(choices) for parameter, choices in choices_of(kind).items()})


def choices_of(kind: str) -> Mapping[str, Sequence[object]]:
    """Return the choices for the further fields of an ``OperationTemplate`` of this kind, by field name."""
    return {
        parameter: choices
        for base, of_base in _CHOICES.items()
        if issubclass(_KINDS[kind], base)
        for parameter, choices in of_base.items()
    }
