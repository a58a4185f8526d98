"""What callers give, as JSON or refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from tests.rows import rows
from triclinium_core.errors import EncodingFailureException
from triclinium_core.services.json_values import encode_json


@dataclass
class Person:
    """A value of a user's own type."""

    name: str


@rows(
    ("value", "expected"),
    [
        (None, b"null"),
        ([1, "é", {}], '[1,"é",{}]'.encode()),
        (2**70, b"1180591620717411303424"),
        (Person("ada"), b'{"name":"ada"}'),
        ({"null": None}, b'{"null":null}'),
    ],
)
def test_values(value: object, expected: bytes) -> None:
    """Anything that msgspec knows, structs and dataclasses included."""
    assert expected == encode_json(value, "key")


def nested(depth: int) -> object:
    """Return a list in a list in a list."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@rows("value", [math.nan, [{"a": math.inf}], b"bytes", object(), "\ud800", {1j: 1}])
def test_what_has_no_form(value: object) -> None:
    """It is refused by the name of its parameter: nothing travels as something else."""
    with pytest.raises(EncodingFailureException, match="^key "):
        encode_json(value, "key")


@pytest.mark.native
def test_what_is_nested_too_deep() -> None:
    """It is refused as well; WebAssembly's encoder goes deeper than that."""
    with pytest.raises(EncodingFailureException, match="^key "):
        encode_json(nested(100_000), "key")


def test_what_errors_show() -> None:
    """No value, which may be a secret, but its type and where it went wrong."""
    with pytest.raises(EncodingFailureException) as caught:
        encode_json({"token": "s3cret", "of": object()}, "$login")

    assert "$login is dict" in str(caught.value)
    assert "s3cret" not in str(caught.value)
