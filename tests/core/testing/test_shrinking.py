"""Failing examples of the state machine: their size, and the number of runs that Hypothesis needs to shrink them."""

from __future__ import annotations

import sys

import pytest
from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.core.testing.distorted import distorted, is_never_ambiguous
from triclinium_core.kv.operation.document_operations import GetAndLock, Increment
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.state_machine import KVStateMachine

RUNS_MAX = 200
"""Maximum number of runs after the first failure."""


class Locking(KVStateMachine):
    """A state machine with a rule, and a law that the first lock breaks."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Lock a document."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def nothing_is_locked(self) -> None:
        """Check that no caller holds a lock."""
        assert not self.model.locks


class Visiting(KVStateMachine):
    """A state machine with a rule, and a law that the second increment breaks."""

    @rule(key=KVStateMachine.counters)
    def visit(self, key: str) -> None:
        """Increment a counter."""
        self.submit_count(Increment, key)

    @invariant()
    def counter_is_new(self) -> None:
        """Check that the counter has the value of its creator."""
        document = self.document(Place(self.keyspace, "hits"))
        assert document is None or int(document.value) % (1 << 48) == 0


class Appending(KVStateMachine):
    """A state machine with a law that is broken by the first append to an existing document."""

    @invariant()
    def documents_have_one_part(self) -> None:
        """Check that each document has exactly one value."""
        found = [self.document(Place(keyspace, "ada")) for keyspace in self.keyspaces]
        assert all(document is None or document.value.count(b"<") == 1 for document in found)


@pytest.mark.parametrize(
    ("machine", "steps_max"),
    [(Locking, 3), (Visiting, 3), (Appending, 2), (distorted(is_never_ambiguous), 2)],
    ids=["a lock", "a count", "an append", "a wrong error"],
)
def test_planted_bug_shrinks_quickly(machine: type[KVStateMachine], steps_max: int) -> None:
    """A planted bug shrinks to its few necessary steps, within 200 runs after the first failure."""
    runs: list[bool] = []

    class Counted(machine):  # type: ignore[misc, valid-type]  # the class is a parameter
        def teardown(self) -> None:
            """End the run, and record whether it failed."""
            runs.append(isinstance(sys.exc_info()[1], AssertionError))
            try:
                super().teardown()
            except AssertionError:
                runs[-1] = True
                raise

    given = settings(derandomize=True, database=None, deadline=None, report_multiple_bugs=False, max_examples=400)
    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(Counted, settings=settings(given, phases=[Phase.generate, Phase.shrink]))
    first = runs.index(True)
    lines = "\n".join(caught.value.__notes__).splitlines()
    steps = [line for line in lines if line.startswith(("state.step(", "state.lock(", "state.visit("))]

    assert len(runs) - first <= RUNS_MAX
    assert len(steps) <= steps_max, lines
