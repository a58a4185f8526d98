"""Operations on parts of a document in a replica.

Source: SDK-RFC 0076 "Sending the request": document flag 0x20.
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core.checks import check_integer
from triclinium_core.kv.operation import validation
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn
from triclinium_core.kv.topology.capabilities import BucketCapability


class LookupInReplica(LookupIn, frozen=True, gc=False):
    """Read parts of a document in a replica, by default in the first replica."""

    name: ClassVar[str] = "lookup_in_replica"
    capability: ClassVar[BucketCapability | None] = BucketCapability.SUBDOC_REPLICA_READ
    is_for_active_copy: ClassVar[bool] = False

    replica: int = 1

    def __post_init__(self) -> None:
        LookupIn.__post_init__(self)
        check_integer(self.replica, "replica", 1, validation.REPLICAS_MAX)

    @property
    def copy(self) -> int:
        """Number of the replica."""
        return self.replica
