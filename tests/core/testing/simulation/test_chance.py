"""Random draws that depend only on a seed."""

from __future__ import annotations

from collections import Counter

from triclinium_core.testing.simulation.chance import Chance


def test_splitmix_numbers() -> None:
    """The generator gives the published SplitMix numbers for seed 0, so a seed means the same everywhere."""
    chance = Chance(0)

    assert [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F] == [chance._bits() for _ in range(3)]


def test_same_seed_draws_the_same() -> None:
    """Equal seeds draw equal numbers and other seeds do not; seeds are reduced to 64 bits."""
    first, again, other, large = (Chance(seed) for seed in (7, 7, 8, 7 + 2**64))
    drawn = [[chance.random() for _ in range(5)] for chance in (first, again, other, large)]

    assert drawn[0] == drawn[1] == drawn[3]
    assert drawn[0] != drawn[2]
    assert all(0 <= number < 1 for numbers in drawn for number in numbers)


def test_fork_is_independent() -> None:
    """Draws from a fork do not change the draws of its origin."""
    used, unused = Chance(1), Chance(1)
    fork = used.fork()
    unused.fork()
    from_fork = [fork.random() for _ in range(9)]

    assert used.random() == unused.random()
    assert used.random() not in from_fork


def test_draws_are_fair() -> None:
    """Draws include both bounds, follow the weights, and have equal probabilities otherwise."""
    chance = Chance(3)
    numbers = Counter(chance.between(1, 4) for _ in range(4_000))
    weighed = Counter(chance.weigh(((3, "often"), (1, "seldom"), (0, "never"))) for _ in range(4_000))
    chosen = {chance.choose("ab") for _ in range(50)}
    share = sum(chance.happens(0.25) for _ in range(4_000))

    assert {1, 2, 3, 4} == set(numbers)
    assert all(900 < count < 1_100 for count in numbers.values())
    assert {"often", "seldom"} == set(weighed)
    assert 2_900 < weighed["often"] < 3_100
    assert {"a", "b"} == chosen
    assert 900 < share < 1_100


def test_sample_has_no_duplicates() -> None:
    """A sample has different members, and at most as many as there are."""
    chance = Chance(5)

    assert [3] * 20 == [len(set(chance.sample(range(5), 3))) for _ in range(20)]
    assert [0, 1, 2] == sorted(chance.sample(range(3), 9))


def test_rounding_reaches_the_last_row() -> None:
    """A draw at the upper limit selects the last row."""
    chance = Chance(0)
    chance.random = lambda: 1.0  # type: ignore[method-assign]

    assert "last" == chance.weigh(((1, "first"), (2, "last")))
