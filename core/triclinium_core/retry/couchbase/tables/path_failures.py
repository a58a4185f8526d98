"""What a failure at one path of a document surfaces as.

Source: SDK-RFC 0053 "LookupIn", "MutateIn"; SDK-RFC 0058, 113 to 130.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.errors import CouchbaseException
from triclinium_core.retry.couchbase.tables.kv_status import KV_STATUSES, ErrorClass, Status, status_name

OF_A_PATH: Mapping[int, ErrorClass] = {
    # A right to the document alone does not open its system attributes.
    Status.NO_ACCESS: errors.XattrNoAccessException,
}
"""Statuses that say something else of one path than of a whole document."""


@dataclass(frozen=True, slots=True)
class FailedPath:
    """A spec that failed: its place among those of the operation, counted from 0."""

    index: int
    path: str
    status: int

    def __str__(self) -> str:
        name = status_name(self.status) or "an unknown status"
        return f"specs[{self.index}], path {self.path!r}: {name} [0x{self.status:02x}]"

    @property
    def error(self) -> ErrorClass:
        """The exception that it surfaces as."""
        row = KV_STATUSES.get(self.status)
        return OF_A_PATH.get(self.status) or (row.error if row is not None else None) or CouchbaseException
