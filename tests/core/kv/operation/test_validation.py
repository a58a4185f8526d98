"""Checks of arguments: an invalid argument raises an error that names the parameter."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.kv.operation import validation

NOW = 1_750_000_000.25


class Nowhere(tzinfo):
    """Time zone without an offset, whose datetimes count as naive."""

    def utcoffset(self, moment: datetime | None) -> None:
        """Return None."""

    def tzname(self, moment: datetime | None) -> None:
        """Return None."""

    def dst(self, moment: datetime | None) -> None:
        """Return None."""


def refused(parameter: str, check: Callable[..., object], *arguments: object, **options: object) -> str:
    """Check that the call raises an error about ``parameter``, and return the text of the error."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        check(*arguments, **options)
    assert parameter == caught.value.parameter
    assert parameter in str(caught.value)
    return str(caught.value)


CheckName = Callable[[object, str], str]
EVERYWHERE = (validation.DEFAULT_NAME, "_system", "a", "A-z_0%9")


@rows(
    ("check", "names", "invalid"),
    [
        (validation.check_bucket_name, (*EVERYWHERE, "travel-sample", "a.b", "x" * 100), ("x" * 101, ".", "..")),
        (validation.check_name, (*EVERYWHERE, "x" * 251), ("a.b",)),
    ],
)
def test_names(check: CheckName, names: tuple[str, ...], invalid: tuple[str, ...]) -> None:
    """A name has letters, digits, underscores, dashes and percent signs: 251 at most. A bucket's name may also have
    dots, and has 100 at most.
    """
    assert names == tuple(check(name, "where") for name in names)
    for name in invalid:
        refused("where", check, name, "where")


@rows("check", [validation.check_bucket_name, validation.check_name])
@rows(
    "name",
    ["", None, 5, 10**5000, b"travel", ["a"], "a b", "a/b", "ä", "a\n", "\0", "\ud800", "@no bucket@", "x" * 252],
)
def test_wrong_names(check: CheckName, name: object) -> None:
    """An invalid name raises an error with a short text, which names the parameter."""
    assert 250 > len(refused("where", check, name, "where"))


@pytest.mark.parametrize(("in_default_collection", "size_max"), [(True, 250), (False, 246)])
def test_key_sizes(in_default_collection: bool, size_max: int) -> None:
    """The limit of a key counts bytes of UTF-8, not characters."""
    longest = "ä" * (size_max // 2)

    assert longest.encode() == validation.check_key(longest, in_default_collection=in_default_collection)
    assert b"k" == validation.check_key("k", in_default_collection=in_default_collection)
    for wrong in ("", longest + "x", "€" * 200, "k" * 100_000):
        words = refused("key", validation.check_key, wrong, in_default_collection=in_default_collection)
        assert f"1 to {size_max}" in words
        assert 250 > len(words)


@rows("key", [None, 5, b"key", ["key"], "\ud800" * 10_000, "a\udfffb"])
def test_wrong_keys(key: object) -> None:
    """A key that is not a string, or not encodable as UTF-8, is rejected; the error text is short for any key."""
    assert 500 > len(refused("key", validation.check_key, key, in_default_collection=True))


@pytest.mark.parametrize("key", ["a\0b", " ", "\n", "\u202e", "💡", "a" * 250])
def test_any_text_is_a_key(key: str) -> None:
    """A key may contain any characters."""
    assert key.encode() == validation.check_key(key, in_default_collection=True)


@rows("value", [-1, 31, True, False, 1.0, math.nan, "1", None, b"\x01", 10**5000, -(10**5000)])
def test_wrong_integers(value: object) -> None:
    """An integer check rejects booleans, floats and numbers out of range; the error text is short for any number."""
    words = refused("delta", check_integer, value, "delta", 0, 30)

    assert "from 0 to 30" in words
    assert 100 > len(words)


@rows(
    ("expiry", "expected"),
    [
        (None, 0),
        (timedelta(microseconds=1), 1),
        (timedelta(milliseconds=999), 1),
        (timedelta(seconds=1), 1),
        (timedelta(seconds=1, microseconds=1), 2),
        (timedelta(hours=1), 3600),
        (timedelta(days=30, seconds=-1), validation.RELATIVE_EXPIRY_MAX - 1),
        (timedelta(days=30), validation.RELATIVE_EXPIRY_MAX),
        (timedelta(days=30, microseconds=1), 1_750_000_001 + validation.RELATIVE_EXPIRY_MAX + 1),
        (timedelta(days=31), 1_750_000_001 + 31 * 86_400),
        (60, 60),
        (59.5, 60),
        (31 * 86_400, 1_750_000_001 + 31 * 86_400),
        (validation.EXPIRY_SECONDS_MAX, 1_750_000_001 + validation.EXPIRY_SECONDS_MAX),
        (datetime.fromtimestamp(1_750_000_100, UTC), 1_750_000_100),
        (datetime.fromtimestamp(1_750_000_100.5, UTC), 1_750_000_101),
        (datetime.fromtimestamp(1_750_000_000.5, UTC), 1_750_000_001),
        (datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC), validation.UINT32_MAX),
        (datetime.fromtimestamp(1_750_000_100, timezone(timedelta(hours=-11))), 1_750_000_100),
    ],
)
def test_expiry(expiry: float | timedelta | datetime | None, expected: int) -> None:
    """An expiry up to 30 days is sent in seconds and a longer one as a Unix time; fractions are rounded up."""
    assert expected == validation.encode_expiry(expiry, wall_seconds=NOW)


