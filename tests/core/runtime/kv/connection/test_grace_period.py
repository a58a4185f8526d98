"""Grace periods, during which the client tolerates a fault that may be temporary."""

from __future__ import annotations

import pytest

from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX, GracePeriod


def test_runs_out() -> None:
    """A grace period starts with the first try, and further tries do not extend it."""
    patience = GracePeriod()
    tries = [patience.try_at(5.0), patience.try_at(10.0), patience.try_at(5.0 + SECONDS_MAX)]

    assert [False, False, True] == tries


@pytest.mark.parametrize("begin", [0.0, 0.1, 1e9 / 3])
def test_ends_at_its_end(begin: float) -> None:
    """At the time ``ends`` the period is over, even if the sum was rounded."""
    patience = GracePeriod(0.7)
    is_early = patience.try_at(begin)

    assert (False, True) == (is_early, patience.try_at(patience.ends))


def test_a_reset_starts_a_new_period() -> None:
    """After a reset, the period starts with the next try."""
    patience = GracePeriod()
    patience.try_at(0.0)
    patience.reset()
    tries = [patience.try_at(SECONDS_MAX), patience.try_at(2 * SECONDS_MAX)]

    assert [False, True] == tries
