"""Facets: counts of the hits by terms, numbers or dates.

Source: SDK-RFC 0052 "ICluster::SearchQuery", ``facets``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import ClassVar

from triclinium_core.services.search.parts import Reader, SearchPart, read_part, read_several, refused, require_one


@dataclass(frozen=True, slots=True)
class Facet(SearchPart):
    """Base of all facets.

    Args:
        field: name of the field whose values are counted.
        limit: maximum number of terms or ranges to return, those with the most documents first. Default: the service's
            limit.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    _JSON_NAMES: ClassVar[Mapping[str, str]] = {"limit": "size"}

    field: str
    _: KW_ONLY
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class TermFacet(Facet):
    """Number of documents with each term."""


@dataclass(frozen=True, slots=True)
class NumericRange(SearchPart):
    """Range of numbers with a name. One end may be left open.

    Args:
        name: name of the range in the result.
        min: lower end, included. None, the default, for no lower bound.
        max: upper end, excluded. None, the default, for no upper bound.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    name: str
    min: float | None = None
    max: float | None = None

    def __post_init__(self) -> None:
        SearchPart.__post_init__(self)
        require_one(self, "min", "max")


@dataclass(frozen=True, slots=True)
class DateRange(SearchPart):
    """Range of dates with a name. One end may be left open.

    Args:
        name: name of the range in the result.
        start: a datetime with a time zone, or text for the parser of the index. Included. None, the default, for no
            lower bound.
        end: like ``start``, but excluded. None, the default, for no upper bound.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    name: str
    start: datetime | str | None = None
    end: datetime | str | None = None

    def __post_init__(self) -> None:
        SearchPart.__post_init__(self)
        require_one(self, "start", "end")


@dataclass(frozen=True, slots=True)
class NumericFacet(Facet):
    """Number of documents with a number in each range.

    Args:
        ranges: one or more, with different names.
    """

    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {"ranges": read_several(read_part(NumericRange), "NumericRange")}
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {**Facet._JSON_NAMES, "ranges": "numeric_ranges"}

    ranges: Sequence[NumericRange]

    def __post_init__(self) -> None:
        Facet.__post_init__(self)
        _require_different_names(self.ranges)


@dataclass(frozen=True, slots=True)
class DateFacet(Facet):
    """Number of documents with a date in each range.

    Args:
        ranges: one or more, with different names.
    """

    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {"ranges": read_several(read_part(DateRange), "DateRange")}
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {**Facet._JSON_NAMES, "ranges": "date_ranges"}

    ranges: Sequence[DateRange]

    def __post_init__(self) -> None:
        Facet.__post_init__(self)
        _require_different_names(self.ranges)


def _require_different_names(ranges: Sequence[NumericRange] | Sequence[DateRange]) -> None:
    names = [each.name for each in ranges]
    if len(set(names)) < len(names):
        raise refused(names, "ranges", "ranges with different names")
