"""Decoder of error responses. The retry machine uses the status, the exception class and the details.

Source: kv_engine ``docs/ErrorMap.md`` "Protocol" (XERROR), ``daemon/cookie.cc`` (the JSON body),
``docs/SubDocument.md``; SDK-RFC 0053 "MutateIn", notes.
"""

from __future__ import annotations

import msgspec

from triclinium_core import errors
from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.subdocument.specs import StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_codec import MalformedOutcomes, decode_failed_mutation
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import server_duration
from triclinium_core.retry.couchbase import FailedPath, KvResponse, Status
from triclinium_core.shown import one_line

_PATH_FAILURES = (Status.SUBDOC_MULTI_PATH_FAILURE, Status.SUBDOC_MULTI_PATH_FAILURE_DELETED)


def read_failure(operation: Operation, frame: Frame, node: str) -> KvResponse:
    """Return the facts in an error response to ``operation``.

    Args:
        node: node that sent the response.

    Raises:
        MalformedResponse: the status reports a failed path, but the body does not name the path.
    """
    if isinstance(operation, MutateIn) and frame.status in _PATH_FAILURES:
        return _read_failed_path(operation, frame, node)
    details = parse_error_body(frame.value)
    duration, error = server_duration(frame.framing_extras), _error_of(operation, frame.status)
    return KvResponse(frame.status, node, details.context, details.ref, duration, error=error)


def _error_of(operation: Operation, status: int) -> type[errors.CouchbaseException] | None:
    """Return the exception class for a failure whose status alone does not determine it; None otherwise."""
    inserts = isinstance(operation, MutateIn) and operation.store_semantics is StoreSemantics.INSERT
    # RFC 0053 §MutateIn, notes: KEY_EXISTS means a CAS mismatch only if a CAS was sent, and INSERT sends none.
    return errors.DocumentExistsException if inserts and status == Status.KEY_EXISTS else None


def _read_failed_path(operation: MutateIn, frame: Frame, node: str) -> KvResponse:
    try:
        index, status = decode_failed_mutation(frame.value, operation.specs)
    except MalformedOutcomes as error:
        raise MalformedResponse(f"status 0x{frame.status:02x}, but {error}") from error
    failed = FailedPath(index, operation.specs[index].path, status)
    duration = server_duration(frame.framing_extras)
    return KvResponse(frame.status, node, server_duration=duration, failed_path=failed, error=failed.error)


BODY_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of an error body in bytes. The client does not parse a larger body. Servers send a few hundred bytes."""


class ErrorDetails(msgspec.Struct, frozen=True):
    """The two strings in the body of an extended error: its description, and its id in the server's log."""

    context: str | None = None
    ref: str | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: ErrorDetails = ErrorDetails()


_DECODER = msgspec.json.Decoder(_ErrorBody)


def parse_error_body(body: bytes) -> ErrorDetails:
    """Return the strings in ``body``, or empty details if ``body`` has another form or is too large."""
    if not body.startswith(b"{") or len(body) > BODY_SIZE_BYTES_MAX:
        return ErrorDetails()
    try:
        error = _DECODER.decode(shallow(body)).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ErrorDetails()
    return ErrorDetails(one_line(error.context or "") or None, one_line(error.ref or "") or None)
