"""Faults that a history draws, and the client's expected reaction to each status."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.error_map import ERROR_MAP, ErrorMapDocument
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.fakes.services.faults import (
    answer_twice,
    close_announced,
    cut_body,
    endless_body,
    endless_headers,
    gzipped,
    hang_up_mid_request,
    http_status,
    proxy_page,
    raw_answer,
    redirect,
    wrong_chunk_size,
    wrong_content_length,
)

RETRIED_STATUSES: tuple[int, ...] = (
    Status.LOCKED,
    Status.TEMPORARY_FAILURE,
    Status.UNKNOWN_COLLECTION,
    Status.SYNC_WRITE_IN_PROGRESS,
    Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS,
)
"""Statuses that a client retries by default, whatever the error map, except LOCKED after an unlock."""

RETRIED_BY_MAP: tuple[int, ...] = (
    Status.WOULD_THROTTLE,
    Status.CANCELLED,
    Status.OUT_OF_MEMORY,
    Status.BUSY,
    0x7FF0,
    0x7FF1,
    0x7FF2,
)
"""Statuses that a client retries because of their error map entry."""

HARMLESS_STATUSES: tuple[int, ...] = (
    *RETRIED_STATUSES,
    *RETRIED_BY_MAP,
    Status.NOT_SUPPORTED,
    Status.INTERNAL_ERROR,
    Status.DURABILITY_IMPOSSIBLE,
    Status.SYNC_WRITE_AMBIGUOUS,
    0x7ABC,
)
"""Statuses that reveal nothing about the document and keep the connection usable. No table has the last status."""

INVALIDATING_STATUSES: tuple[int, ...] = (Status.NO_BUCKET, Status.AUTH_STALE, Status.NOT_INITIALIZED)
"""Statuses after which the connection is unusable."""

SHORT_ERROR_MAP = ErrorMapDocument(
    ERROR_MAP.revision, tuple(row for row in ERROR_MAP.rows if row.code in HARMLESS_STATUSES + INVALIDATING_STATUSES)
)
"""Error map with the rows for the statuses above only, because a history parses the map in many bootstraps."""

REPLY_FAULTS: Sequence[Sequence[faults.Fault]] = (
    (faults.temporary_failure(),),
    (faults.drop_response(),),
    (faults.hang_up(),),
    (faults.hang_up_after_applying(),),
    [faults.hang_up_mid_reply(bytes_sent=size) for size in (12, 25, 0, 1, 23, 24, 30)],
    (faults.garble(),),
    [faults.wrong_length(announced=size) for size in (100_000, UINT32_MAX, 100, 0, 10, 40)],
    [delay(seconds) for seconds in (0.001, 0.3, 2.5, 3.0)],
)
"""Faults that may strike any command, one kind per row: a lost, late or broken reply, or a failure."""

DATA_FAULTS: Sequence[Sequence[faults.Fault]] = (
    *REPLY_FAULTS,
    (faults.locked(),),
    (faults.not_my_vbucket(), faults.not_my_vbucket(with_config=False)),
    [faults.status(code) for code in HARMLESS_STATUSES],
    [faults.status(code) for code in INVALIDATING_STATUSES],
)
"""Faults that may strike a command on a document, one kind per row. No fault misreports the document's content."""

SERVICE_FAULTS: Sequence[Sequence[faults.Fault]] = (
    (faults.drop_response(),),
    (faults.hang_up(),),
    (faults.hang_up_after_applying(),),
    [hang_up_mid_request(bytes_read=size) for size in (1, 40, 300)],
    [faults.hang_up_mid_reply(bytes_sent=size) for size in (0, 1, 12, 100, 250)],
    [cut_body(bytes_sent=size) for size in (0, 1, 100, 200)],
    (faults.garble(),),
    [wrong_content_length(announced=size) for size in (0, 10, 100_000, UINT32_MAX)],
    [wrong_chunk_size(announced=size) for size in (1, 10, 100_000, UINT32_MAX)],
    [delay(seconds) for seconds in (0.001, 0.3, 2.5, 3.0)],
    (proxy_page(), proxy_page(503)),
    [redirect("http://elsewhere.example/", code) for code in (301, 302, 307)],
    (endless_headers(),),
    (endless_body(),),
    (gzipped(), gzipped(zeros=10_000_000)),
    (close_announced(),),
    (answer_twice(), answer_twice(closes=True)),
    # A TLS alert, an HTTP/2 preface, and the beginning of the head of an HTTP/1.1 response.
    [raw_answer(data) for data in (b"\x15\x03\x03\x00\x02\x02\x28", b"PRI * HTTP/2.0\r\n\r\n", b"HTTP/1.1 2")],
    [http_status(code) for code in (429, 500, 503)],
)
"""Faults that may strike any HTTP request, one kind per row. No fault misreports what the service did."""

OWN_OPCODES: Sequence[Opcode] = (
    Opcode.HELLO,
    Opcode.GET_ERROR_MAP,
    Opcode.SASL_LIST_MECHS,
    Opcode.SASL_AUTH,
    Opcode.SASL_STEP,
    Opcode.SELECT_BUCKET,
    Opcode.GET_CLUSTER_CONFIG,
    Opcode.GET_COLLECTION_ID,
    Opcode.NOOP,
)
"""Commands of the client itself: bootstrap, configs, collection ids and keep-alive."""

TIMES: Sequence[int] = (1, 1, 2, 5)
"""Choices for the number of times that a fault strikes."""

ANY_OPCODE: Sequence[int | None] = (None,)
"""Opcode None, which means any command on a document, so that the fault almost certainly strikes."""

TARGETS: Sequence[tuple[int, tuple[Sequence[int | None], Sequence[Sequence[faults.Fault]]]]] = (
    (4, (ANY_OPCODE, REPLY_FAULTS)),
    (3, (ANY_OPCODE, DATA_FAULTS)),
    (2, (sorted(DATA_OPCODES), DATA_FAULTS)),
    (2, (OWN_OPCODES, REPLY_FAULTS)),
)
"""Commands and the faults that may strike them, with their weights."""
