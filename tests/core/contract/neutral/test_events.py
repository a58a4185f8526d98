"""Events of any machine: an invalid field raises an error at their creation, and no ``repr`` shows a secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.neutral import BytesReceived, LossCause, StreamId, StreamLost, StreamOpened, TimePassed

ONE = StreamId(1)


def test_bytes_are_counted_not_shown() -> None:
    """The ``repr`` of received bytes shows only their number, because the bytes may contain documents."""
    assert "BytesReceived(stream=7, data=<6 bytes>)" == repr(BytesReceived(StreamId(7), b"secret"))


def test_the_nonce_is_not_shown() -> None:
    """The ``repr`` of an opened stream does not show the nonce of its authentication."""
    assert "StreamOpened(stream=7, 'a:1' to 'b:2')" == repr(StreamOpened(StreamId(7), "secret", "a:1", "b:2"))


@pytest.mark.parametrize(
    ("make", "parameter", "values"),
    [
        (partial(StreamOpened, ONE), "nonce", [5, "a,b", "\ud800", "é", "a\0b"]),
        (partial(StreamLost, ONE), "cause", ["reset"]),
        (partial(StreamLost, ONE, LossCause.RESET), "text", [None]),
        (partial(StreamLost, ONE, LossCause.RESET), "handed_over", ["all", -1, True]),
        (TimePassed, "unsent", [5, {ONE: -1}]),
        (TimePassed, "unread", [5]),
    ],
    ids=["nonce", "cause", "text", "handed_over", "unsent", "unread"],
)
def test_an_invalid_event_is_refused(make: Callable[..., object], parameter: str, values: Sequence[object]) -> None:
    """An invalid field of an event raises an error that names the field."""
    for value in values:
        with pytest.raises(ArgumentError) as caught:
            make(**{parameter: value})

        assert parameter == caught.value.parameter
