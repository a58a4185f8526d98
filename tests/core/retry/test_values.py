"""The ``lean`` decorator: its classes are fast to create, and in other respects are plain dataclasses."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace

from triclinium_core.retry.values import lean


@lean
@dataclass(frozen=True, slots=True)
class Order:
    """Dataclass with a default and a default factory."""

    name: str
    count: int = 9
    notes: list[str] = field(default_factory=list)


@lean
@dataclass(frozen=True, slots=True, init=False)
class Doubled:
    """Dataclass with its own ``__init__``."""

    size: int

    def __init__(self, size: int) -> None:
        self.size = 2 * size  # type: ignore[misc]


def test_a_lean_class_is_a_dataclass() -> None:
    """A lean class supports comparison, hash, repr, replace, match and pickle, as a plain dataclass does."""
    order = Order("pens", notes=["blue"])

    assert Order("pens", 9, ["blue"]) == order
    assert Order("ink") != replace(order, notes=[])
    assert order == pickle.loads(pickle.dumps(order))  # noqa: S301
    assert "Order(name='pens', count=9, notes=['blue'])" == repr(order)
    assert Order("ink").notes is not Order("ink").notes
    assert ("name", "count", "notes") == Order.__match_args__
    assert hash(Doubled(2)) == hash(Doubled(2))


def test_a_custom_init_is_kept() -> None:
    """If a class defines ``__init__``, the lean class keeps it."""
    assert 6 == Doubled(3).size
