"""What a server writes into the body of a response that is no success.

Source: kv_engine ``docs/ErrorMap.md`` and "Extended error" (XERROR).
"""

from __future__ import annotations

import msgspec

from triclinium_core.shown import cut

BODY_SIZE_BYTES_MAX = 64 * 1024
"""Servers write a few hundred; a larger body is of another kind."""


class ErrorDetails(msgspec.Struct, frozen=True):
    """The two texts of an extended error."""

    context: str | None = None
    ref: str | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: ErrorDetails = ErrorDetails()


_DECODER = msgspec.json.Decoder(_ErrorBody)


def parse_error_body(body: bytes) -> ErrorDetails:
    """Return the texts in ``body``; a body of any other form has none."""
    if not body.startswith(b"{") or len(body) > BODY_SIZE_BYTES_MAX:
        return ErrorDetails()
    try:
        error = _DECODER.decode(body).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ErrorDetails()
    return ErrorDetails(cut(error.context or "") or None, cut(error.ref or "") or None)
