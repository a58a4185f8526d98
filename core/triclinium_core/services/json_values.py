"""Values of the caller's as the JSON in which they travel to a service."""

from __future__ import annotations

import msgspec

from triclinium_core.errors import EncodingFailureException
from triclinium_core.transcoding.non_finite import find_non_finite


def encode_json(value: object, parameter: str) -> bytes:
    """Return ``value`` as JSON: anything that msgspec encodes, but for NaN, the infinities, and bytes as a whole.

    Args:
        parameter: its name, for the error, which does not show the value: errors are logged, and it may be a secret.

    Raises:
        EncodingFailureException: it has no form in JSON.
    """
    kind = type(value).__name__
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError("encode it as text first, such as Base64")
        encoded = msgspec.json.encode(value)
        found = find_non_finite(value, encoded)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise EncodingFailureException(f"{parameter} is {kind}, which cannot travel as JSON: {error}") from error
    if found is not None:
        path, number = found
        where = f" at {path}" if path else ""
        raise EncodingFailureException(f"{parameter} holds {number}{where}, for which JSON has no form; pass None")
    return encoded
