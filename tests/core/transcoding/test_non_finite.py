"""NaN and infinities in values: found exactly if msgspec would encode them as null."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from triclinium_core.transcoding.non_finite import find_non_finite


class Reading(msgspec.Struct):
    """An application's type."""

    value: object
    unit: str | None = None


class Short(msgspec.Struct, array_like=True, omit_defaults=True, frozen=True):
    """An application's type that msgspec encodes as an array."""

    value: object = math.nan
    more: object = None


@dataclasses.dataclass
class Place:
    """An application's dataclass."""

    height: object


class Limit(Enum):
    """An enumeration whose values are floats."""

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
"""Leaves of values. Some look like null or like an encoded NaN and are neither."""
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
    """Return whether the value contains NaN or an infinity, by walking through all of it."""
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
def test_search_agrees_with_a_complete_walk(value: object) -> None:
    """The search finds a non-finite number if and only if a walk through the complete value finds one."""
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
def test_path_of_the_non_finite_number(value: object, path: str) -> None:
    """The path leads to the number; it is empty if the value itself is the number."""
    found = find_non_finite(value, msgspec.json.encode(value))

    assert found is not None
    assert (path, False) == (found[0], math.isfinite(found[1]))
