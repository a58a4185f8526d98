"""Conditions of faults: requests, times and probabilities, and which of several faults wins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import Fault, FaultConditions, Faults, delay, garble, hang_up, locked, refuse_connection
from triclinium_core.testing.fakes import fault_table
from triclinium_core.testing.fakes.fault_conditions import FaultClock

GET, SET = Opcode.GET, Opcode.SET


class Numbers:
    """Source of randomness with the given numbers, which must suffice."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        """Return the next number."""
        return self.numbers.pop(0)


@rows(
    ("conditions", "struck"),
    [
        ({}, "x.........."),
        ({"after_requests": 3}, "...x......."),
        ({"at_seconds": 4}, "....x......"),
        ({"at_seconds": 2, "after_requests": 4}, "....x......"),
        ({"at_seconds": 6, "after_requests": 4}, "......x...."),
    ],
)
def test_next_fault_starts_when_all_conditions_hold(conditions: FaultConditions, struck: str) -> None:
    """With one get per second, a fault of ``next`` strikes the first get at which all of its conditions hold."""
    assert struck == played(conditions, times=1)


@rows(
    ("conditions", "struck"),
    [
        ({"for_seconds": 2}, "xx........."),
        ({"at_seconds": 3, "for_seconds": 2}, "...xx......"),
        ({"after_requests": 3, "for_seconds": 2.5}, "...xx......"),
        ({"after_requests": 3}, "...xxxxxxxx"),
    ],
)
def test_standing_fault_ends(conditions: FaultConditions, struck: str) -> None:
    """A standing fault starts once ``at_seconds`` and ``after_requests`` hold, and lasts ``for_seconds``, if given."""
    assert struck == played(conditions, times=None)


def played(conditions: FaultConditions, *, times: int | None) -> str:
    """Return an ``x`` for each of eleven gets, one per second, that a fault strikes, and a dot for any other get."""
    clock = FaultClock()
    faults = Faults(clock)
    if times is None:
        faults.always(GET, hang_up(), **conditions)
    else:
        faults.next(GET, hang_up(), times, **conditions)
    struck = ""
    for second in range(11):
        clock.now = float(second)
        faults.take(SET)
        struck += "." if faults.take(GET) is None else "x"
    return struck


def test_time_counts_from_the_zero_of_the_clock() -> None:
    """If the zero of the clock is set after a fault was added, its time counts from there."""
    clock = FaultClock()
    faults = Faults(clock)
    faults.next(GET, hang_up(), at_seconds=1)
    clock.zero, clock.now = 5.0, 5.5
    early = faults.take(GET)
    clock.now = 6.0

    assert (None, hang_up()) == (early, faults.take(GET))


def test_unused_faults_end_with_their_time() -> None:
    """A fault of ``next`` whose time is over is neither pending nor listed, and does not strike."""
    clock = FaultClock()
    faults = Faults(clock)
    faults.next(GET, hang_up(), 5, for_seconds=1)
    faults.next(SET, garble())
    faults.always(GET, locked(), for_seconds=1)
    before = faults.pending, len(faults.entries)
    clock.now = 1.0

    assert (6, 3) == before
    assert faults.take(GET) is None
    assert (1, [garble()]) == (faults.pending, [entry.fault for entry in faults.entries])


@rows(
    ("added", "taken"),
    [
        # Faults for a number of times win over standing faults. The oldest of the former wins.
        (
            [("always", GET, garble()), ("next", None, hang_up()), ("next", GET, locked())],
            [hang_up(), locked(), garble()],
        ),
        # A fault of this command wins over a fault of any command, even over a newer one.
        ([("always", GET, garble()), ("always", None, hang_up())], [garble(), garble()]),
        # Of standing faults of the same target, the newest wins.
        ([("always", GET, garble()), ("always", GET, locked())], [locked(), locked()]),
        ([("always", None, garble()), ("always", None, locked())], [locked(), locked()]),
        # A fault of another command or of a service does not match.
        ([("always", SET, garble()), ("next", Service.QUERY, hang_up())], [None]),
    ],
)
def test_winner_among_matching_faults(added: Sequence[tuple[str, Any, Fault]], taken: Sequence[Fault | None]) -> None:
    """Of several faults that match a get, the first in the documented order strikes it."""
    faults = Faults()
    for method, target, fault in added:
        getattr(faults, method)(target, fault)

    assert taken == [faults.take(GET) for _ in taken]


def test_inactive_fault_lets_others_strike() -> None:
    """While the winner has not started or has ended, the next fault in the order strikes."""
    clock = FaultClock()
    faults = Faults(clock)
    faults.always(GET, garble())
    faults.always(GET, locked(), at_seconds=1, for_seconds=1)
    taken = []
    for clock.now in (0.0, 1.0, 2.0):
        taken.append(faults.take(GET))

    assert [garble(), locked(), garble()] == taken


def test_requests_count_for_all_matching_faults() -> None:
    """A request that one fault strikes also counts for ``after_requests`` of the others."""
    faults = Faults()
    faults.next(GET, hang_up(), 2)
    faults.next(GET, garble(), after_requests=2)

    assert [hang_up(), hang_up(), garble(), None] == [faults.take(GET) for _ in range(4)]


def test_draws_follow_the_order_of_winners() -> None:
    """Numbers are drawn in the order of the winners, up to the fault that strikes, and never for certain faults."""
    numbers = Numbers(0.5, 0.1, 0.2, 0.3)
    faults = Faults(FaultClock(numbers))
    faults.always(None, delay(1))
    faults.always(GET, garble(), probability=0.25)
    faults.next(GET, hang_up(), probability=0.25)
    taken = [faults.take(SET), *(faults.take(GET) for _ in range(3))]

    # 0.5 and 0.1: hang_up does not strike, but garble does. 0.2: hang_up strikes and is used up. 0.3: garble does not
    # strike, so delay does.
    assert [delay(1), garble(), hang_up(), delay(1)] == taken
    assert [] == numbers.numbers


@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_share_of_struck_requests(probability: float) -> None:
    """A fault strikes about its probability of all requests, and the same ones with the same seed."""
    runs = []
    for _ in range(2):
        faults = Faults(FaultClock(random.Random(1)))
        faults.always(GET, hang_up(), probability=probability)
        runs.append([faults.take(GET) is not None for _ in range(10_000)])

    assert runs[0] == runs[1]
    assert abs(sum(runs[0]) - 10_000 * probability) < 150


def test_refusals_have_conditions() -> None:
    """A refused connect strikes connects under its conditions, a given number of times or always, but no command."""
    faults = Faults()
    faults.next(None, refuse_connection(), 2, after_requests=1)

    assert (2, None) == (faults.pending, faults.take(GET))
    assert [False, True, True, False] == [faults.take_refusal() for _ in range(4)]

    faults.always(None, refuse_connection())

    assert [True, True] == [faults.take_refusal() for _ in range(2)]
    assert faults.take(GET) is None


@rows(
    ("conditions", "parameter"),
    [
        ({"after_requests": -1}, "after_requests"),
        ({"after_requests": 1.5}, "after_requests"),
        ({"at_seconds": -1}, "at_seconds"),
        ({"at_seconds": float("inf")}, "at_seconds"),
        ({"for_seconds": 0}, "for_seconds"),
        ({"for_seconds": float("nan")}, "for_seconds"),
        ({"probability": 1.1}, "probability"),
        ({"probability": "1"}, "probability"),
        ({"probability": 0.5}, "probability"),
    ],
)
def test_invalid_conditions(conditions: Any, parameter: str) -> None:
    """An invalid condition, or a probability without a source of randomness, raises and adds no fault."""
    faults = Faults()
    for add in (faults.next, faults.always):
        with pytest.raises(errors.InvalidArgumentException) as caught:
            add(GET, hang_up(), **conditions)

        assert parameter == caught.value.parameter
    assert () == faults.entries


def test_number_of_faults_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that has the maximum number of faults refuses more, until some have ended."""
    monkeypatch.setattr(fault_table, "FAULTS_MAX", 2)
    clock = FaultClock()
    faults = Faults(clock)
    faults.next(GET, hang_up())
    faults.always(GET, garble(), for_seconds=1)

    with pytest.raises(errors.InvalidArgumentException, match="maximum"):
        faults.next(GET, locked())
    clock.now = 1.0
    faults.next(GET, locked())
    assert [hang_up(), locked(), None] == [faults.take(GET) for _ in range(3)]
