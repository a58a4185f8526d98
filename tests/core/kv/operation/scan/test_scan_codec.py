"""Operations of a scan on the wire, compared byte by byte."""

from __future__ import annotations

import json
import struct
from typing import Any

import cramjam
import pytest
from hypothesis import given, strategies as st

from tests.core.kv.operation.test_operation_codec import encode, parts, response
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation import results
from triclinium_core.kv.operation.codec_parts import Dialect, MalformedResponse
from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.operation.operation_codec import decode_response
from triclinium_core.kv.operation.scan.scan_codec import INFLATED_SIZE_BYTES_MAX, encode_cancel
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCancel, RangeScanContinue, RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds, Sample
from triclinium_core.kv.wire.constants import Datatype, HelloFeature
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.leb128 import encode_unsigned
from triclinium_core.retry.couchbase import Status
from triclinium_core.transcoding.flags import JSON_FLAGS
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

TRAVEL = Keyspace("travel")
RAW = RawBinaryTranscoder()
SCAN_ID = bytes(range(16))
JSON = Dialect(frozenset({HelloFeature.JSON, HelloFeature.SNAPPY, HelloFeature.COLLECTIONS}))
GO_ON = RangeScanContinue(TRAVEL, 3, SCAN_ID, 50, transcoder=RAW)
KEYS, DOCUMENTS = bytes(4), b"\0\0\0\1"
META = struct.Struct(">IIQQB")


def sent(operation: Operation, *, prefix: bytes = b"\0", dialect: Dialect = JSON) -> Frame:
    """Encode an operation, and return the frame of its request."""
    return parts(encode(operation, dialect, vbucket=3, prefix=prefix))


def decoded(operation: Operation, **fields: Any) -> results.Result:
    """Return the result of a response with these parts."""
    return decode_response(operation, response(operation.opcode, **fields), vbucket=3)


def piece(data: bytes) -> bytes:
    """Return the length of ``data`` followed by ``data``."""
    return encode_unsigned(len(data)) + data


def document(key: bytes, value: bytes, datatype: int = 0, expiry: int = 0) -> bytes:
    """Return a document as a page contains it."""
    return META.pack(JSON_FLAGS, expiry, 5, 9, datatype) + piece(key) + piece(value)


