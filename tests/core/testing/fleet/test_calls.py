"""An operation that knows no retries."""

from __future__ import annotations

import math

from triclinium_core.testing.fleet.calls import ProcessWithoutRetries
from triclinium_core.testing.fleet.service import Outcome


def test_it_is_sent_once() -> None:
    """At once, whatever becomes of it, and nobody has to hear of that."""
    call = ProcessWithoutRetries().call(1.0, 3.5)
    call.dispatch(Outcome.REFUSED, 1.0)
    call.succeed(2.0)
    call.expire(3.5)

    assert (1.0, 3.5) == (call.began, call.deadline)
    assert call.begin(1.0) is None
    assert call.fail(Outcome.REFUSED, 1.0) is None
    assert not call.resume(1.0)
    assert not call.hears_success
    assert math.inf == call.attempt_timeout
