"""Events of the client machine: an invalid field raises an error when the event is created."""

from __future__ import annotations

import math
from typing import Any

import pytest

from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.couchbase import AuthenticatorChanged, CallEnded
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.telemetry.span_names import WrappingCall


@pytest.mark.parametrize("nonce", [5, "a,b", "\ud800", "é", "a\0b"], ids=ascii)
def test_an_invalid_nonce_is_refused(nonce: Any) -> None:
    """If SCRAM cannot send a nonce, creating the event raises an error that names the nonce."""
    with pytest.raises(ArgumentError) as caught:
        AuthenticatorChanged(PasswordAuthenticator("u", "p"), nonce)

    assert "nonce" == caught.value.parameter


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [({"name": "range_scan"}, "name"), ({"seconds": -1}, "seconds"), ({"seconds": math.nan}, "seconds")],
)
def test_an_invalid_end_of_a_call(fields: dict[str, object], parameter: str) -> None:
    """Creating a ``CallEnded`` with an unknown call or an invalid duration raises an error that names the field."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        CallEnded(**{"name": WrappingCall.RANGE_SCAN, "seconds": 1.0, **fields})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter
