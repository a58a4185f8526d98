"""Results of sub-document lookups and mutations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.refusals import refused
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER
from triclinium_core.kv.operation.results import Cas, LookupInResult, MutateInResult
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.transcoding.transcoder import RawJsonTranscoder

CONTEXT = ErrorContext(operation="lookup_in", key="ada")
GET, EXISTS = LookupInSpec.get("a"), LookupInSpec.exists("b")


def found(spec: LookupInSpec, status: int, value: bytes = b"") -> LookupInResult:
    """Return the result of two specs; the second one is under test."""
    return LookupInResult(Cas(9), (GET, spec), ((0, b"1"), (status, value)), JSON_TRANSCODER, CONTEXT)


def test_values() -> None:
    """``content_as`` converts a value to the requested type, and raises if it cannot."""
    result = found(GET, 0, b'{"x":[1]}')

    assert 1 == result.content_as(int, 0)
    assert {"x": [1]} == result.content_as(dict[str, list[int]], 1) == result.content_as(object, 1)
    assert b'{"x":[1]}' == result.content_as(bytes, 1)
    with pytest.raises(errors.DecodingFailureException):
        result.content_as(int, 1)


@pytest.mark.parametrize(("status", "expected"), [(0, True), (0xC0, False)])
def test_existence(status: int, expected: bool) -> None:
    """``exists``, and the content of an ``exists`` spec, are whether the path exists (RFC 0053 "ILookupInResult")."""
    assert [expected] * 2 == [found(spec, status).exists(1) for spec in (GET, EXISTS)]
    assert expected is found(EXISTS, status).content_as(bool, 1) is found(EXISTS, status).content_as(object, 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (0xC0, errors.PathNotFoundException),
        (0xC1, errors.PathMismatchException),
        (0x24, errors.XattrNoAccessException),
        (0x7FF0, errors.CouchbaseException),
    ],
)
def test_failures(status: int, error: type[errors.CouchbaseException]) -> None:
    """The content of a failed spec raises the exception of its status, with the path and the index."""
    with pytest.raises(error) as caught:
        found(GET, status).content_as(object, 1)

    assert type(caught.value) is error
    assert str(caught.value).startswith("lookup_in 'ada': specs[1], path 'a': ")
    assert f"[0x{status:02x}]" in str(caught.value)
    assert (1, "a", status) == (
        caught.value.context.path_index,
        caught.value.context.path,
        caught.value.context.path_status,
    )


@pytest.mark.parametrize("spec", [GET, EXISTS], ids=["get", "exists"])
def test_path_mismatch_is_not_existence(spec: LookupInSpec) -> None:
    """After a path mismatch ``exists`` raises, because the status does not show whether the path exists."""
    with pytest.raises(errors.PathMismatchException):
        found(spec, 0xC1).exists(1)
    with pytest.raises(errors.PathMismatchException):
        found(spec, 0xC1).content_as(bool, 1)


CHANGED = MutateInResult(Cas(9), (b"7", None), JSON_TRANSCODER)


@pytest.mark.parametrize("wrong", [-1, 2, 10**30, "0", 0.0, True, None], ids=repr)
def test_invalid_indexes(wrong: int) -> None:
    """An index that is negative, too large or not an integer is rejected."""
    asks: tuple[Callable[[], object], ...] = (
        lambda: found(GET, 0, b"1").content_as(object, wrong),
        lambda: found(GET, 0, b"1").exists(wrong),
        lambda: CHANGED.content_as(object, wrong),
    )
    for ask in asks:
        refused("index", ask)


def test_contents_of_mutations() -> None:
    """``content_as`` returns the value of a mutation; for a mutation without a value, it raises an error."""
    assert 7 == CHANGED.content_as(int, 0)
    assert b"7" == MutateInResult(Cas(9), (b"7",), RawJsonTranscoder()).content_as(bytes, 0)
    with pytest.raises(errors.DecodingFailureException):
        CHANGED.content_as(str, 0)
    with pytest.raises(errors.InvalidArgumentException, match="index=1 names a spec that returns no value") as caught:
        CHANGED.content_as(int, 1)
    assert "index" == caught.value.parameter
