"""Operations that scan one vbucket: create, continue and cancel a scan.

Source: kv_engine ``docs/range_scans``.
"""

from __future__ import annotations

from typing import ClassVar

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_type
from triclinium_core.kv.operation import validation
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Operation
from triclinium_core.kv.operation.mutation_tokens import VBUCKET_MAX, check_mutation_token
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.scan.scans import Bounds, Sample
from triclinium_core.kv.topology.capabilities import BucketCapability
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.shown import shown
from triclinium_core.transcoding.transcoder import Transcoder

SCAN_ID_SIZE = 16
"""Size of a scan id in bytes."""


class VBucketOperation(Operation, frozen=True, gc=False):
    """Base of the operations on one vbucket."""

    vbucket: int

    def __post_init__(self) -> None:
        Operation.__post_init__(self)
        check_integer(self.vbucket, "vbucket", 0, VBUCKET_MAX)


class RangeScanCreate(VBucketOperation, frozen=True, gc=False):
    """Open a scan of a collection's documents in one vbucket. If the request is abandoned, the client cancels the scan.

    With a ``token``, the scan includes the mutation of the token and all earlier mutations.
    """

    name: ClassVar[str] = "range_scan_create"
    opcode: ClassVar[Opcode] = Opcode.RANGE_SCAN_CREATE
    is_scan: ClassVar[bool] = True
    capability: ClassVar[BucketCapability | None] = BucketCapability.RANGE_SCAN

    selection: Bounds | Sample
    ids_only: bool = False
    token: MutationToken | None = None

    def __post_init__(self) -> None:
        VBucketOperation.__post_init__(self)
        check_type(self.selection, "selection", Bounds, Sample)
        check_flag(self.ids_only, "ids_only")
        if self.token is not None:
            check_mutation_token(self.token, "token")


class ScanOperation(VBucketOperation, frozen=True, gc=False):
    """Base of the operations on an open scan."""

    scan_id: bytes

    def __post_init__(self) -> None:
        VBucketOperation.__post_init__(self)
        if not isinstance(self.scan_id, bytes) or len(self.scan_id) != SCAN_ID_SIZE:
            raise errors.InvalidArgumentException(
                f"scan_id={shown(self.scan_id)} must be the {SCAN_ID_SIZE} bytes of an open scan",
                parameter="scan_id",
            )


class RangeScanContinue(ScanOperation, frozen=True, gc=False):
    """Read the next documents of a scan.

    The page has at most ``item_limit`` documents and ``byte_limit`` bytes; the last document may exceed the limit of
    bytes. The page also ends after ``time_limit_ms``, but not before it has one document. 0 bytes or milliseconds mean
    no limit.
    """

    name: ClassVar[str] = "range_scan_continue"
    opcode: ClassVar[Opcode] = Opcode.RANGE_SCAN_CONTINUE
    is_scan: ClassVar[bool] = True

    item_limit: int
    byte_limit: int = 0
    time_limit_ms: int = 0
    transcoder: Transcoder = JSON_TRANSCODER

    def __post_init__(self) -> None:
        ScanOperation.__post_init__(self)
        check_integer(self.item_limit, "item_limit", 1, validation.UINT32_MAX)
        check_integer(self.byte_limit, "byte_limit", 0, validation.UINT32_MAX)
        check_integer(self.time_limit_ms, "time_limit_ms", 0, validation.UINT32_MAX)
        validation.check_transcoder(self.transcoder)


class RangeScanCancel(ScanOperation, frozen=True, gc=False):
    """Cancel a scan before its end. No caller waits for the result, and the client does not retry this operation."""

    name: ClassVar[str] = "range_scan_cancel"
    opcode: ClassVar[Opcode] = Opcode.RANGE_SCAN_CANCEL
    is_awaited: ClassVar[bool] = False


SCAN_OPERATIONS: tuple[type[Operation], ...] = (RangeScanCreate, RangeScanContinue, RangeScanCancel)
"""Operations of this module that a driver can submit."""
