"""Commands of a fake node for range scans.

Source: kv_engine docs/range_scans, daemon/protocol/mcbp/range_scan_create_executor.cc.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections import deque
from collections.abc import Sequence
from functools import partial
from struct import Struct
from typing import Annotated

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import KEY_SIZE_MAX, Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Part, Request
from triclinium_core.testing.fakes.store.buckets import STORAGE_BACKENDS
from triclinium_core.testing.fakes.store.state import ClientConnection, FakeScan, Found, NodeState

LIFETIME_SECONDS = 180.0
"""Seconds after which a node closes an incomplete scan."""

SCANS_MAX = 24
"""Maximum number of open scans per node; the node refuses a further scan as busy."""

ITEMS_OF_A_REPLY = 8
"""Maximum number of items per reply; a larger page is sent in several replies."""

_SCAN_ID_SIZE = 16
_LIMITS = Struct(">III")
"""Items, milliseconds, bytes."""
_CONTENT = Struct(">I")
"""0 for keys only, 1 for documents."""


class _Range(msgspec.Struct):
    start: str | None = None
    excl_start: str | None = None
    end: str | None = None
    excl_end: str | None = None


class _Sampling(msgspec.Struct):
    samples: int
    seed: int = 0


class _Snapshot(msgspec.Struct):
    vb_uuid: str
    seqno: int
    seqno_exists: bool = False


class _Scan(msgspec.Struct):
    collection: str = "0"
    key_only: bool = False
    range: _Range | None = None
    sampling: _Sampling | None = None
    snapshot_requirements: _Snapshot | None = None
    name: Annotated[str, msgspec.Meta(max_length=50)] | None = None


def _create(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    try:
        wanted = msgspec.json.decode(shallow(request.value), type=_Scan)
        collection_id = int(wanted.collection, 16)
    except (ValueError, RecursionError) as error:
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"the scan is invalid: {error}") from error
    if wanted.range is not None and wanted.sampling is not None:
        raise CommandRefused(Status.INVALID_ARGUMENTS, "a scan has a range or a sampling, not both")
    collections = node.collections_of(connection.bucket)
    if collection_id not in collections:
        raise collections.unknown(Status.UNKNOWN_COLLECTION)
    bucket, vbucket = request.address.bucket, request.address.vbucket
    known = node.cluster.buckets.get(bucket)
    if known is not None and known.mode not in STORAGE_BACKENDS:
        raise CommandRefused(Status.NOT_SUPPORTED, "the bucket has no storage on disk to scan")
    found = node.documents.in_vbucket(bucket, vbucket, collection_id)
    if wanted.snapshot_requirements is not None:
        _check_snapshot(node, request, wanted.snapshot_requirements, found)
    if wanted.range is not None:
        start = _term(wanted.range.start, wanted.range.excl_start, "start")
        found = _within(found, start, _term(wanted.range.end, wanted.range.excl_end, "end"))
    is_empty = not found
    if wanted.sampling is not None:
        found = _sampled(found, wanted.sampling.samples, wanted.sampling.seed & UINT32_MAX)
    if is_empty:
        raise CommandRefused(Status.KEY_NOT_FOUND)
    scans = node.open_scans()
    if len(scans) >= SCANS_MAX:
        raise CommandRefused(Status.BUSY, f"{SCANS_MAX} scans are already open, the maximum")
    scan_id = node.new_scan_id()
    scans[scan_id] = FakeScan(vbucket, wanted.key_only, deque(found), node.documents.now + LIFETIME_SECONDS)
    return CommandAnswer(value=scan_id)


def _within(found: Sequence[Found], start: tuple[bytes, bool], end: tuple[bytes, bool]) -> list[Found]:
    """Return the documents within a range. Each end is a key, with a flag that excludes the key."""

    def lies_within(key: bytes) -> bool:
        behind_start = key > start[0] or (key == start[0] and not start[1])
        before_end = key < end[0] or (key == end[0] and not end[1])
        return behind_start and before_end

    return [(key, document) for key, document in found if lies_within(key)]


def _sampled(found: Sequence[Found], samples: int, seed: int) -> list[Found]:
    """Return about ``samples`` documents, or all if there are no more. ``seed`` determines the choice."""
    if len(found) <= samples:
        return list(found)
    return [each for each in found if zlib.crc32(each[0], seed) * len(found) < samples * 0x1_0000_0000]


def _term(included: str | None, excluded: str | None, name: str) -> tuple[bytes, bool]:
    """Return one end of a range, and whether the range excludes it."""
    if (included is None) == (excluded is None):
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"a range must have either {name} or excl_{name}")
    given = name if included is not None else f"excl_{name}"
    try:
        term = b64decode(included if included is not None else str(excluded), validate=True)
    except ValueError as error:
        raise CommandRefused(Status.INVALID_ARGUMENTS, f"{given} is not base64: {error}") from error
    if len(term) > KEY_SIZE_MAX:
        raise CommandRefused(
            Status.INVALID_ARGUMENTS, f"{given} has {len(term)} bytes; a key has at most {KEY_SIZE_MAX}"
        )
    return term, excluded is not None


def _check_snapshot(node: NodeState, request: Request, wanted: _Snapshot, found: list[Found]) -> None:
    bucket, vbucket = request.address.bucket, request.address.vbucket
    if wanted.vb_uuid != str(node.documents.histories.uuid_of(vbucket)):
        raise CommandRefused(Status.VBUCKET_UUID_NOT_EQUAL)
    if wanted.seqno > node.documents.sequence_number(bucket, vbucket):
        raise CommandRefused(Status.TEMPORARY_FAILURE)
    if wanted.seqno_exists and all(document.sequence_number != wanted.seqno for _, document in found):
        raise CommandRefused(Status.NOT_STORED)


def _continue(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    scan = _open_scan(node, request)
    item_limit, _, byte_limit = _LIMITS.unpack_from(request.extras, _SCAN_ID_SIZE)
    items = scan.take(item_limit, byte_limit, node.documents.unix_expiry)
    extras = _CONTENT.pack(not scan.ids_only)
    *before, last = [
        b"".join(items[start : start + ITEMS_OF_A_REPLY]) for start in range(0, len(items), ITEMS_OF_A_REPLY)
    ] or [b""]
    if not scan.left:
        del node.scans[request.extras[:_SCAN_ID_SIZE]]
    return CommandAnswer(
        Status.RANGE_SCAN_MORE if scan.left else Status.RANGE_SCAN_COMPLETE,
        extras=extras,
        value=last,
        before=tuple(CommandAnswer(extras=extras, value=value) for value in before),
    )


def _cancel(node: NodeState, connection: ClientConnection, request: Request) -> CommandAnswer:
    _open_scan(node, request)
    del node.scans[request.extras]
    return CommandAnswer()


def _open_scan(node: NodeState, request: Request) -> FakeScan:
    scan = node.open_scans().get(request.extras[:_SCAN_ID_SIZE])
    if scan is None or scan.vbucket != request.address.vbucket:
        raise CommandRefused(Status.KEY_NOT_FOUND)
    return scan


_command = partial(Command, needs=Needs.VBUCKET)

SCAN_COMMANDS: tuple[Command, ...] = (
    _command(Opcode.RANGE_SCAN_CREATE, _create, value=Part.REQUIRED, takes_json=True),
    _command(Opcode.RANGE_SCAN_CONTINUE, _continue, extras_sizes=(_SCAN_ID_SIZE + _LIMITS.size,)),
    _command(Opcode.RANGE_SCAN_CANCEL, _cancel, extras_sizes=(_SCAN_ID_SIZE,)),
)
