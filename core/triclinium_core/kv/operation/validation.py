"""Checks of user arguments, before the client sends the operation."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, in_seconds, is_number, is_seconds
from triclinium_core.kv.wire.constants import KEY_SIZE_MAX, KEY_SIZE_MAX_IN_COLLECTION, VALUE_SIZE_MAX
from triclinium_core.shown import shown
from triclinium_core.transcoding import transcoder

DEFAULT_NAME = "_default"
"""Name of the default scope and of the default collection of every bucket."""

UINT32_MAX = 0xFFFF_FFFF
UINT64_MAX = 0xFFFF_FFFF_FFFF_FFFF
RELATIVE_EXPIRY_MAX = 30 * 24 * 60 * 60
"""Maximum relative expiry in seconds. The server interprets a larger number as an absolute Unix time."""
EXPIRY_SECONDS_MAX = 50 * 365 * 24 * 60 * 60
"""Maximum expiry in seconds if the caller passes a number: fifty years. A current Unix time is larger; without this
bound, it would be treated as a duration."""
REPLICAS_MAX = 3
"""Maximum number of replicas of a bucket."""
LOCK_TIME_MAX = 30
"""Maximum lock time in seconds. The client refuses a longer lock time, because the server would silently replace it
with a default."""

_OUR_TRANSCODERS = frozenset(
    {
        transcoder.JsonTranscoder,
        transcoder.RawJsonTranscoder,
        transcoder.RawStringTranscoder,
        transcoder.RawBinaryTranscoder,
    }
)
_NAME = re.compile(r"[A-Za-z0-9_\-%]{1,251}")
_BUCKET_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.\-%]{1,100}")


def check_bucket_name(value: object, parameter: str = "bucket") -> str:
    """Return ``value`` if it is a valid name of a bucket.

    Raises:
        InvalidArgumentException: ``value`` is not a string, is empty, is too long, has invalid characters, or consists
            of one or two dots.
    """
    rule = "1 to 100 characters from A-Z a-z 0-9 _ . - %, and neither '.' nor '..'"
    return _check_name(value, parameter, _BUCKET_NAME, rule)


def check_name(value: object, parameter: str) -> str:
    """Return ``value`` if it is a valid name of a scope or collection.

    Raises:
        InvalidArgumentException: ``value`` is not a string, is empty, is too long or has invalid characters.
    """
    return _check_name(value, parameter, _NAME, "1 to 251 characters from A-Z a-z 0-9 _ - %")


def _check_name(value: object, parameter: str, pattern: re.Pattern[str], rule: str) -> str:
    if not isinstance(value, str) or not value:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(value)} must be a string that is not empty", parameter=parameter
        )
    if not pattern.fullmatch(value):
        raise errors.InvalidArgumentException(f"{parameter}={_cut(value)} must be {rule}", parameter=parameter)
    return value


def check_key(value: object, *, in_default_collection: bool) -> bytes:
    """Return a document id encoded in UTF-8.

    Raises:
        InvalidArgumentException: ``value`` is not a string, is empty, cannot be encoded in UTF-8 or is too long.
    """
    if not isinstance(value, str):
        raise errors.InvalidArgumentException(
            f"key={shown(value)} must be a string, not {type(value).__name__}", parameter="key"
        )
    try:
        key = value.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidArgumentException(
            f"key={_cut(value)} has a lone surrogate, which UTF-8 cannot encode", parameter="key"
        ) from error
    size_max = KEY_SIZE_MAX if in_default_collection else KEY_SIZE_MAX_IN_COLLECTION
    if not 1 <= len(key) <= size_max:
        raise errors.InvalidArgumentException(
            f"key={_cut(value)} has {len(key)} bytes of UTF-8; it must have 1 to {size_max}", parameter="key"
        )
    return key


def check_value(data: object) -> bytes:
    """Return ``data`` if it is a valid encoded document.

    Raises:
        InvalidArgumentException: ``data`` is not bytes.
        ValueTooLargeException: ``data`` is larger than the server can store.
    """
    if not isinstance(data, bytes):
        raise errors.InvalidArgumentException(f"value must be bytes, not {type(data).__name__}", parameter="value")
    if len(data) > VALUE_SIZE_MAX:
        raise errors.ValueTooLargeException(
            f"value has {len(data)} bytes; the server stores at most {VALUE_SIZE_MAX}; split the value over several "
            "documents"
        )
    return data


def check_encode_seconds(value: object) -> None:
    """Check the encoding time of a payload.

    Raises:
        InvalidArgumentException: ``value`` is not a finite number of seconds, or is below 0.
    """
    if not is_seconds(value):
        raise errors.InvalidArgumentException(
            f"encode_seconds={shown(value)} must be a finite number of seconds, 0 or more", parameter="encode_seconds"
        )


def check_transcoder(value: object) -> None:
    """Check that ``value`` is a transcoder.

    Raises:
        InvalidArgumentException: ``value`` lacks ``encode`` or ``decode``, or is a class.
    """
    if type(value) in _OUR_TRANSCODERS:
        return
    has_both = callable(getattr(value, "encode", None)) and callable(getattr(value, "decode", None))
    if isinstance(value, type) or not has_both:
        raise errors.InvalidArgumentException(
            f"transcoder={shown(value)} must be a Transcoder, such as JsonTranscoder()", parameter="transcoder"
        )


def encode_expiry(expiry: Duration | datetime | None, *, wall_seconds: float) -> int:
    """Return an expiry in its wire format: 0 for never, a number of seconds up to 30 days, or else a Unix time.

    Fractions of a second are rounded up, because the server interprets 0 as "never".

    Args:
        expiry: lifetime of the document in seconds or as a ``timedelta``, or the moment at which it expires, as a
            ``datetime`` with a time zone. None for never.
        wall_seconds: current Unix time.

    Raises:
        InvalidArgumentException: ``expiry`` has a wrong type, has no time zone, is not in the future, is a date that
            the server cannot store, or is a number above ``EXPIRY_SECONDS_MAX``.

    Source: SDK-RFC 0053 "Insert", "Upsert", option ``Expiry``; kv_engine ``docs/Document.md`` "Expiry time",
        ``daemon/mc_time.cc``.
    """
    if expiry is None:
        return 0
    if isinstance(expiry, datetime):
        if expiry.utcoffset() is None:
            raise errors.InvalidArgumentException(
                f"expiry={shown(expiry)} has no time zone; give it one, such as datetime.timezone.utc",
                parameter="expiry",
            )
        moment = math.ceil(expiry.timestamp())
        if expiry.timestamp() <= wall_seconds:
            raise errors.InvalidArgumentException(
                f"expiry={expiry!r} is now or in the past; pass a later time", parameter="expiry"
            )
    elif isinstance(expiry, timedelta) or is_number(expiry):
        lifetime = in_seconds(expiry)
        if lifetime <= 0:
            # Refuse 0 too: to the server it means "never", but to the caller it means immediately.
            raise errors.InvalidArgumentException(
                f"expiry={expiry!r} is now or in the past; pass None for a document that never expires",
                parameter="expiry",
            )
        if not isinstance(expiry, timedelta) and not lifetime <= EXPIRY_SECONDS_MAX:
            raise errors.InvalidArgumentException(
                f"expiry={shown(expiry)} must be at most fifty years, in seconds; pass a datetime for a point in time",
                parameter="expiry",
            )
        seconds = math.ceil(lifetime)
        if seconds <= RELATIVE_EXPIRY_MAX:
            return seconds
        moment = math.ceil(wall_seconds) + seconds
    else:
        raise errors.InvalidArgumentException(
            f"expiry={shown(expiry)} must be a number of seconds, a timedelta, a datetime or None", parameter="expiry"
        )
    if not RELATIVE_EXPIRY_MAX < moment <= UINT32_MAX:
        raise errors.InvalidArgumentException(
            f"expiry={expiry!r} falls outside 1970-02-01 to 2106-02-07, the dates that the server can store",
            parameter="expiry",
        )
    return moment


def encode_lock_time(lock_time: Duration) -> int:
    """Return a lock time in seconds, rounded up.

    Raises:
        InvalidArgumentException: ``lock_time`` has a wrong type, is not above 0, or exceeds 30 seconds.
    """
    return math.ceil(check_duration(lock_time, "lock_time", above_zero=True, most=LOCK_TIME_MAX))


def _cut(name: str) -> str:
    return repr(name) if len(name) <= 40 else f"{name[:40]!r}…"
