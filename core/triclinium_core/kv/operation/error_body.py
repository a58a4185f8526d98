"""What a server writes into the body of a response that is no success.

Source: kv_engine ``docs/ErrorMap.md`` and "Extended error" (XERROR).
"""

from __future__ import annotations

import msgspec

TEXT_SIZE_MAX = 1000
"""Characters kept of a server's text; longer ones are cut."""


class ErrorDetails(msgspec.Struct, frozen=True):
    """The two texts of an extended error."""

    context: str | None = None
    ref: str | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: ErrorDetails = ErrorDetails()


_DECODER = msgspec.json.Decoder(_ErrorBody)


def parse_error_body(body: bytes) -> ErrorDetails:
    """Return the texts in ``body``; a body of any other form has none."""
    if not body.startswith(b"{"):
        return ErrorDetails()
    try:
        error = _DECODER.decode(body).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ErrorDetails()
    return ErrorDetails(_cut(error.context), _cut(error.ref))


def _cut(text: str | None) -> str | None:
    return text[:TEXT_SIZE_MAX] if text is not None else None
