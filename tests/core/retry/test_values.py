"""Values that are cheap to make are in all else what their dataclass says."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace

from triclinium_core.retry.values import lean


@lean
@dataclass(frozen=True, slots=True)
class Order:
    """A value with a default, and with a default that is made anew."""

    dish: str
    guests: int = 9
    notes: list[str] = field(default_factory=list)


@lean
@dataclass(frozen=True, slots=True, init=False)
class Doubled:
    """A value with an ``__init__`` of its own."""

    size: int

    def __init__(self, size: int) -> None:
        self.size = 2 * size  # type: ignore[misc]


def test_it_is_a_dataclass() -> None:
    """It is made, compared, hashed, shown, replaced, matched and pickled like one."""
    order = Order("dormice", notes=["honey"])

    assert Order("dormice", 9, ["honey"]) == order
    assert Order("eels") != replace(order, notes=[])
    assert order == pickle.loads(pickle.dumps(order))  # noqa: S301
    assert "Order(dish='dormice', guests=9, notes=['honey'])" == repr(order)
    assert Order("eels").notes is not Order("eels").notes
    assert ("dish", "guests", "notes") == Order.__match_args__
    assert hash(Doubled(2)) == hash(Doubled(2))


def test_an_init_of_its_own_stays() -> None:
    """What it does to its arguments is done."""
    assert 6 == Doubled(3).size
