"""Results: what an operation returns, decoded when it is asked for."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.results import Cas, ExistsResult, GetResult
from triclinium_core.transcoding.flags import JSON_FLAGS
from triclinium_core.transcoding.transcoder import EncodedValue, JsonTranscoder, T


class Recording:
    """A transcoder of a user's own that tells what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, int, type]] = []

    def encode(self, value: object, /) -> EncodedValue:
        """Return nothing of use."""
        raise NotImplementedError

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return a new object of the type."""
        self.asked.append((data, flags, as_type))
        return as_type()


def test_content() -> None:
    """The document as its transcoder sees it, or in the type asked for."""
    result = GetResult(Cas(5), JSON_FLAGS, b'{"born":1815}', JsonTranscoder())

    assert {"born": 1815} == result.content
    assert {"born": 1815} == result.content_as(dict[str, int])
    assert b'{"born":1815}' == result.content_as(bytes) == result.data


def test_any_transcoder() -> None:
    """It is handed bytes, flags and the type, and nothing else."""
    transcoder = Recording()
    result = GetResult(Cas(5), 7, b"data", transcoder)

    assert [] == result.content_as(list)
    assert isinstance(result.content, object)
    assert [(b"data", 7, list), (b"data", 7, object)] == transcoder.asked


def test_undecodable() -> None:
    """A document that does not fit can still be had as bytes."""
    result = GetResult(Cas(5), 0, b"\xff", JsonTranscoder())

    with pytest.raises(errors.DecodingFailureException):
        _ = result.content
    assert b"\xff" == result.content_as(bytes)


@pytest.mark.parametrize("exists", [True, False])
def test_existence_is_its_truth(exists: bool) -> None:
    """``if await people.exists("ada")`` means what it says."""
    assert exists is bool(ExistsResult(exists, Cas(0)))
