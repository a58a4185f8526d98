"""Chance that a seed determines."""

from __future__ import annotations

from collections import Counter

from triclinium_core.testing.simulation.chance import Chance


def test_the_numbers_of_splitmix() -> None:
    """The generator is the published one, so that seeds mean the same everywhere: its first numbers for the seed 0."""
    chance = Chance(0)

    assert [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F] == [chance._bits() for _ in range(3)]


def test_the_same_seed_draws_the_same() -> None:
    """And another one does not; a seed of any size is one."""
    first, again, other, large = (Chance(seed) for seed in (7, 7, 8, 7 + 2**64))
    drawn = [[chance.random() for _ in range(5)] for chance in (first, again, other, large)]

    assert drawn[0] == drawn[1] == drawn[3]
    assert drawn[0] != drawn[2]
    assert all(0 <= number < 1 for numbers in drawn for number in numbers)


def test_a_fork_goes_its_own_way() -> None:
    """What is drawn from it does not change what is drawn from the other."""
    used, unused = Chance(1), Chance(1)
    fork = used.fork()
    unused.fork()
    from_fork = [fork.random() for _ in range(9)]

    assert used.random() == unused.random()
    assert used.random() not in from_fork


def test_draws_are_fair() -> None:
    """Bounds are included, weights are kept to, and each is as likely as it should be."""
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


def test_a_sample_has_nobody_twice() -> None:
    """And no more than there are."""
    chance = Chance(5)

    assert [3] * 20 == [len(set(chance.sample(range(5), 3))) for _ in range(20)]
    assert [0, 1, 2] == sorted(chance.sample(range(3), 9))


def test_rounding_leaves_nobody_out() -> None:
    """Where the last draw is as near to 1 as can be, the last row is drawn."""
    chance = Chance(0)
    chance.random = lambda: 1.0  # type: ignore[method-assign]

    assert "last" == chance.weigh(((1, "first"), (2, "last")))
