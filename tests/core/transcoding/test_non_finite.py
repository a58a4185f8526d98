"""NaN and the infinities in values: found wherever msgspec would write null for them, and nowhere else."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from triclinium_core.transcoding.non_finite import find_non_finite


class Reading(msgspec.Struct):
    """A type of an application."""

    value: object
    unit: str | None = None


class Short(msgspec.Struct, array_like=True, omit_defaults=True, frozen=True):
    """The same as an array."""

    value: object = math.nan
    more: object = None


@dataclasses.dataclass
class Place:
    """The same as a dataclass."""

    height: object


class Limit(Enum):
    """A value that is a number by its own value."""

    NONE = math.inf
    SMALL = 1.5


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(),
    st.sampled_from([*Limit, "null", msgspec.Raw(b'{"a":null}'), b"\xcb\x7f\xf8", 0xCB_7F_F8, "\u02ff\x7f"]),
)
"""Among them what looks like null, or like a NaN on its way, and is not."""
values = st.recursive(
    leaves,
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.tuples(children, children),
        st.frozensets(st.floats() | st.text(), max_size=3),
        st.dictionaries(st.text() | st.floats(), children, max_size=4),
        st.builds(Reading, children),
        st.builds(Short, children, children),
        st.builds(Place, children),
    ),
    max_leaves=15,
)


def holds_one(value: object) -> bool:
    """Walk through a whole value, whatever it was encoded to."""
    match value:
        case Enum():
            return holds_one(value.value)
        case float():
            return not math.isfinite(value)
        case dict():
            return any(map(holds_one, value.values()))
        case list() | tuple() | frozenset():
            return any(map(holds_one, value))
        case msgspec.Struct() | Place():
            return any(holds_one(getattr(value, name)) for name in value.__annotations__)
        case _:
            return False


@given(values)
@example([2**70, math.nan])
def test_as_a_walk_through_the_whole_value(value: object) -> None:
    """The short cuts miss nothing and suspect nobody for good."""
    found = find_non_finite(value, msgspec.json.encode(value))

    assert holds_one(value) == (found is not None)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, ""),
        ({"a": [None, {"b c": -math.inf}]}, "a[1].b c"),
        ([(1.0, math.inf)], "[0][1]"),
        (Reading(Place(Short())), "value.height[0]"),
        ({math.nan: {"x": Limit.NONE}}, "nan.x"),
    ],
    ids=["alone", "dict", "tuple", "typed", "enumeration"],
)
def test_where(value: object, path: str) -> None:
    """The path leads to the number, and is empty where the value is one."""
    found = find_non_finite(value, msgspec.json.encode(value))

    assert found is not None
    assert (path, False) == (found[0], math.isfinite(found[1]))
