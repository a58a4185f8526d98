"""Search for NaN and infinities in a value: it finds exactly the numbers that msgspec would encode as null."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from triclinium_core.transcoding.non_finite import find_non_finite


class Reading(msgspec.Struct):
    """Struct of an application."""

    value: object
    unit: str | None = None


class Short(msgspec.Struct, array_like=True, omit_defaults=True, frozen=True):
    """Struct of an application that msgspec encodes as an array."""

    value: object = math.nan
    more: object = None


@dataclasses.dataclass
class Place:
    """Dataclass of an application."""

    height: object


class Limit(Enum):
    """Enumeration whose values are floats."""

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
"""Values without parts. Some of them look like null or like an encoded NaN, but are neither."""
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
    """Return whether the value is or contains NaN or an infinity, by walking through all of its parts."""
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
    """The search finds NaN or an infinity if and only if a walk through the complete value finds one."""
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
    """The path leads to the number in the value; the path is empty if the value is the number."""
    found = find_non_finite(value, msgspec.json.encode(value))

    assert found is not None
    assert (path, False) == (found[0], math.isfinite(found[1]))