@rows(
    ("expiry", "hint"),
    [
        (timedelta(0), "pass None"),
        (timedelta(microseconds=-1), "past"),
        (timedelta(days=-1), "past"),
        (timedelta.min, "past"),
        (timedelta.max, "2106-02-07"),
        (timedelta(days=365 * 100), "2106-02-07"),
        (datetime.fromtimestamp(1_750_000_000, UTC), "past"),
        (datetime.fromtimestamp(1_750_000_000.25, UTC), "past"),
        (datetime.fromtimestamp(1_750_000_000.125, UTC), "past"),
        (datetime.fromtimestamp(0, UTC), "past"),
        (datetime.min.replace(tzinfo=UTC), "past"),
        (datetime.max.replace(tzinfo=UTC), "2106-02-07"),
        (datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC), "2106-02-07"),
        (datetime(2030, 1, 1), "time zone"),  # noqa: DTZ001  # naive on purpose
        (datetime(2030, 1, 1, tzinfo=Nowhere()), "time zone"),
        (0, "pass None"),
        (-0.5, "past"),
        (1_750_000_100, "datetime"),
        (validation.EXPIRY_SECONDS_MAX + 1, "datetime"),
        (math.inf, "datetime"),
        (math.nan, "datetime"),
        (True, "timedelta"),
        ("60", "timedelta"),
    ],
)
def test_wrong_expiry(expiry: object, hint: str) -> None:
    """An expiry not in the future or too far in it, a Unix time, a naive datetime or a wrong type is refused."""
    assert hint in refused("expiry", validation.encode_expiry, expiry, wall_seconds=NOW)


def test_a_moment_in_january_1970() -> None:
    """A future moment that the server would read as a lifetime is rejected, with the dates that it can store."""
    moment = datetime.fromtimestamp(validation.RELATIVE_EXPIRY_MAX, UTC)

    assert "1970-02-01 to 2106-02-07" in refused("expiry", validation.encode_expiry, moment, wall_seconds=0.0)


@given(
    st.timedeltas(timedelta(microseconds=1), timedelta(days=2_000)),
    st.floats(1_600_000_000, 2_000_000_000),
)
def test_documents_expire_on_time(expiry: timedelta, wall_seconds: float) -> None:
    """A document lives at least as long as requested, and less than two seconds longer."""
    encoded = validation.encode_expiry(expiry, wall_seconds=wall_seconds)
    lives = encoded if encoded <= validation.RELATIVE_EXPIRY_MAX else encoded - wall_seconds

    assert 1 <= encoded
    assert expiry.total_seconds() - 1e-6 <= lives < expiry.total_seconds() + 2


@given(st.datetimes(datetime(2025, 6, 16), datetime(2100, 1, 1)))  # noqa: DTZ001  # made aware below
def test_moments(moment: datetime) -> None:
    """A datetime with a fraction of a second is rounded up to the next second."""
    aware = moment.replace(tzinfo=UTC)
    encoded = validation.encode_expiry(aware, wall_seconds=NOW)

    assert 0 <= encoded - aware.timestamp() < 1


@pytest.mark.parametrize(
    ("lock_time", "expected"),
    [
        (timedelta(microseconds=1), 1),
        (timedelta(seconds=1), 1),
        (timedelta(seconds=14.2), 15),
        (timedelta(seconds=29.5), 30),
        (timedelta(seconds=30), validation.LOCK_TIME_MAX),
        (15, 15),
        (14.2, 15),
    ],
)
def test_lock_time(lock_time: float | timedelta, expected: int) -> None:
    """A lock time is rounded up to whole seconds."""
    assert expected == validation.encode_lock_time(lock_time)


@pytest.mark.parametrize(
    "lock_time",
    [
        timedelta(0),
        timedelta(microseconds=-1),
        timedelta(seconds=30, microseconds=1),
        timedelta.max,
        0,
        31,
        math.nan,
        True,
        None,
        "15",
    ],
    ids=str,
)
def test_wrong_lock_time(lock_time: object) -> None:
    """A lock time must be more than 0 and at most 30 s, because the server would silently replace another one."""
    refused("lock_time", validation.encode_lock_time, lock_time)
