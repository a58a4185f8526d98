"""Values of the caller's as the JSON in which they travel to a service."""

from __future__ import annotations

import msgspec

from triclinium_core.errors import EncodingFailureException
from triclinium_core.shown import shown
from triclinium_core.transcoding.non_finite import find_non_finite


def encode_json(value: object, parameter: str) -> bytes:
    """Return ``value`` as JSON: anything that msgspec encodes, but for NaN, the infinities, and bytes as a whole.

    Args:
        parameter: its name, for the error.

    Raises:
        EncodingFailureException: it has no form in JSON.
    """
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"{type(value).__name__} is not JSON")
        encoded = msgspec.json.encode(value)
        found = find_non_finite(value, encoded)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise EncodingFailureException(f"{parameter}={shown(value)} cannot be encoded as JSON: {error}") from error
    if found is not None:
        path, number = found
        where = f" at {path}" if path else ""
        raise EncodingFailureException(f"{parameter}={shown(value)} holds {number}{where}, for which JSON has no form")
    return encoded
