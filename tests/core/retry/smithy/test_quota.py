"""Quota: the limited number of scopes that it stores."""

from __future__ import annotations

import pytest

from triclinium_core.retry.smithy import quota


def test_full_buckets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scopes whose bucket is full do not count toward the maximum number of stored scopes."""
    monkeypatch.setattr(quota, "SCOPES_MAX", 2)
    bucket = quota.RetryQuota(20)
    bucket.acquire(5, "owes")

    for scope in range(100):
        bucket.acquire(5, str(scope))
        bucket.release(5, str(scope))
        bucket.acquire(21, f"refused {scope}")

    assert 15 == bucket.available("owes")


def test_the_oldest_shortage_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many scopes have missing units, the bucket of the scope retried longest ago is full again."""
    monkeypatch.setattr(quota, "SCOPES_MAX", 2)
    bucket = quota.RetryQuota(20)
    for scope in ("a", "b", "a", "c"):
        bucket.acquire(5, scope)

    assert [10, 20, 15] == [bucket.available(scope) for scope in ("a", "b", "c")]
