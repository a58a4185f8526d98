"""Scan types: a range of document ids, ids with a prefix, and a sample.

Source: SDK-RFC on key-value range scans (as the Couchbase clients implement it); kv_engine ``docs/range_scans``.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer
from triclinium_core.kv.operation.validation import UINT32_MAX, UINT64_MAX
from triclinium_core.kv.wire.constants import KEY_SIZE_MAX
from triclinium_core.shown import shown

LOWEST = b"\x00"
"""Lower bound of all document ids."""
HIGHEST = b"\xff"
"""Upper bound of all document ids in UTF-8."""


@dataclass(frozen=True, slots=True)
class ScanTerm:
    """One end of a range: a document id, or the first characters of an id.

    Args:
        exclusive: whether the range excludes the term.

    Raises:
        InvalidArgumentException: ``term`` is not a string, is empty, is not valid Unicode or is longer than the longest
            id, or ``exclusive`` is not a bool.
    """

    term: str
    exclusive: bool = False

    def __post_init__(self) -> None:
        _check_text(self.term, "term")
        check_flag(self.exclusive, "exclusive")


@dataclass(frozen=True, slots=True)
class RangeScan:
    """All documents whose ids lie between two terms. Ids are compared by their UTF-8 bytes.

    Args:
        from_: start of the range. The range includes a start that is a plain string. None stands for the lowest id.
        to: end of the range. The range includes an end that is a plain string. None stands for the highest id.

    Raises:
        InvalidArgumentException: a term has another type, or is a string that a ``ScanTerm`` does not accept.
    """

    from_: ScanTerm | str | None = None
    to: ScanTerm | str | None = None

    def __post_init__(self) -> None:
        for name, term in (("from_", self.from_), ("to", self.to)):
            if isinstance(term, str):
                _check_text(term, name)
            elif not isinstance(term, ScanTerm | None):
                raise errors.InvalidArgumentException(
                    f"{name}={shown(term)} must be a string, a ScanTerm or None", parameter=name
                )

    @property
    def bounds(self) -> Bounds:
        """The range as bytes."""
        start, excludes_start = _bound(self.from_, LOWEST)
        end, excludes_end = _bound(self.to, HIGHEST)
        return Bounds(start, end, excludes_start=excludes_start, excludes_end=excludes_end)


@dataclass(frozen=True, slots=True)
class PrefixScan:
    """All documents whose ids begin with ``prefix``.

    Raises:
        InvalidArgumentException: ``prefix`` is not a string, is empty, is not valid Unicode or is longer than the
            longest id.
    """

    prefix: str

    def __post_init__(self) -> None:
        _check_text(self.prefix, "prefix")

    @property
    def bounds(self) -> Bounds:
        """Range of all ids with the prefix."""
        start = self.prefix.encode()
        # A prefix of the maximum length is the only id with this prefix.
        return Bounds(start, start + HIGHEST if len(start) < KEY_SIZE_MAX else start)


@dataclass(frozen=True, slots=True)
class SamplingScan:
    """Random sample of documents.

    Args:
        limit: maximum number of documents. The sample may have fewer.
        seed: number that determines the sample. Scans with the same seed, one vbucket at a time, return the same
            documents as long as no document changes and no vbucket moves. None uses a new seed for each scan.

    Raises:
        InvalidArgumentException: ``limit`` or ``seed`` is not an integer, or is out of range.
    """

    limit: int
    seed: int | None = None

    def __post_init__(self) -> None:
        check_integer(self.limit, "limit", 1, UINT64_MAX)
        if self.seed is not None:
            check_integer(self.seed, "seed", 0, UINT32_MAX)


ScanType = RangeScan | PrefixScan | SamplingScan


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range of document ids as bytes."""

    start: bytes = LOWEST
    end: bytes = HIGHEST
    excludes_start: bool = False
    excludes_end: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """Sample of the documents of one vbucket."""

    size: int
    seed: int


def _bound(term: ScanTerm | str | None, default: bytes) -> tuple[bytes, bool]:
    if term is None:
        return default, False
    if isinstance(term, str):
        return term.encode(), False
    return term.term.encode(), term.exclusive


def _check_text(value: object, parameter: str) -> None:
    if not isinstance(value, str) or not value:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(value)} must be a string that is not empty", parameter=parameter
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise errors.InvalidArgumentException(
            f"{parameter}={value[:40]!r} has a lone surrogate, which UTF-8 cannot encode", parameter=parameter
        ) from error
    if size > KEY_SIZE_MAX:
        raise errors.InvalidArgumentException(
            f"{parameter}={value[:40]!r}… has {size} bytes of UTF-8; an id has at most {KEY_SIZE_MAX}",
            parameter=parameter,
        )
