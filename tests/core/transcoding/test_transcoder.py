"""Transcoders of SDK-RFC 0055: the values that each stores and refuses, and the documents that it cannot decode."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import Enum
from typing import cast

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS, STRING_FLAGS
from triclinium_core.transcoding.transcoder import (
    EncodedValue,
    JsonTranscoder,
    RawBinaryTranscoder,
    RawJsonTranscoder,
    RawStringTranscoder,
    Transcoder,
)

JSON, RAW_JSON, RAW_STRING, RAW_BINARY = (
    JsonTranscoder(),
    RawJsonTranscoder(),
    RawStringTranscoder(),
    RawBinaryTranscoder(),
)
ALL: tuple[Transcoder, ...] = (JSON, RAW_JSON, RAW_STRING, RAW_BINARY)


class Person(msgspec.Struct):
    """Struct of an application."""

    born: int
    tags: list[str] = []


@dataclass
class Place:
    """Dataclass of an application."""

    name: str


class Colour(Enum):
    """Enumeration whose values are JSON strings."""

    RED = "red"


class Unknown:
    """Object that has no JSON form."""


def nested(depth: int) -> list[object]:
    """Return an empty list inside ``depth`` lists."""
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
).filter(lambda value: not _has_infinity(value))


def _has_infinity(value: object) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, dict):
        return any(_has_infinity(item) for item in value.values())
    return isinstance(value, list) and any(_has_infinity(item) for item in value)


@rows(
    ("transcoder", "value", "data", "flags"),
    [
        (JSON, {"a": [1, None, True]}, b'{"a":[1,null,true]}', JSON_FLAGS),
        (JSON, "text", b'"text"', JSON_FLAGS),
        (JSON, 5, b"5", JSON_FLAGS),
        (JSON, Person(1815, ["x"]), b'{"born":1815,"tags":["x"]}', JSON_FLAGS),
        (JSON, Place("Ealing"), b'{"name":"Ealing"}', JSON_FLAGS),
        (JSON, Colour.RED, b'"red"', JSON_FLAGS),
        (RAW_JSON, b'{"a": 1}', b'{"a": 1}', JSON_FLAGS),
        (RAW_JSON, '{"ä": 1}', '{"ä": 1}'.encode(), JSON_FLAGS),
        (RAW_JSON, bytearray(b"[]"), b"[]", JSON_FLAGS),
        (RAW_JSON, b"no JSON at all", b"no JSON at all", JSON_FLAGS),
        (RAW_STRING, "ä\0€", "ä\0€".encode(), STRING_FLAGS),
        (RAW_STRING, "", b"", STRING_FLAGS),
        (RAW_BINARY, b"\x00\xff", b"\x00\xff", BINARY_FLAGS),
        (RAW_BINARY, bytearray(b"xyz"), b"xyz", BINARY_FLAGS),
        (RAW_BINARY, memoryview(b"axbycz")[::2], b"abc", BINARY_FLAGS),
    ],
)
def test_encode(transcoder: Transcoder, value: object, data: bytes, flags: int) -> None:
    """Each transcoder encodes the values that the RFC's table permits, with the flags from the table."""
    encoded = transcoder.encode(value)

    assert EncodedValue(data, flags) == encoded
    assert bytes is type(encoded.data)


