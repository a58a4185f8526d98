"""Base of the parts of a search: checked when they are created, and encoded as JSON.

By default a field has the same name in JSON, and ``READERS`` checks its value by that name.

Source: SDK-RFC 0052.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_flag, check_integer, check_text, is_number
from triclinium_core.json_depth import TooDeep, shallow
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.services.json_values import encode_json
from triclinium_core.shown import shown

FLOAT32_MAX = 3.4028234663852886e38
"""Largest number in a vector of the service, which has 32-bit floats."""

LEVELS_MAX = 100
"""Maximum number of levels of queries in queries. Encoding them is recursive, and WebAssembly has a small stack."""

DISTANCE = re.compile(
    r"[0-9]+(\.[0-9]+)?"
    r"(in|inch|yd|yards|ft|feet|m|meters|cm|centimeters|mm|millimeters|km|kilometers|mi|miles|nm|nauticalmiles)?"
)
"""Distances that the service accepts (bleve ``geo/geo_dist.go``). The default unit is meters."""

GeoPoint = tuple[float, float]
"""Longitude and latitude, in degrees, in this order."""

Reader = Callable[[object, str], object]
"""Function that takes a value and its parameter's name, and returns the value to store.

It raises InvalidArgumentException if the value is invalid.
"""


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Base of all parts. A field of None is not sent, and the service uses its default."""

    _OWN_READERS: ClassVar[Mapping[str, Reader]] = {}
    """Readers of fields that other parts lack or read differently."""
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {}
    """Names in JSON of fields that have another name there."""
    _JSON_CONSTANTS: ClassVar[Mapping[str, object]] = {}
    """Members that the JSON always has."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            value: object = getattr(self, spec.name)
            if value is None and spec.default is None:
                continue
            read = self._OWN_READERS.get(spec.name) or READERS[spec.name]
            object.__setattr__(self, spec.name, read(value, spec.name))

    def members(self) -> dict[str, object]:
        """Return the members of the part's JSON object, of types that JSON has."""
        values = {self._JSON_NAMES.get(spec.name, spec.name): getattr(self, spec.name) for spec in fields(self)}
        return {**self._JSON_CONSTANTS, **{name: _form(value) for name, value in values.items() if value is not None}}


