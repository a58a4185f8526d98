"""The quota: within its bounds in each scope, and no larger than what is owed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy import quota
from triclinium_core.retry.smithy.quota import RetryQuota


def test_acquire_and_release() -> None:
    """What was taken is missing, and comes back."""
    bucket = RetryQuota(20)

    assert bucket.acquire(14)
    assert 6 == bucket.available()
    assert not bucket.acquire(7)
    assert 6 == bucket.available()
    assert bucket.acquire(6)
    assert 0 == bucket.available()
    bucket.release(1)
    assert 1 == bucket.available()


def test_never_above_its_capacity() -> None:
    """More than is missing cannot be given back."""
    bucket = RetryQuota(20)
    bucket.release(5)
    assert 20 == bucket.available()

    bucket.acquire(3)
    bucket.release(5)

    assert 20 == bucket.available()


def test_scopes() -> None:
    """Each has a bucket, None as well."""
    bucket = RetryQuota(20)

    bucket.acquire(14, "a")
    bucket.acquire(5, "b")
    bucket.release(9, "c")

    assert [6, 15, 20, 20] == [bucket.available(scope) for scope in ("a", "b", "c", None)]


@pytest.mark.parametrize("capacity", [0, 4])
def test_nothing_to_be_had(capacity: int) -> None:
    """A capacity below the cost refuses every time."""
    bucket = RetryQuota(capacity)

    assert [False, False] == [bucket.acquire(5), bucket.acquire(5)]
    assert capacity == bucket.available()


def test_full_buckets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scopes that owe nothing do not count against the number that is remembered."""
    monkeypatch.setattr(quota, "SCOPES_MAX", 2)
    bucket = RetryQuota(20)
    bucket.acquire(5, "owes")

    for scope in range(100):
        bucket.acquire(5, str(scope))
        bucket.release(5, str(scope))
        bucket.acquire(21, f"refused {scope}")

    assert 15 == bucket.available("owes")


def test_the_oldest_shortage_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """When too many scopes owe something, that whose last retry was longest ago is full again."""
    monkeypatch.setattr(quota, "SCOPES_MAX", 2)
    bucket = RetryQuota(20)
    for scope in ("a", "b", "a", "c"):
        bucket.acquire(5, scope)

    assert [10, 20, 15] == [bucket.available(scope) for scope in ("a", "b", "c")]


@pytest.mark.parametrize("capacity", [-1, 1.5, math.nan, True, None, "500"])
def test_a_capacity_that_is_none(capacity: Any) -> None:
    """The error names it."""
    with pytest.raises(InvalidArgumentException, match="quota_capacity=") as caught:
        RetryQuota(capacity)

    assert "quota_capacity" == caught.value.parameter
