"""How long a peer may owe us something."""

from __future__ import annotations

from triclinium_core.kv.node.patience import SECONDS_MAX, Patience


def test_runs_out() -> None:
    """Counted from the first try, however many follow."""
    patience = Patience()
    tries = [patience.try_at(5.0), patience.try_at(10.0), patience.try_at(5.0 + SECONDS_MAX)]

    assert [False, False, True] == tries


def test_rests() -> None:
    """Whoever is content begins anew."""
    patience = Patience()
    patience.try_at(0.0)
    patience.rest()
    tries = [patience.try_at(SECONDS_MAX), patience.try_at(2 * SECONDS_MAX)]

    assert [False, True] == tries