def fill(part: SearchPart, **values: object) -> None:
    """Set and check the fields of a part whose constructor takes arguments other than its fields."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
    part.__post_init__()


def require_shallow(part: SearchPart) -> None:
    """Refuse parts that contain each other in too many levels.

    Raises:
        EncodingFailureException: there are more than ``LEVELS_MAX`` levels.
    """
    levels, row = 0, [part]
    while row:
        levels += 1
        if levels > LEVELS_MAX:
            raise errors.EncodingFailureException(
                f"the search is nested too deeply to be encoded as JSON; the maximum is {LEVELS_MAX} levels of queries"
            )
        row = [inner for each in row for spec in fields(each) for inner in _parts_in(getattr(each, spec.name))]


def _parts_in(value: object) -> Iterable[SearchPart]:
    return [each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, SearchPart)]


def _form(value: object) -> object:
    match value:
        case SearchPart():
            return value.members()
        case Enum():
            return value.value
        case tuple():
            return [_form(item) for item in value]
        case _:
            return value


def refused(value: object, parameter: str, wanted: str) -> errors.InvalidArgumentException:
    """Return the error for an argument that is not ``wanted``."""
    return errors.InvalidArgumentException(f"{parameter}={shown(value)} must be {wanted}", parameter=parameter)


def require_one(part: SearchPart, *parameters: str) -> None:
    """Raise InvalidArgumentException unless at least one of these fields has a value."""
    if all(getattr(part, parameter) is None for parameter in parameters):
        names = f"{', '.join(parameters[:-1])} or {parameters[-1]}"
        raise errors.InvalidArgumentException(f"{names} must be given", parameter=parameters[0])


def read_text(value: object, parameter: str) -> str:
    """Read a string. It may be empty, because it may be user input."""
    return check_text(value, parameter, empty=True)


def read_uint32(value: object, parameter: str) -> int:
    """Read an integer from 0 to 2**32 - 1."""
    return check_integer(value, parameter, 0, UINT32_MAX)


def read_positive(value: object, parameter: str) -> int:
    """Read an integer from 1 to 2**32 - 1."""
    return check_integer(value, parameter, 1, UINT32_MAX)


def read_number(value: object, parameter: str) -> float:
    """Read a finite number."""
    return _number(value, parameter, -math.inf, "a finite number")


def read_boost(value: object, parameter: str) -> float:
    """Read a weight, a finite number of at least 0."""
    return _number(value, parameter, 0, "a finite number of at least 0")


def _number(value: object, parameter: str, least: float, wanted: str) -> float:
    if not isinstance(value, int | float) or not is_number(value) or not math.isfinite(value) or value < least:
        raise refused(value, parameter, wanted)
    return value


def read_date(value: object, parameter: str) -> str:
    """Read a date: text for the parser of the index, or a datetime with a time zone, converted to RFC 3339."""
    if not isinstance(value, datetime):
        return check_text(value, parameter)
    if value.utcoffset() is None:
        raise refused(value, parameter, "a datetime with a time zone, such as datetime.timezone.utc")
    return value.isoformat()


def read_point(value: object, parameter: str) -> GeoPoint:
    """Read a pair of longitude and latitude, in degrees."""
    point = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()
    wanted = "a pair of longitude, -180 to 180 degrees, and latitude, -90 to 90 degrees"
    if len(point) != 2:
        raise refused(value, parameter, wanted)
    longitude, latitude = (_number(degrees, parameter, -180, wanted) for degrees in point)
    if longitude > 180 or not -90 <= latitude <= 90:
        raise refused(value, parameter, wanted)
    return longitude, latitude


def read_distance(value: object, parameter: str) -> str:
    """Read a distance, which is a string: a number with a unit, or a number of meters."""
    if not isinstance(value, str) or not DISTANCE.fullmatch(value):
        raise refused(value, parameter, "a string with a number of meters, or with a number and a unit, such as '11km'")
    return value


def read_vector(value: object, parameter: str) -> tuple[float, ...] | str:
    """Read a vector: numbers, or the Base64 of little-endian 32-bit floats."""
    if isinstance(value, str):
        try:
            size = len(b64decode(value, validate=True))
        except ValueError:  # The string is not Base64, or not even ASCII.
            size = 0
        if size == 0 or size % 4:
            raise refused(value, parameter, "Base64 of one or more floats of 32 bits")
        return value
    if not isinstance(value, Iterable) or isinstance(value, bytes | bytearray | memoryview | Mapping):
        raise refused(value, parameter, "a sequence of numbers, or the Base64 of 32-bit floats as a string")
    numbers = tuple(_float32(item, parameter) for item in value)
    if not numbers:
        raise refused(value, parameter, "a sequence of one or more numbers")
    return numbers


def _float32(value: object, parameter: str) -> float:
    # Numbers of numpy and similar packages convert to floats.
    convert = None if isinstance(value, bool) else getattr(value, "__float__", None)
    try:
        number = math.nan if convert is None else float(convert())
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -FLOAT32_MAX <= number <= FLOAT32_MAX:
        raise refused(value, parameter, "a number that a 32-bit float can hold")
    return number


def read_json_object(value: object, parameter: str) -> dict[str, object]:
    """Read a mapping, and return it with the types of JSON.

    Raises:
        EncodingFailureException: the mapping cannot be encoded as JSON.
    """
    if not isinstance(value, Mapping):
        raise refused(value, parameter, "a mapping")
    try:
        kept: dict[str, object] = msgspec.json.decode(shallow(encode_json(value, parameter)))
    except TooDeep as error:
        raise errors.EncodingFailureException(f"{parameter}: {error}") from error
    return kept


def read_choice(kind: type[Enum]) -> Reader:
    """Return a reader that accepts only members of the enum ``kind``."""

    def read(value: object, parameter: str) -> object:
        check_choice(value, parameter, kind)
        return value

    return read


def read_word(*words: str) -> Reader:
    """Return a reader that accepts only these words."""

    def read(value: object, parameter: str) -> object:
        if value not in words or not isinstance(value, str):
            raise refused(value, parameter, f"one of {', '.join(map(repr, words))}")
        return value

    return read


def read_part(*kinds: type[SearchPart]) -> Reader:
    """Return a reader that accepts only instances of these classes."""

    def read(value: object, parameter: str) -> object:
        if not isinstance(value, kinds):
            raise refused(value, parameter, f"of type {' or '.join(kind.__name__ for kind in kinds)}")
        return value

    return read


def read_several(read_each: Reader, what: str, *, least: int = 1) -> Reader:
    """Return a reader of at least ``least`` values, each read by ``read_each``. ``what`` is their plural, for errors.

    The reader refuses a single string, which in Python is a sequence of characters.
    """

    def read(value: object, parameter: str) -> object:
        wanted = f"a sequence of {f'{least} or more ' if least else ''}{what}"
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise refused(value, parameter, wanted)
        read_all = tuple(read_each(item, parameter) for item in value)
        if len(read_all) < least:
            raise refused(value, parameter, wanted)
        return read_all

    return read


READERS: Mapping[str, Reader] = {
    "analyzer": check_text,
    "bool": check_flag,
    "boost": read_boost,
    "bottom_right": read_point,
    "datetime_parser": check_text,
    "desc": check_flag,
    "distance": read_distance,
    "end": read_date,
    "field": check_text,
    "fuzziness": read_uint32,
    "inclusive_end": check_flag,
    "inclusive_max": check_flag,
    "inclusive_min": check_flag,
    "inclusive_start": check_flag,
    "limit": read_uint32,
    "location": read_point,
    "max": read_number,
    "min": read_number,
    "name": check_text,
    "prefix_length": read_uint32,
    "start": read_date,
    "top_left": read_point,
}
"""Default readers of fields, by name. ``_OWN_READERS`` of a part precede them."""
