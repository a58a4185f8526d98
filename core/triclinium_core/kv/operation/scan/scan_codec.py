"""Codec of the operations of a range scan.

Source: kv_engine ``docs/range_scans``.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from triclinium_core.kv.operation.codec_parts import Body, Codec, MalformedResponse
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.results import Cas, Done, RangeScanCreated, Result, ScanPage, ScanResult
from triclinium_core.kv.operation.scan import scan_requests
from triclinium_core.kv.operation.scan.scan_requests import SCAN_ID_SIZE
from triclinium_core.kv.operation.scan.scans import Bounds, Sample
from triclinium_core.kv.wire.compression import MalformedCompression, inflate, inflated_size
from triclinium_core.kv.wire.constants import SNAPPY_BIT, Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.leb128 import MalformedLeb128, decode_unsigned
from triclinium_core.retry.couchbase import Status

_LIMITS = struct.Struct(">III")
"""Layout of the limits after the scan id: items, milliseconds, bytes."""
_CONTENT = struct.Struct(">I")
"""Layout of the field for the content of a page: ``_KEYS`` or ``_DOCUMENTS``."""
_KEYS, _DOCUMENTS = 0, 1
_META = struct.Struct(">IIQQB")
"""Layout of the header of one document: flags, expiry, sequence number, CAS, datatype."""

INFLATED_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""Maximum number of bytes that the client inflates when a page arrives. It inflates further documents when the caller
reads them. A page of 20 MiB may contain 400 MiB, and the caller may need none of it."""


def encode_document(document: Mapping[str, object], prefix: bytes) -> tuple[int, bytes]:
    """Return the datatype and the value of a request: ``document`` as JSON, with the collection id in hexadecimal."""
    collection_id, _ = decode_unsigned(prefix or b"\x00")
    return Datatype.JSON, msgspec.json.encode({"collection": f"{collection_id:x}", **document})


def encode_cancel(vbucket: int, scan_id: bytes, *, opaque: int) -> bytes:
    """Return the frame of the request that cancels a scan."""
    return encode_request(Opcode.RANGE_SCAN_CANCEL, opaque=opaque, status=vbucket, extras=scan_id)


def _encode_create(operation: scan_requests.RangeScanCreate) -> Body:
    document: dict[str, object] = {"key_only": operation.ids_only}
    match operation.selection:
        case Bounds(start, end, excludes_start, excludes_end):
            document["range"] = {
                "excl_start" if excludes_start else "start": b64encode(start).decode(),
                "excl_end" if excludes_end else "end": b64encode(end).decode(),
            }
        case Sample(size, seed):
            document["sampling"] = {"samples": size, "seed": seed}
    token = operation.token
    if token is not None:
        document["snapshot_requirements"] = {"vb_uuid": str(token.vbucket_uuid), "seqno": token.sequence_number}
    return Body(document=document, needs=((HelloFeature.JSON, "scan"),))


def _encode_continue(operation: scan_requests.RangeScanContinue) -> Body:
    limits = _LIMITS.pack(operation.item_limit, operation.time_limit_ms, operation.byte_limit)
    return Body(extras=operation.scan_id + limits)


def _encode_cancel(operation: scan_requests.ScanOperation) -> Body:
    return Body(extras=operation.scan_id)


def _decode_created(operation: Operation, frame: Frame, vbucket: int) -> Result:
    if len(frame.value) != SCAN_ID_SIZE:
        raise MalformedResponse(f"the id of a scan must have {SCAN_ID_SIZE} bytes, not {len(frame.value)}")
    return RangeScanCreated(frame.value)


def _decode_page(operation: scan_requests.RangeScanContinue, frame: Frame, vbucket: int) -> Result:
    items: tuple[ScanResult, ...] = ()
    if frame.value:
        read = {_KEYS: _keys, _DOCUMENTS: _documents}.get(_CONTENT.unpack(frame.extras)[0])
        if read is None:
            raise MalformedResponse(f"the page has the unknown content type {frame.extras.hex()}")
        try:
            # Stop at the first item above the limit: the page is then too large, and may have millions of items.
            items = tuple(islice(read(operation, frame.value), operation.item_limit + 1))
        except (MalformedLeb128, MalformedCompression) as error:
            raise MalformedResponse(str(error)) from error
    return ScanPage(items, frame.status == Status.RANGE_SCAN_COMPLETE)


def _keys(operation: scan_requests.RangeScanContinue, value: bytes) -> Iterator[ScanResult]:
    position = 0
    while position < len(value):
        key, position = _piece(value, position)
        yield ScanResult(_text(key), operation.transcoder)


def _documents(operation: scan_requests.RangeScanContinue, value: bytes) -> Iterator[ScanResult]:
    position, left = 0, INFLATED_SIZE_BYTES_MAX
    while position < len(value):
        flags, expiry, _, cas, datatype = _META.unpack_from(value, position)
        key, position = _piece(value, position + _META.size)
        data, position = _piece(value, position)
        # The node may compress each document, independently of the frame.
        is_deflated = bool(datatype & SNAPPY_BIT)
        if is_deflated:
            left -= inflated_size(data)
            if left >= 0:
                data, is_deflated = inflate(data), False
        yield ScanResult(_text(key), operation.transcoder, Cas(cas), flags, expiry, data, is_deflated)


def _piece(value: bytes, position: int) -> tuple[bytes, int]:
    """Return the piece of ``value`` whose length is encoded at ``position``, and the position after the piece."""
    size, taken = decode_unsigned(value[position : position + 5])
    start = position + taken
    if start + size > len(value):
        raise MalformedResponse(f"an id or a document of size {size} extends past the end of the page")
    return value[start : start + size], start + size


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _decode_done(operation: Operation, frame: Frame, vbucket: int) -> Result:
    return Done()


SCAN_CODECS: Mapping[type[Operation], Codec] = {
    scan_requests.RangeScanCreate: Codec(_encode_create, _decode_created, None),
    scan_requests.RangeScanContinue: Codec(_encode_continue, _decode_page, None),
    scan_requests.RangeScanCancel: Codec(_encode_cancel, _decode_done, None),
}
