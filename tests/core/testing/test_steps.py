"""Steps of the state machine, which two numbers encode."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.core.testing.distorted import connected
from triclinium_core.testing.fault_catalogue import DATA_FAULTS
from triclinium_core.testing.operation_templates import COUNTER_KINDS, TEXT_KINDS, OperationTemplate
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.state_machine import KVStateMachine
from triclinium_core.testing.steps import DETAIL_BITS, NAMES, Choices, Step, Steps

DEFAULT, OTHER = KVStateMachine.keyspaces
STEPS = Steps([Place(DEFAULT, "ada"), Place(OTHER, "ada")], [Place(DEFAULT, "hits")])
DETAILS = [0, (1 << DETAIL_BITS) - 1, *(number * 7919 % (1 << DETAIL_BITS) for number in range(2000))]


def all_steps(name: str) -> list[Step]:
    """Return steps of one name with many operations and details."""
    base = NAMES.index(name)
    return [
        STEPS.make(base + len(NAMES) * (number % len(STEPS.targets)), details) for number, details in enumerate(DETAILS)
    ]


def test_smaller_numbers_are_simpler_steps() -> None:
    """The number 0 moves all bytes, and the details 0 give an operation its default options."""
    exchange = STEPS.make(NAMES.index("exchange"), 0)

    assert "flow()" == repr(STEPS.make(0, 0))
    assert "exchange(template=<upsert ada>, retry_strategy='default')" == repr(exchange)
    assert "<get inventory.hotel/ada cas=1>" == repr(OperationTemplate("get", Place(OTHER, "ada"), cas=1))


def test_every_operation_has_a_number() -> None:
    """Every kind of operation is made for its documents, and no number lies outside the table."""
    made = [STEPS.make(number, 0).name for number in range(len(NAMES) * len(STEPS.targets))]
    last = STEPS.make(len(made) - 1, 0)

    assert {*((kind, "ada") for kind in TEXT_KINDS), *((kind, "hits") for kind in COUNTER_KINDS)} == {
        (kind, place.key) for kind, place in STEPS.targets
    }
    assert {*NAMES} == {*made}
    assert NAMES[-1] == last.name


def test_every_fault_strikes_an_exchange() -> None:
    """The details of a struck exchange reach each fault of the catalogue."""
    assert {*chain(*DATA_FAULTS)} == {step.arguments["fault"] for step in all_steps("struck_exchange")}


@pytest.mark.parametrize("name", sorted({*NAMES}))
def test_steps_can_be_taken(name: str) -> None:
    """A machine takes each step, also one without anything to apply to."""
    for step in all_steps(name)[:8]:
        machine = connected()
        machine.step(step=step)

        assert step.name == name


def test_choices_end_with_first_elements() -> None:
    """Each choice takes its own bits, and a choice without bits is the first element."""
    choices = Choices(0b1_10)

    assert [2, True, "a"] == [choices.choose(range(3)), choices.choose((False, True)), choices.choose("ab")]