@pytest.mark.parametrize(
    ("operation", "prefix", "expected"),
    [
        (
            RangeScanCreate(TRAVEL, 3, Bounds(b"user", b"user\xff")),
            b"\0",
            {"collection": "0", "key_only": False, "range": {"start": "dXNlcg==", "end": "dXNlcv8="}},
        ),
        (
            RangeScanCreate(TRAVEL, 3, Bounds(b"a", b"b", excludes_start=True, excludes_end=True), ids_only=True),
            b"\xd5\x0a",
            {"collection": "555", "key_only": True, "range": {"excl_start": "YQ==", "excl_end": "Yg=="}},
        ),
        (
            RangeScanCreate(TRAVEL, 3, Sample(512, 18111)),
            b"",
            {"collection": "0", "key_only": False, "sampling": {"samples": 512, "seed": 18111}},
        ),
        (
            RangeScanCreate(TRAVEL, 3, Sample(1, 0), token=results.MutationToken("travel", 3, 2**64 - 1, 1000)),
            b"\0",
            {
                "collection": "0",
                "key_only": False,
                "sampling": {"samples": 1, "seed": 0},
                "snapshot_requirements": {"vb_uuid": "18446744073709551615", "seqno": 1000},
            },
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
def test_opening(operation: Operation, prefix: bytes, expected: dict[str, object]) -> None:
    """The request that opens a scan is uncompressed JSON with a hexadecimal collection id, without key and extras."""
    frame = sent(operation, prefix=prefix)

    assert expected == json.loads(frame.value)
    assert (0xDA, b"", b"", 3, Datatype.JSON) == (frame.opcode, frame.key, frame.extras, frame.status, frame.datatype)


def test_opening_needs_json() -> None:
    """Without the feature JSON, encoding a request that opens a scan raises an error that names the feature."""
    with pytest.raises(errors.FeatureNotAvailableException, match="scan needs the feature JSON"):
        sent(RangeScanCreate(TRAVEL, 3, Bounds()), dialect=Dialect())


def test_continue_and_cancel() -> None:
    """A continuation has the scan id and limits of items, milliseconds and bytes; a cancellation has the id."""
    go_on = sent(RangeScanContinue(TRAVEL, 3, SCAN_ID, 50, 15_000, 10_000))
    end = sent(RangeScanCancel(TRAVEL, 3, SCAN_ID))
    own = parts(encode_cancel(3, SCAN_ID, opaque=end.opaque))

    assert SCAN_ID + bytes.fromhex("00000032 00002710 00003a98") == go_on.extras
    assert (0xDB, b"", b"", 3) == (go_on.opcode, go_on.key, go_on.value, go_on.status)
    assert (0xDC, SCAN_ID, b"", b"", 3) == (end.opcode, end.extras, end.key, end.value, end.status)
    assert end == own


def test_responses_to_open_and_cancel() -> None:
    """The response to a request that opens a scan has the scan id; the response to a cancellation is empty."""
    assert results.RangeScanCreated(SCAN_ID) == decoded(RangeScanCreate(TRAVEL, 3, Bounds()), value=SCAN_ID)
    assert results.Done() == decoded(RangeScanCancel(TRAVEL, 3, SCAN_ID))


def test_keys() -> None:
    """A page of keys has the length of each key before it; keys that are not UTF-8 remain distinguishable."""
    long = b"k" * 128
    page = decoded(GO_ON, extras=KEYS, value=piece(b"key0") + piece(long) + piece("é".encode()) + piece(b"\xff"))

    assert isinstance(page, results.ScanPage)
    assert ["key0", "k" * 128, "é", "\udcff"] == [item.id for item in page.items]
    assert (0, 0, None, None) == (
        page.items[0].cas,
        page.items[0].expiry,
        page.items[0].data,
        page.items[0].expiry_time,
    )
    with pytest.raises(errors.InvalidArgumentException, match="ids_only=True") as caught:
        page.items[0].content_as(bytes)
    assert "ids_only" == caught.value.parameter


def test_documents() -> None:
    """Each document in a page has flags, expiry and CAS; its value may be compressed."""
    deflated = bytes(cramjam.snappy.compress_raw(b"x" * 100))
    value = document(b"a", b"1", expiry=1_750_000_000) + document(b"b", deflated, Datatype.SNAPPY)
    page = decoded(GO_ON, extras=DOCUMENTS, value=value)

    assert (
        results.ScanPage(
            (
                results.ScanResult("a", RAW, results.Cas(9), JSON_FLAGS, 1_750_000_000, b"1"),
                results.ScanResult("b", RAW, results.Cas(9), JSON_FLAGS, 0, b"x" * 100),
            ),
            is_complete=False,
        )
        == page
    )
    assert isinstance(page, results.ScanPage)
    assert (b"1", 2025, None) == (
        page.items[0].content,
        page.items[0].expiry_time.year if page.items[0].expiry_time else None,
        page.items[1].expiry_time,
    )


@pytest.mark.parametrize(
    ("status", "is_complete"),
    [(Status.SUCCESS, False), (Status.RANGE_SCAN_MORE, False), (Status.RANGE_SCAN_COMPLETE, True)],
)
@pytest.mark.parametrize("extras", [b"", KEYS, DOCUMENTS])
def test_the_end_of_a_page(status: Status, is_complete: bool, extras: bytes) -> None:
    """The status of a response marks the last page; a page without items may lack extras."""
    assert results.ScanPage((), is_complete) == decoded(GO_ON, status=status, extras=extras)


@rows(
    ("extras", "value"),
    [
        (b"", piece(b"a")),
        (b"\0\0\0\2", piece(b"a")),
        (b"\0" * 5, piece(b"a")),
        (KEYS, b"\x05a"),
        (KEYS, b"\x80\x00"),
        (KEYS, b"\x80"),
        (KEYS, b"\xff" * 6),
        (DOCUMENTS, b"a"),
        (DOCUMENTS, META.pack(0, 0, 0, 0, 0)),
        (DOCUMENTS, META.pack(0, 0, 0, 0, 0) + piece(b"a")),
        (DOCUMENTS, document(b"a", b"1")[:-1] + b""),
        (DOCUMENTS, document(b"a", b"no snappy block", Datatype.SNAPPY)),
    ],
)
def test_malformed_pages(extras: bytes, value: bytes) -> None:
    """A page with invalid bytes raises MalformedResponse."""
    with pytest.raises(MalformedResponse):
        decoded(GO_ON, extras=extras, value=value)


def test_a_page_with_too_many_items() -> None:
    """If a page has more items than requested, the decoder stops at the first excess item."""
    page = decoded(GO_ON, extras=KEYS, value=piece(b"a") * 10_000)

    assert isinstance(page, results.ScanPage)
    assert GO_ON.item_limit + 1 == len(page.items)


def test_large_documents_are_inflated_when_they_are_read() -> None:
    """The decoder inflates documents of a page up to a total size, and each later one when the caller reads it."""
    half = bytes(INFLATED_SIZE_BYTES_MAX // 2)
    deflated = bytes(cramjam.snappy.compress_raw(half))
    page = decoded(GO_ON, extras=DOCUMENTS, value=document(b"a", deflated, Datatype.SNAPPY) * 4)

    assert isinstance(page, results.ScanPage)
    assert [half, half, deflated, deflated] == [item.stored for item in page.items]
    assert [half] * 4 == [item.data for item in page.items] == [item.content for item in page.items]


def test_a_large_document_that_cannot_be_inflated() -> None:
    """A corrupt block that is not inflated with its page raises when it is read; an excessive size fails the page."""
    half = bytes(cramjam.snappy.compress_raw(bytes(INFLATED_SIZE_BYTES_MAX)))
    broken = half[:1000] + b"\xff" * (len(half) - 1000)
    pieces = document(b"a", half, Datatype.SNAPPY)
    page = decoded(GO_ON, extras=DOCUMENTS, value=pieces + document(b"b", broken, Datatype.SNAPPY))

    assert isinstance(page, results.ScanPage)
    with pytest.raises(errors.DecodingFailureException, match="'b'"):
        _ = page.items[1].data
    with pytest.raises(errors.DecodingFailureException, match="'b'"):
        _ = page.items[1].content
    with pytest.raises(MalformedResponse):
        decoded(GO_ON, extras=DOCUMENTS, value=pieces + document(b"b", b"\xff\xff\xff\xff\x0f", Datatype.SNAPPY))


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_of_another_size(size: int) -> None:
    """A scan id that does not have 16 bytes raises MalformedResponse."""
    with pytest.raises(MalformedResponse):
        decoded(RangeScanCreate(TRAVEL, 3, Bounds()), value=bytes(size))


@given(st.sampled_from([b"", KEYS, DOCUMENTS]), st.binary(max_size=200))
def test_hostile_pages(extras: bytes, value: bytes) -> None:
    """Arbitrary bytes yield a page or raise MalformedResponse."""
    try:
        page = decoded(GO_ON, status=Status.RANGE_SCAN_MORE, extras=extras, value=value)
    except MalformedResponse:
        return

    assert isinstance(page, results.ScanPage)
