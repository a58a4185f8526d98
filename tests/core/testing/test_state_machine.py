"""The state machine: whole runs that find a defect and pass without one, how they begin, recover and end."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.core.testing.distorted import (
    Distort,
    DistortedMachine,
    connected,
    is_never_ambiguous,
    loses_answers,
    never_opens,
    newest,
    sends_twice,
)
from triclinium_core.kv.operation.requests import Touch, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.testing.fakes.faults import (
    refuse_connection,
)
from triclinium_core.testing.oracle.submissions import Place, Violation
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.state_machine import COLLECTION_ID, KVStateMachine

DEFAULT, OTHER = KVStateMachine.keyspaces
ADA = Place(DEFAULT, "ada")
FAR_ADA = Place(OTHER, "ada")
HITS = Place(DEFAULT, "hits")
FEW = settings(max_examples=5, stateful_step_count=10, deadline=None, derandomize=True, database=None)
MANY = settings(FEW, max_examples=100, stateful_step_count=20, phases=[Phase.generate])


def distorted(distort: Distort) -> type[KVStateMachine]:
    """Return a machine whose client has a defect."""

    class Distorted(KVStateMachine):
        def make_simulation(self) -> CheckedSimulation:
            """Return a client that is not what it should be."""
            simulation = super().make_simulation()
            simulation.machine = DistortedMachine(simulation.options, distort)
            return simulation

    return Distorted


def test_run_without_a_defect() -> None:
    """The client as it is keeps the laws."""
    run_state_machine_as_test(KVStateMachine, settings=FEW)


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (sends_twice, "was applied 2 times|was ended though nothing was wrong with it"),
        (is_never_ambiguous, "was applied, and is said not to have been"),
        (loses_answers, "is open after its deadline"),
    ],
)
def test_run_with_a_defect(defect: Distort, message: str) -> None:
    """What breaks a law is found: what must never happen, and what must happen at last."""
    with pytest.raises(Violation, match=message):
        run_state_machine_as_test(distorted(defect), settings=MANY)


class Touching(KVStateMachine):
    """A machine with a rule and a law of its own."""

    seen: int = 0

    @rule(key=KVStateMachine.keys)
    def touch(self, key: str) -> None:
        """Give a document a new expiry."""
        self.submit(Touch(self.keyspace, key, 3600))

    @invariant()
    def time_never_goes_back(self) -> None:
        """Nor does the model's."""
        assert self.now == self.model.now
        type(self).seen += 1


def test_run_with_a_rule_and_a_law_of_ones_own() -> None:
    """Both are taken into the run."""
    Touching.seen = 0
    run_state_machine_as_test(Touching, settings=FEW)

    assert Touching.seen > 0


def test_documents_on_the_node() -> None:
    """They are found where they are, as they are now."""
    machine = connected()
    for keyspace, expiry in ((DEFAULT, 0), (OTHER, 5)):
        machine.submit(Upsert(keyspace, "ada", machine.model.unique_values.fragment(), 0, expiry))
    machine.run(0.0)
    found = [machine.document(place) for place in (ADA, FAR_ADA, HITS)]

    assert [b"<1>", b"<2>", None] == [document and document.value for document in found]
    assert 8 == COLLECTION_ID

    machine.run(5.0)

    assert machine.document(ADA) is not None
    assert machine.document(FAR_ADA) is None
    assert 5 == machine.now == machine.model.now

    machine.simulation.now += 1

    assert 6 == machine.now == machine.model.now


@pytest.mark.parametrize("is_busy", [True, False])
def test_recovering(is_busy: bool) -> None:
    """After the last fault the client comes back, and serves; with work meanwhile it is asked for more."""
    machine = connected()
    machine.node.faults.always(None, refuse_connection())
    machine.simulation.lose(newest(machine))
    machine.run(seconds=2.5)
    machine.recover(is_busy=is_busy)
    reads = [result for result in machine.simulation.results.values() if isinstance(result, GetResult)]

    assert machine.simulation.is_healthy
    assert [b"<1>", b"<2>"] == [result.data for result in reads]
    assert is_busy == (len(machine.model.submissions) > 5)


def test_never_recovering() -> None:
    """Who is not back long after the last fault never will be."""
    machine = distorted(never_opens)()
    machine.begin(is_connected=False, strike=None)

    with pytest.raises(Violation, match=r"not serving 60 s after the last fault: None: CONNECTING"):
        machine.recover(is_busy=False)
    assert 60 == machine.now


def test_recovering_with_a_frame_too_many() -> None:
    """What was sent and answered is counted when nothing is under way."""
    machine = connected()
    for _ in range(2):
        machine.simulation.ledger.completed(machine.model.submissions[1])

    with pytest.raises(Violation, match="GET b'ada' was sent 1 times; by its results and retries 3 to 1 times"):
        machine.recover(is_busy=False)


def test_ending() -> None:
    """A run ends with a recovery, unless it has failed already."""
    machine = connected()
    machine.teardown()

    assert 5 == len(machine.model.submissions)

    failed = connected()
    try:
        raise Violation("found")
    except Violation:
        failed.teardown()

    assert 1 == len(failed.model.submissions)
