"""Functions that create faults for commands."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX
from triclinium_core.testing.fakes.faults import delay, hang_up_mid_reply, not_my_vbucket, status, wrong_length


@rows(
    ("make", "parameter"),
    [
        (lambda: delay(-0.1), "seconds"),
        (lambda: delay(math.inf), "seconds"),
        (lambda: delay(math.nan), "seconds"),
        (lambda: delay(10**5000), "seconds"),
        (lambda: delay("x"), "seconds"),  # type: ignore[arg-type]
        (lambda: delay(True), "seconds"),
        (lambda: status(-1), "code"),
        (lambda: status(0x10000), "code"),
        (lambda: status(0, datatype=0x100), "datatype"),
        (lambda: status("LOCKED"), "code"),  # type: ignore[arg-type]
        (lambda: status(0, body=bytes(VALUE_SIZE_MAX + 1)), "body"),
        (lambda: status(0, body="{}"), "body"),  # type: ignore[arg-type]
        (lambda: not_my_vbucket(1), "with_config"),  # type: ignore[arg-type]
        (lambda: hang_up_mid_reply(bytes_sent=-1), "bytes_sent"),
        (lambda: wrong_length(announced=0x1_0000_0000), "announced"),
    ],
)
def test_refuses_invalid_arguments(make: Callable[[], object], parameter: str) -> None:
    """An argument of the wrong type or out of range raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter
