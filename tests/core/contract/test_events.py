"""What the machine hears: nothing that cannot be, and nothing in logs that must not stand there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from triclinium_core.contract.events import (
    AuthenticatorChanged,
    BytesReceived,
    CallEnded,
    LossCause,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
)
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.telemetry.span_names import WrappingCall

ONE = StreamId(1)


def test_bytes_are_counted_not_shown() -> None:
    """They may hold documents."""
    assert "BytesReceived(stream=7, data=<6 bytes>)" == repr(BytesReceived(StreamId(7), b"secret"))


def test_the_nonce_is_not_shown() -> None:
    """It is entropy of an authentication."""
    assert "StreamOpened(stream=7, 'a:1' to 'b:2')" == repr(StreamOpened(StreamId(7), "secret", "a:1", "b:2"))


@pytest.mark.parametrize(
    ("kind", "fields", "parameter"),
    [
        (StreamOpened, {"nonce": 5}, "nonce"),
        (StreamOpened, {"nonce": "a,b"}, "nonce"),
        (StreamOpened, {"nonce": "\ud800"}, "nonce"),
        (StreamOpened, {"nonce": "é"}, "nonce"),
        (StreamOpened, {"nonce": "a\0b"}, "nonce"),
        (BytesReceived, {"data": "text"}, "data"),
        (StreamLost, {"cause": "reset"}, "cause"),
        (StreamLost, {"cause": LossCause.RESET, "text": None}, "text"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": "all"}, "handed_over"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": -1}, "handed_over"),
        (StreamLost, {"cause": LossCause.RESET, "handed_over": True}, "handed_over"),
    ],
)
def test_what_cannot_be_an_event(kind: Callable[..., object], fields: dict[str, object], parameter: str) -> None:
    """It is refused by name, before the machine hears of it."""
    with pytest.raises(InvalidArgumentException) as caught:
        kind(stream=ONE, **fields)

    assert parameter == caught.value.parameter


@pytest.mark.parametrize("nonce", [5, "a,b", "\ud800", "é", "a\0b"], ids=ascii)
def test_new_credentials_have_a_nonce_that_can_travel(nonce: Any) -> None:
    """It is refused by name."""
    with pytest.raises(InvalidArgumentException) as caught:
        AuthenticatorChanged(PasswordAuthenticator("u", "p"), nonce)

    assert "nonce" == caught.value.parameter


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [({"name": "range_scan"}, "name"), ({"seconds": -1}, "seconds"), ({"seconds": math.nan}, "seconds")],
)
def test_no_call_ends_like_that(fields: dict[str, object], parameter: str) -> None:
    """An unknown call and an invalid duration raise an error with the name of the field."""
    with pytest.raises(InvalidArgumentException) as caught:
        CallEnded(**{"name": WrappingCall.RANGE_SCAN, "seconds": 1.0, **fields})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


@pytest.mark.parametrize("fields", [{"unsent": 5}, {"unsent": {ONE: -1}}, {"unread": 5}])
def test_no_time_passes_like_that(fields: dict[str, object]) -> None:
    """What a driver is behind with is refused by name too, where it cannot be."""
    with pytest.raises(InvalidArgumentException) as caught:
        TimePassed(**fields)  # type: ignore[arg-type]

    assert [caught.value.parameter] == list(fields)
