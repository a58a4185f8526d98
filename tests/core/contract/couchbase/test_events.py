"""Events of the client machine: an invalid field raises an error when the event is created."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.couchbase import AuthenticatorChanged, CallEnded
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.telemetry.span_names import WrappingCall


@pytest.mark.parametrize(
    ("make", "parameter", "value", "kind"),
    [
        # The tests of StreamOpened have each kind of invalid nonce.
        (partial(AuthenticatorChanged, PasswordAuthenticator("u", "p")), "nonce", "a,b", ArgumentError),
        (partial(CallEnded, seconds=1.0), "name", "range_scan", errors.InvalidArgumentException),
        (partial(CallEnded, name=WrappingCall.RANGE_SCAN), "seconds", -1, errors.InvalidArgumentException),
        (partial(CallEnded, name=WrappingCall.RANGE_SCAN), "seconds", math.nan, errors.InvalidArgumentException),
    ],
    ids=["nonce", "name", "negative", "nan"],
)
def test_an_invalid_event_is_refused(
    make: Callable[..., object], parameter: str, value: object, kind: type[ArgumentError]
) -> None:
    """A nonce that SCRAM cannot send, an unknown call and an invalid duration raise an error that names the field."""
    with pytest.raises(kind) as caught:
        make(**{parameter: value})

    assert parameter == caught.value.parameter
