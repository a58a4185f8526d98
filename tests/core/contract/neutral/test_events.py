"""Events of any machine: an invalid field raises an error at their creation, and no ``repr`` shows a secret."""

from __future__ import annotations

from collections.abc import Callable

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
    ("kind", "fields", "parameter"),
    [
        (StreamOpened, {"nonce": 5}, "nonce"),
        (StreamOpened, {"nonce": "a,b"}, "nonce"),
        (StreamOpened, {"nonce": "\ud800"}, "nonce"),
        (StreamOpened, {"nonce": "é"}, "nonce"),
        (StreamOpened, {"nonce": "a\0b"}, "nonce"),
        (StreamLost, {"cause": "reset"}, "cause"),
        (StreamLost, {"cause": LossCause.RESET, "text": None}, "text"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": "all"}, "handed_over"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": -1}, "handed_over"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": True}, "handed_over"),
    ],
)
def test_an_invalid_event_is_refused(kind: Callable[..., object], fields: dict[str, object], parameter: str) -> None:
    """An invalid field of a stream event raises an error that names the field."""
    with pytest.raises(ArgumentError) as caught:
        kind(stream=ONE, **fields)

    assert parameter == caught.value.parameter


@pytest.mark.parametrize("fields", [{"unsent": 5}, {"unsent": {ONE: -1}}, {"unread": 5}])
def test_an_invalid_backlog_is_refused(fields: dict[str, object]) -> None:
    """An invalid field about the driver's backlog raises an error that names the field."""
    with pytest.raises(ArgumentError) as caught:
        TimePassed(**fields)  # type: ignore[arg-type]

    assert [caught.value.parameter] == list(fields)
