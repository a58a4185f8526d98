"""Results of operations, which decode documents on access."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.results import Cas, ExistsResult, GetResult
from triclinium_core.transcoding.flags import JSON_FLAGS
from triclinium_core.transcoding.transcoder import EncodedValue, JsonTranscoder, T


class Recording:
    """Transcoder that records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, int, type]] = []

    def encode(self, value: object, /) -> EncodedValue:
        """Raise, because results only decode."""
        raise NotImplementedError

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Record the arguments, and return a new object of the type."""
        self.asked.append((data, flags, as_type))
        return as_type()


def test_content() -> None:
    """The transcoder decodes the content, to its default type or to the type that the caller requests."""
    result = GetResult(Cas(5), JSON_FLAGS, b'{"born":1815}', JsonTranscoder())

    assert {"born": 1815} == result.content
    assert {"born": 1815} == result.content_as(dict[str, int])
    assert b'{"born":1815}' == result.content_as(bytes) == result.data


def test_any_transcoder() -> None:
    """A result passes the bytes, the flags and the requested type to its transcoder."""
    transcoder = Recording()
    result = GetResult(Cas(5), 7, b"data", transcoder)

    assert [] == result.content_as(list)
    assert object is type(result.content)
    assert [(b"data", 7, list), (b"data", 7, object)] == transcoder.asked


def test_undecodable() -> None:
    """If a document cannot be decoded, the caller can still get its bytes."""
    result = GetResult(Cas(5), 0, b"\xff", JsonTranscoder())

    with pytest.raises(errors.DecodingFailureException):
        _ = result.content
    assert b"\xff" == result.content_as(bytes)


@pytest.mark.parametrize("exists", [True, False])
def test_existence_is_its_truth(exists: bool) -> None:
    """The result of ``exists`` is true in a condition if the document exists, and false otherwise."""
    assert exists is bool(ExistsResult(exists, Cas(0)))
