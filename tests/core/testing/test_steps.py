"""Steps of the state machine, each encoded as one number."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.core.testing.distorted import connected
from triclinium_core.testing.fault_catalogue import DATA_FAULTS
from triclinium_core.testing.operation_templates import COUNTER_KINDS, TEXT_KINDS, OperationTemplate
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.state_machine import KVStateMachine
from triclinium_core.testing.steps import NAME_BITS, NAMES, NUMBER_BITS, TARGET_BITS, Choices, Step, Steps

DEFAULT, OTHER = KVStateMachine.keyspaces
STEPS = Steps([Place(DEFAULT, "ada"), Place(OTHER, "ada")], [Place(DEFAULT, "hits")])
REST = 1 << NUMBER_BITS - NAME_BITS
RESTS = [0, REST - 1, *(number * 104_729 % REST for number in range(6000))]


def all_steps(name: str) -> list[Step]:
    """Return steps of one name with many operations and further arguments."""
    return [STEPS.make(NAMES.index(name) + (rest << NAME_BITS)) for rest in RESTS]


def test_smaller_numbers_are_simpler_steps() -> None:
    """The number 0 moves all bytes, and the number of a name is its simplest operation with default options."""
    exchange = STEPS.make(NAMES.index("exchange"))

    assert "flow()" == repr(STEPS.make(0))
    assert "exchange(template=<upsert ada>, retry_strategy='default')" == repr(exchange)
    assert "<get inventory.hotel/ada cas=1>" == repr(OperationTemplate("get", Place(OTHER, "ada"), cas=1))


def test_every_operation_has_a_number() -> None:
    """Every kind of operation is made for its documents, and every number of a name is in use."""
    made = [STEPS.make(NAMES.index("exchange") + (target << NAME_BITS)) for target in range(1 << TARGET_BITS)]
    templates = [step.arguments["template"] for step in made]
    found = {(each.kind, each.place.key) for each in templates if isinstance(each, OperationTemplate)}

    assert {*((kind, "ada") for kind in TEXT_KINDS), *((kind, "hits") for kind in COUNTER_KINDS)} == found
    assert 1 << NAME_BITS == len(NAMES)


def test_every_fault_strikes_an_exchange() -> None:
    """The numbers of a struck exchange reach each fault of the catalogue."""
    assert {*chain(*DATA_FAULTS)} == {step.arguments["fault"] for step in all_steps("struck_exchange")}


def test_a_move_has_any_size() -> None:
    """The numbers of a move reach each size between 1 and 120 bytes, and None for all bytes."""
    assert {None, *range(1, 121)} == {step.arguments["size"] for step in all_steps("move")}


@pytest.mark.parametrize("name", sorted({*NAMES}))
def test_steps_can_be_taken(name: str) -> None:
    """A machine takes steps of each name, also without anything to which they apply."""
    for step in all_steps(name)[:8]:
        machine = connected()
        machine.step(step=step)

        assert step.name == name


def test_choices_end_with_first_elements() -> None:
    """Choices use up a number; once nothing of it is left, each choice is the first element."""
    choices = Choices(5)

    assert [2, True, "a"] == [choices.choose(range(3)), choices.choose((False, True)), choices.choose("ab")]
