"""Specs and results of sub-document operations: ``Collection.lookup_in``, ``Collection.mutate_in`` and so on."""

from __future__ import annotations

from triclinium_core.kv.operation.results import LookupInReplicaResult, LookupInResult, MutateInResult
from triclinium_core.kv.operation.subdocument.specs import (
    LookupInMacro,
    LookupInSpec,
    MutateInSpec,
    MutationMacro,
    StoreSemantics,
)

__all__ = [
    "LookupInMacro",
    "LookupInReplicaResult",
    "LookupInResult",
    "LookupInSpec",
    "MutateInResult",
    "MutateInSpec",
    "MutationMacro",
    "StoreSemantics",
]
