"""What a fault that strikes late leaves of a reply."""

from __future__ import annotations

import pytest

from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.retry.kv_status import Status
from triclinium_core.testing.fakes.faults import (
    Delay,
    DropResponse,
    FaultAfterApplying,
    Garble,
    HangUpAfterApplying,
    HangUpMidReply,
    WrongLength,
)
from triclinium_core.testing.fakes.outcomes import Outcome, strike_after

REPLY = encode_response(0, opaque=1, status=Status.SUCCESS, value=b"abcd")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (None, Outcome(REPLY, Status.SUCCESS)),
        (Delay(2.5), Outcome(REPLY, Status.SUCCESS, delay=2.5)),
        (DropResponse(), Outcome()),
        (HangUpAfterApplying(), Outcome(hangs_up=True)),
        (HangUpMidReply(5), Outcome(REPLY[:5], hangs_up=True)),
        (HangUpMidReply(1000), Outcome(REPLY[:-1], hangs_up=True)),
        (WrongLength(7), Outcome(REPLY[:8] + bytes([0, 0, 0, 7]) + REPLY[12:])),
    ],
    ids=str,
)
def test_late_faults(fault: FaultAfterApplying | None, expected: Outcome) -> None:
    """A status is told only where a client can read it; a reply that is cut off is never whole."""
    assert expected == strike_after(REPLY, Status.SUCCESS, fault)


def test_garbled() -> None:
    """No byte is as it was."""
    outcome = strike_after(REPLY, Status.SUCCESS, Garble())

    assert len(REPLY) == len(outcome.data)
    assert not any(one == other for one, other in zip(REPLY, outcome.data, strict=True))
    assert outcome.status is None
