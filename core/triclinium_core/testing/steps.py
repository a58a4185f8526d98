"""Steps of a key-value state machine, and the Hypothesis strategy that draws them.

Every step is drawn as one number: from the lowest bits, its name, its operation, and all further arguments. Hypothesis
shrinks a history by deleting and lowering the numbers in it. If each rule drew its parts separately, a step would take
two to twenty numbers. Most deletions would then end within a step and shift the numbers of all later steps, which turns
them into other steps. A lower number is a simpler step, and 0 the simplest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from triclinium_core.contract.neutral import LossCause
from triclinium_core.shown import total_repr
from triclinium_core.testing.fakes.faults import refuse_connection
from triclinium_core.testing.fault_catalogue import DATA_FAULTS, TARGETS, TIMES
from triclinium_core.testing.hypothesis_strategies import RETRY_STRATEGY_NAMES, Strike
from triclinium_core.testing.operation_templates import (
    COUNTER_KINDS,
    DURABILITY_LEVELS,
    DURABLE_KINDS,
    TEXT_KINDS,
    OperationTemplate,
    draw_template,
)
from triclinium_core.testing.oracle.submissions import Place

V = TypeVar("V")

NUMBER_BITS = 24
"""Size in bits of the number that encodes a step. Hypothesis draws larger numbers unevenly."""
NAME_BITS = 4
TARGET_BITS = 7
"""Size in bits of the position of the operation. Higher positions start again at the simplest operations."""
SIMPLEST_KINDS = ("upsert", "get", "increment", "insert", "append", "remove")
"""Kinds of operations that a failing example prefers to others."""
CUT_MAX = 120
"""Maximum number of bytes that a step moves, unless it moves all."""
REPEATED_MAX = 5
"""Maximum number of operations in one ``go_silent``."""

_FLAGS = (False, True)
_POSITIONS = range(4)
_SECONDS = (0.001, 0.05, 0.6, 2.5, 25.0)
_SIZES = (*(None,) * CUT_MAX, *range(1, CUT_MAX + 1))
"""Numbers of bytes to move in one step. None moves all bytes, in half of the steps."""
_CAUSES = (LossCause.RESET, LossCause.UNREACHABLE, LossCause.TLS)


class Choices:
    """Choices that a number encodes. The number 0 encodes first elements only."""

    def __init__(self, number: int) -> None:
        self._rest = number

    def choose(self, elements: Sequence[V]) -> V:
        """Return one of the elements: the first one if earlier choices have used up the number."""
        self._rest, position = divmod(self._rest, len(elements))
        return elements[position]


class Step:
    """One step: the name of a method of the state machine, and its arguments."""

    # Not a dataclass, because Hypothesis ignores the ``__repr__`` of one.
    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: Mapping[str, object]) -> None:
        self.name: str = name
        self.arguments: Mapping[str, object] = arguments

    @total_repr
    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class Steps:
    """Steps on given documents.

    Args:
        texts: documents of bytes, the simplest first.
        counters: documents with a number, the simplest first.
    """

    def __init__(self, texts: Sequence[Place], counters: Sequence[Place]) -> None:
        by_place = [
            *((position, kind, place) for position, place in enumerate(texts) for kind in TEXT_KINDS),
            *((position, kind, place) for position, place in enumerate(counters) for kind in COUNTER_KINDS),
        ]
        self.targets: Sequence[tuple[str, Place]] = [
            (kind, place) for _, kind, place in sorted(by_place, key=lambda each: (each[0], _rank(each[1])))
        ]
        """Kinds of operations with their documents, the simplest first."""

    def make(self, number: int) -> Step:
        """Return the step that a number encodes."""
        name, rest = NAMES[number % (1 << NAME_BITS)], number >> NAME_BITS
        if name not in _OF_OPERATION:
            return Step(name, _ARGUMENTS[name](Choices(rest)))
        kind, place = self.targets[rest % (1 << TARGET_BITS) % len(self.targets)]
        return Step(name, _OF_OPERATION[name](kind, place, Choices(rest >> TARGET_BITS)))

    def strategy(self) -> st.SearchStrategy[Step]:
        """Return a strategy for steps."""

        @st.composite
        def step(draw: st.DrawFn) -> Step:
            return self.make(draw(st.integers(0, (1 << NUMBER_BITS) - 1)))

        return step()


@st.composite
def beginnings(draw: st.DrawFn) -> Step:
    """Return a strategy for the first step, ``begin``, drawn as one number."""
    choices = Choices(draw(st.integers(0, (1 << NUMBER_BITS) - 1)))
    is_connected, has_strike = choices.choose(_FLAGS), choices.choose(_FLAGS)
    return Step("begin", {"is_connected": is_connected, "strike": _strike(choices) if has_strike else None})


def _strike(choices: Choices) -> Strike:
    target, times = choices.choose((*(target for _, target in TARGETS), None)), choices.choose(TIMES)
    if target is None:
        return Strike(None, refuse_connection(), times)
    opcodes, kinds = target
    fault = choices.choose(choices.choose(kinds))
    return Strike(choices.choose(opcodes), fault, times)


def _filled(kind: str, place: Place, choices: Choices) -> OperationTemplate:
    """Return a template whose further fields are drawn."""
    template = draw_template(kind, place, choices.choose)
    return replace(template, durability=choices.choose(DURABILITY_LEVELS)) if kind in DURABLE_KINDS else template


def _rank(kind: str) -> int:
    return SIMPLEST_KINDS.index(kind) if kind in SIMPLEST_KINDS else len(SIMPLEST_KINDS)


def _call(kind: str, place: Place, choices: Choices) -> Mapping[str, object]:
    retry_strategy = choices.choose(RETRY_STRATEGY_NAMES)
    return {"template": _filled(kind, place, choices), "retry_strategy": retry_strategy}


def _struck_call(kind: str, place: Place, choices: Choices) -> Mapping[str, object]:
    fault, is_for_question = choices.choose(choices.choose(DATA_FAULTS)), choices.choose(_FLAGS)
    return {**_call(kind, place, choices), "fault": fault, "is_for_question": is_for_question}


def _silence(kind: str, place: Place, choices: Choices) -> Mapping[str, object]:
    times = choices.choose(range(1, REPEATED_MAX + 1))
    return {"members": [_filled(kind, place, choices)] * times}


_OF_OPERATION: Mapping[str, Callable[[str, Place, Choices], Mapping[str, object]]] = {
    "exchange": _call,
    "operate": _call,
    "struck_exchange": _struck_call,
    "go_silent": _silence,
}
_ARGUMENTS: Mapping[str, Callable[[Choices], Mapping[str, object]]] = {
    "flow": lambda choices: {},
    "run": lambda choices: {"seconds": choices.choose(_SECONDS)},
    "stall": lambda choices: {"seconds": choices.choose(_SECONDS)},
    "recover": lambda choices: {"is_busy": choices.choose(_FLAGS)},
    "abandon": lambda choices: {"position": choices.choose(_POSITIONS)},
    "decide": lambda choices: {"answer": choices.choose(("retry", "refuse", "raise", "nonsense"))},
    "go_on": lambda choices: {"position": choices.choose(_POSITIONS)},
    "call_off": lambda choices: {"finishes_late": choices.choose(_FLAGS)},
    "move": lambda choices: {"position": choices.choose(_POSITIONS), "size": choices.choose(_SIZES)},
    "lose_stream": lambda choices: {
        "position": choices.choose(_POSITIONS),
        "cause": choices.choose(_CAUSES),
        "begun": choices.choose(range(101)),
    },
    "strike": lambda choices: {"strike": _strike(choices), "is_standing": choices.choose(_FLAGS)},
}

NAMES: Sequence[str] = ("flow", *_OF_OPERATION, *(name for name in _ARGUMENTS if name != "flow"), "move")
"""Names of the steps, the simplest first: one for each number of ``NAME_BITS``."""
