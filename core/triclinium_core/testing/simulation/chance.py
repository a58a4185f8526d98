"""Random draws that depend only on a seed, not on the machine or Python version, so that a history can be replayed.

Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

_BITS = 64
_MASK = (1 << _BITS) - 1
_STEP = 0x9E37_79B9_7F4A_7C15
_FLOAT_BITS = 53


class Chance:
    """Source of draws that depend only on ``seed``. Not suitable for secrets."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def fork(self) -> Chance:
        """Return an independent source, whose draws do not affect later draws from this source."""
        return Chance(self._bits())

    def random(self) -> float:
        """Return the next number in [0, 1)."""
        return (self._bits() >> _BITS - _FLOAT_BITS) / (1 << _FLOAT_BITS)

    def between(self, least: int, most: int) -> int:
        """Return an integer from ``least`` to ``most``, both included."""
        return least + int(self.random() * (most - least + 1))

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def choose(self, choices: Sequence[T]) -> T:
        """Return one of several choices with equal probability."""
        return choices[self.between(0, len(choices) - 1)]

    def weigh(self, weighted: Iterable[tuple[int, T]]) -> T:
        """Return one of several choices with probability proportional to its weight."""
        rows = list(weighted)
        rest = self.random() * sum(weight for weight, _ in rows)
        for weight, choice in rows:
            rest -= weight
            if rest < 0:
                return choice
        return rows[-1][1]

    def sample(self, population: Iterable[T], size: int) -> list[T]:
        """Return ``size`` different members, or all if there are fewer."""
        rest = list(population)
        return [rest.pop(self.between(0, len(rest) - 1)) for _ in range(min(size, len(rest)))]

    def _bits(self) -> int:
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D0_49BB_1331_11EB & _MASK
        return mixed ^ mixed >> 31
