"""Transcoders of SDK-RFC 0055, and the protocol for custom ones.

msgspec encodes and decodes JSON. As the RFC requires, decoding depends on the transcoder and on the requested type, but
not on the flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Never, Protocol, TypeVar, get_origin

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_flag
from triclinium_core.json_depth import shallow
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS
from triclinium_core.transcoding.non_finite import find_non_finite

T = TypeVar("T")

_SHOWN_CHARACTERS_MAX = 80
_OTHER_TYPES = "convert it, or pass a transcoder= that supports its type, as in docs/howto/documents_of_your_types.md"
_BYTES = (bytes, bytearray, memoryview)
"""Types for ``isinstance``. They are a tuple, because Python creates a union again at each evaluation."""


class EncodedValue(msgspec.Struct, frozen=True):
    """Bytes and flags of a document as stored."""

    data: bytes
    flags: int


class Transcoder(Protocol):
    """Converter between values and documents. Implement this protocol for other formats."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return the document for ``value``.

        Raises:
            EncodingFailureException: the transcoder cannot encode ``value``.
        """
        ...

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the value of a document as ``as_type``. With ``object``, return the natural type of the transcoder.

        Raises:
            DecodingFailureException: the transcoder cannot decode the document, or the value does not fit ``as_type``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonTranscoder:
    """Transcoder for JSON documents. This is the default.

    It refuses a value of type ``bytes``, ``bytearray`` or ``memoryview``: use ``RawJsonTranscoder`` or
    ``RawBinaryTranscoder``. Unless ``non_finite_as_null`` is True, it refuses NaN and infinities in a value, because
    JSON cannot represent them. Types that JSON lacks are converted if msgspec encodes them, for example sets and
    tuples to lists, and ``bytes`` within a value to Base64 strings.

    Raises:
        InvalidArgumentException: ``non_finite_as_null`` is neither True nor False.
    """

    non_finite_as_null: bool = False
    """Whether to store NaN and infinities as null. Readers cannot distinguish them from None."""

    def __post_init__(self) -> None:
        check_flag(self.non_finite_as_null, "non_finite_as_null")

    def encode(self, value: object, /) -> EncodedValue:
        """Return ``value`` as JSON. It may be anything that msgspec encodes, including structs and dataclasses."""
        if isinstance(value, _BYTES):
            raise errors.EncodingFailureException(
                f"JsonTranscoder cannot store {type(value).__name__}: pass transcoder=RawBinaryTranscoder() for a "
                "whole document, or RawJsonTranscoder() for JSON that is encoded already"
            )
        try:
            encoded = msgspec.json.encode(value, enc_hook=_refuse_to_encode)
            found = None if self.non_finite_as_null else find_non_finite(value, encoded)
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            raise errors.EncodingFailureException(
                f"JsonTranscoder cannot store {type(value).__name__}: {error}"
            ) from error
        if found is not None:
            path, number = found
            where = f" at {path[:_SHOWN_CHARACTERS_MAX]}" if path else ""
            raise errors.EncodingFailureException(
                f"JsonTranscoder cannot store {number}{where}, which JSON cannot represent; store None, or use "
                "JsonTranscoder(non_finite_as_null=True)"
            )
        return EncodedValue(encoded, JSON_FLAGS)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the JSON value, converted to ``as_type`` in one pass. With ``bytes``, return the JSON text itself."""
        if as_type is bytes:
            return data  # type: ignore[return-value]  # T is bytes here
        try:
            if as_type is object:
                value: T = msgspec.json.decode(shallow(data))
                return value
            return msgspec.json.decode(shallow(data), type=as_type, dec_hook=_refuse_to_decode)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            # msgspec raises TypeError for a type that it does not support.
            wanted = "JSON" if as_type is object else f"{_name(as_type)} in JSON"
            raise errors.DecodingFailureException(f"the document is not {wanted}: {error}") from error


@dataclass(frozen=True, slots=True)
class RawJsonTranscoder:
    """Transcoder for encoded JSON.

    It stores ``str`` or bytes-like values, and returns ``bytes`` by default, without parsing.
    """

    def encode(self, value: object, /) -> EncodedValue:
        """Return the bytes or text of ``value`` unchanged, with the flags for JSON."""
        if isinstance(value, str):
            return EncodedValue(_utf8(value), JSON_FLAGS)
        return EncodedValue(_bytes(value, "RawJsonTranscoder", "bytes or str"), JSON_FLAGS)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the bytes, or the text if ``as_type`` is ``str``."""
        return _raw(data, as_type, bytes, str)


@dataclass(frozen=True, slots=True)
class RawStringTranscoder:
    """Transcoder for plain text as UTF-8."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return ``value`` as UTF-8."""
        if not isinstance(value, str):
            raise errors.EncodingFailureException(f"RawStringTranscoder stores str, not {type(value).__name__}")
        return EncodedValue(_utf8(value), STRING_FLAGS)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the text of the document. ``as_type`` must be ``str`` or ``object``."""
        return _raw(data, as_type, str)


@dataclass(frozen=True, slots=True)
class RawBinaryTranscoder:
    """Transcoder that stores and returns bytes unchanged."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return the bytes of ``value`` unchanged, with the flags for binary data."""
        return EncodedValue(_bytes(value, "RawBinaryTranscoder", "bytes"), BINARY_FLAGS)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the bytes of the document. ``as_type`` must be ``bytes`` or ``object``."""
        return _raw(data, as_type, bytes)


def _refuse_to_encode(value: object) -> Never:
    raise TypeError(f"msgspec does not encode objects of type {_name(type(value))}; {_OTHER_TYPES}")


def _refuse_to_decode(kind: type, value: object) -> object:
    """Return ``value`` if it is an instance of ``kind``, as a number is of ``numbers.Number``. Else raise TypeError."""
    if isinstance(value, get_origin(kind) or kind):
        return value
    raise TypeError(f"msgspec does not decode into {_name(kind)}; {_OTHER_TYPES}")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise errors.EncodingFailureException(
            f"the text has a lone surrogate, which UTF-8 cannot encode: {error}"
        ) from error


def _bytes(value: object, transcoder: str, stored: str) -> bytes:
    if not isinstance(value, _BYTES):
        raise errors.EncodingFailureException(f"{transcoder} stores {stored}, not {type(value).__name__}")
    return bytes(value)


def _raw(data: bytes, as_type: type[T], *offered: type) -> T:
    wanted = offered[0] if as_type is object else as_type
    if wanted not in offered:
        raise errors.DecodingFailureException(
            f"a raw document can be read as {' or '.join(kind.__name__ for kind in offered)}, not {_name(as_type)}"
        )
    if wanted is bytes:
        return data  # type: ignore[return-value]  # T is bytes here
    try:
        return data.decode()  # type: ignore[return-value]  # T is str here
    except UnicodeDecodeError as error:
        raise errors.DecodingFailureException(f"the document is not UTF-8: {error}") from error


def _name(kind: object) -> str:
    return getattr(kind, "__name__", repr(kind))