@pytest.mark.parametrize(
    ("transcoder", "value"),
    [
        (JSON, b"bytes"),
        (JSON, bytearray(b"bytes")),
        (JSON, memoryview(b"bytes")),
        (JSON, Unknown()),
        (JSON, {"a": Unknown()}),
        (JSON, {Unknown(): 1}),
        (JSON, math.nan),
        (JSON, {"a": [None, -math.inf]}),
        (JSON, Place(cast("str", math.inf))),
        (JSON, "\ud800"),
        (JSON, {"\udfff": 1}),
        # The depth limit differs between interpreters.
        pytest.param(JSON, nested(100_000), marks=pytest.mark.native),
        (RAW_JSON, {"a": 1}),
        (RAW_JSON, 5),
        (RAW_JSON, None),
        (RAW_JSON, "\ud800"),
        (RAW_STRING, b"bytes"),
        (RAW_STRING, 5),
        (RAW_STRING, {"a": 1}),
        (RAW_STRING, "a\udc80"),
        (RAW_BINARY, "text"),
        (RAW_BINARY, 5),
        (RAW_BINARY, [1, 2]),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_encode_refuses(transcoder: Transcoder, value: object) -> None:
    """A value that the RFC's table forbids, or that has no UTF-8 or JSON form, raises EncodingFailureException."""
    with pytest.raises(errors.EncodingFailureException) as caught:
        transcoder.encode(value)

    assert "" != str(caught.value)


def test_json_names_other_transcoders_for_bytes() -> None:
    """JsonTranscoder refuses bytes, and the error names the raw transcoders that accept them."""
    with pytest.raises(errors.EncodingFailureException, match="RawBinaryTranscoder.*RawJsonTranscoder"):
        JSON.encode(b"{}")


def test_errors_for_other_types_name_the_recipe() -> None:
    """An error for a type that msgspec does not support names the type, ``transcoder=`` and a page that exists."""
    page = "docs/howto/documents_of_your_types.md"
    for value in (Unknown(), {"a": [Unknown()]}):
        with pytest.raises(errors.EncodingFailureException, match=f"type Unknown; .*transcoder=.*{page}"):
            JSON.encode(value)
    for as_type in (Unknown, list[Unknown]):
        with pytest.raises(errors.DecodingFailureException, match=f"into Unknown; .*transcoder=.*{page}"):
            JSON.decode(b"[{}]", JSON_FLAGS, as_type)


def test_abstract_types_accept_their_instances() -> None:
    """A type that msgspec does not support is no obstacle if the JSON value is an instance of it."""
    decoded: list[object] = [*JSON.decode(b"[1,2.5]", JSON_FLAGS, list[numbers.Number])]

    assert [1, 2.5] == decoded


def test_non_finite_as_null_encodes_null() -> None:
    """With ``non_finite_as_null``, NaN and infinities are encoded as null, because JSON cannot express them."""
    lenient = JsonTranscoder(non_finite_as_null=True)

    assert [b"null", b"[null,1.5]"] == [lenient.encode(math.nan).data, lenient.encode((math.inf, 1.5)).data]


def test_non_finite_error_names_path_and_option() -> None:
    """The error has the number, its path and the option that permits it; even with a long path the error is short."""
    with pytest.raises(errors.EncodingFailureException, match=r"-inf at a\[1\].*non_finite_as_null=True") as caught:
        JSON.encode({"a": [1, -math.inf]})
    with pytest.raises(errors.EncodingFailureException) as long:
        JSON.encode({"a" * 10_000: math.nan})

    assert 300 > len(str(long.value))
    assert "\n" not in str(caught.value)


def test_non_finite_as_null_must_be_a_bool() -> None:
    """The constructor refuses a ``non_finite_as_null`` that is not a bool, and names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        JsonTranscoder(non_finite_as_null=cast("bool", 1))

    assert "non_finite_as_null" == caught.value.parameter


@given(json_values)
def test_json_round_trip(value: object) -> None:
    """If a stored value is decoded, the result is equal to the value."""
    assert value == JSON.decode(JSON.encode(value).data, JSON_FLAGS, object)


@pytest.mark.parametrize("flags", [JSON_FLAGS, BINARY_FLAGS, STRING_FLAGS, 0, 0xFFFF_FFFF])
def test_flags_do_not_matter_when_reading(flags: int) -> None:
    """The transcoder alone determines how a document is decoded, whatever its flags (RFC 0055 rev 3)."""
    decoded = [transcoder.decode(b'"ada"', flags, object) for transcoder in ALL]

    assert ["ada", b'"ada"', '"ada"', b'"ada"'] == decoded


@pytest.mark.parametrize(
    ("transcoder", "as_type", "expected"),
    [
        (JSON, Person, Person(1815, ["x"])),
        (JSON, dict, {"born": 1815, "tags": ["x"]}),
        (JSON, bytes, b'{"born":1815,"tags":["x"]}'),
        (RAW_JSON, bytes, b'{"born":1815,"tags":["x"]}'),
        (RAW_JSON, str, '{"born":1815,"tags":["x"]}'),
        (RAW_STRING, str, '{"born":1815,"tags":["x"]}'),
        (RAW_BINARY, bytes, b'{"born":1815,"tags":["x"]}'),
    ],
)
def test_decode_as(transcoder: Transcoder, as_type: type, expected: object) -> None:
    """Each transcoder decodes the stored bytes to the type that the caller requests."""
    decoded: object = transcoder.decode(b'{"born":1815,"tags":["x"]}', 0, as_type)

    assert expected == decoded


@rows(
    ("transcoder", "data", "as_type"),
    [
        (JSON, b"", object),
        (JSON, b"{", object),
        (JSON, b"{} trailing", object),
        (JSON, b"NaN", object),
        (JSON, b'"\xff"', object),
        (JSON, b"[" * 100_000, object),
        (JSON, b'{"born":"1815"}', Person),
        (JSON, b"{}", Person),
        (JSON, b"{}", int),
        (JSON, b"{}", complex),
        (JSON, b"{}", Unknown),
        (JSON, b"{}", cast("type[object]", 5)),
        (JSON, b"{}", cast("type[object]", "Person")),
        (RAW_JSON, b"{}", dict),
        (RAW_JSON, b"\xff", str),
        (RAW_STRING, b"\xff", object),
        (RAW_STRING, b"\xed\xa0\x80", str),
        (RAW_STRING, b"text", bytes),
        (RAW_BINARY, b"text", str),
        (RAW_BINARY, b"text", cast("type[object]", None)),
    ],
)
def test_decode_refuses(transcoder: Transcoder, data: bytes, as_type: type[object]) -> None:
    """A document that cannot be decoded, or an unsupported type, raises DecodingFailureException with a message."""
    with pytest.raises(errors.DecodingFailureException) as caught:
        transcoder.decode(data, JSON_FLAGS, as_type)

    assert "" != str(caught.value)


def test_raw_json_error_names_readable_types() -> None:
    """The error has the types to which RawJsonTranscoder can decode a document."""
    with pytest.raises(errors.DecodingFailureException, match="bytes or str, not dict"):
        RAW_JSON.decode(b"{}", 0, dict)


@given(
    data=st.binary() | json_values.map(lambda value: JSON.encode(value).data),
    flags=st.integers(0, 0xFFFF_FFFF),
    as_type=st.sampled_from([object, bytes, str, int, dict, Person, Place, Colour, complex]),
)
def test_hostile_documents(data: bytes, flags: int, as_type: type[object]) -> None:
    """For any bytes and flags, decoding returns a value or raises DecodingFailureException."""
    for transcoder in ALL:
        try:
            transcoder.decode(data, flags, as_type)
        except errors.DecodingFailureException as error:
            assert "" != str(error)
