"""JSON encoding of the caller's values, and decoding of values from services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from triclinium_core import errors
from triclinium_core.json_depth import shallow
from triclinium_core.services.answer.decoded_limits import TooManyParts, check_decodable
from triclinium_core.transcoding.non_finite import find_non_finite

T = TypeVar("T")


def encode_members(members: Mapping[str, object]) -> bytes:
    """Return a JSON object of members. Strings and numbers may be instances of subclasses.

    The machine calls this function for each attempt in an event handler, which must not raise. The members are checked
    when the request is created, and those that can be nested too deeply are encoded then.

    Raises:
        RecursionError: the members are nested too deeply.
    """
    return _ENCODER.encode(members)


def _plain(value: object) -> object:
    """Convert an instance of a subclass to its base type, because the encoder does not support subclasses.

    Raises:
        TypeError: the value is neither a string nor a number. It was not checked, which is a bug in this library.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    raise TypeError(f"a value of type {type(value).__name__} must be checked before it is encoded")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def encode_json(value: object, parameter: str) -> bytes:
    """Return ``value`` as JSON. It may be anything that msgspec encodes, except NaN and the infinities.

    ``value`` itself must not be bytes, a bytearray or a memoryview. Inside it, msgspec encodes these as Base64.

    Args:
        value: value to encode.
        parameter: name of the value in the error. The error does not show the value: errors are logged, and the value
            may be a secret.

    Raises:
        EncodingFailureException: the value cannot be encoded as JSON.
    """
    kind = type(value).__name__
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError("encode it as text first, such as Base64")
        encoded = msgspec.json.encode(value)
        found = find_non_finite(value, encoded)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise errors.EncodingFailureException(
            f"{parameter} is of type {kind}, and JSON cannot represent it: {error}"
        ) from error
    if found is not None:
        path, number = found
        where = f" at {path}" if path else ""
        raise errors.EncodingFailureException(
            f"{parameter} holds {number}{where}, which JSON cannot represent; pass None"
        )
    return encoded


def decode_json(encoded: bytes, as_type: type[T], what: str) -> T:
    """Return JSON from a service, converted to ``as_type`` in one pass.

    Args:
        encoded: JSON text.
        as_type: type of the result.
        what: subject and verb of the error message.

    Raises:
        DecodingFailureException: ``encoded`` is not JSON or not of the type, or exceeds the limits of
            ``check_decodable``, or msgspec does not support the type.
    """
    try:
        check_decodable(encoded)
        return msgspec.json.decode(shallow(encoded), type=as_type)
    except TooManyParts as error:
        raise errors.DecodingFailureException(f"{what} too large: {error}; use the encoded text instead") from error
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        # TypeError: msgspec does not support the type.
        name = getattr(as_type, "__name__", repr(as_type))
        raise errors.DecodingFailureException(f"{what} not {name} in JSON: {error}") from error
