"""Grace periods, during which the client tolerates a fault that may be temporary."""

from __future__ import annotations

import pytest

from triclinium_core.runtime.kv.connection.grace_period import GracePeriod


@pytest.mark.parametrize("begin", [0.0, 0.1, 1e9 / 3])
def test_ends_at_its_end(begin: float) -> None:
    """At the time ``ends`` the period is over, even if the sum was rounded."""
    patience = GracePeriod(0.7)
    is_early = patience.try_at(begin)

    assert (False, True) == (is_early, patience.try_at(patience.ends))
