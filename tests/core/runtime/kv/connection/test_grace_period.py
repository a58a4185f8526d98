"""How long something may go on that should not."""

from __future__ import annotations

import pytest

from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX, GracePeriod


def test_runs_out() -> None:
    """Counted from the first try, however many follow."""
    patience = GracePeriod()
    tries = [patience.try_at(5.0), patience.try_at(10.0), patience.try_at(5.0 + SECONDS_MAX)]

    assert [False, False, True] == tries


@pytest.mark.parametrize("begin", [0.0, 0.1, 1e9 / 3])
def test_ends_at_its_end(begin: float) -> None:
    """Whoever comes back when it ends, and not later, finds that it has run out, however the sum was rounded."""
    patience = GracePeriod(0.7)
    is_early = patience.try_at(begin)

    assert (False, True) == (is_early, patience.try_at(patience.ends))


def test_rests() -> None:
    """Whoever is content begins anew."""
    patience = GracePeriod()
    patience.try_at(0.0)
    patience.reset()
    tries = [patience.try_at(SECONDS_MAX), patience.try_at(2 * SECONDS_MAX)]

    assert [False, True] == tries
