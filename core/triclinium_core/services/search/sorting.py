"""Orders of the hits of a search.

Source: SDK-RFC 0052 "ICluster::SearchQuery", ``sort``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum, unique
from typing import ClassVar, Literal, get_args

from triclinium_core.services.search.parts import GeoPoint, Reader, SearchPart, read_choice, read_word

SortType = Literal["auto", "string", "number", "date"]
SortMode = Literal["default", "min", "max"]
SortMissing = Literal["first", "last"]


@unique
class SearchGeoDistanceUnits(Enum):
    """Units of distances."""

    METERS = "meters"
    MILES = "miles"
    CENTIMETERS = "centimeters"
    MILLIMETERS = "millimeters"
    NAUTICAL_MILES = "nauticalmiles"
    KILOMETERS = "kilometers"
    FEET = "feet"
    YARDS = "yards"
    INCH = "inch"


@dataclass(frozen=True, slots=True)
class Sort(SearchPart):
    """Base of all orders.

    Args:
        desc: whether the order is descending. Default: the server's order.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    _: KW_ONLY
    desc: bool | None = None


@dataclass(frozen=True, slots=True)
class SortScore(Sort):
    """Order by score. The best hit is last unless ``desc`` is True."""

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"by": "score"}


@dataclass(frozen=True, slots=True)
class SortID(Sort):
    """Order by document id."""

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"by": "id"}


@dataclass(frozen=True, slots=True)
class SortField(Sort):
    """Order by a field of the index.

    Args:
        field: name of the field.
        type: type by which the server compares the field's values. Default: the server's value.
        mode: which of several values of a document to use. Default: the server's value.
        missing: whether documents without the field are first or last. Default: the server's value.
    """

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"by": "field"}
    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {
        "type": read_word(*get_args(SortType)),
        "mode": read_word(*get_args(SortMode)),
        "missing": read_word(*get_args(SortMissing)),
    }

    field: str
    _: KW_ONLY
    type: SortType | None = None
    mode: SortMode | None = None
    missing: SortMissing | None = None


@dataclass(frozen=True, slots=True)
class SortGeoDistance(Sort):
    """Order by the distance between a point of the document and a given point.

    Args:
        location: given point: longitude and latitude, in this order.
        field: name of the field with the document's point.
        unit: unit of the distance. Default: the server's value.
    """

    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {"by": "geo_distance"}
    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {"unit": read_choice(SearchGeoDistanceUnits)}

    location: GeoPoint
    field: str
    _: KW_ONLY
    unit: SearchGeoDistanceUnits | None = None
