"""Event tapes of simulations: a recorded history is the same history, and each of its tapes replays."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from triclinium_core.event_tape.replay import replay
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.testing.simulation import Simulation
from triclinium_core.testing.simulation.endings import has_endings
from triclinium_core.testing.simulation.history import play
from triclinium_core.testing.simulation.token_strategies import has_token_strategies
from triclinium_core.testing.state_machine import KVStateMachine, TokenStateMachine
from triclinium_core.testing.tapes import Tapes

QUICK = settings(
    stateful_step_count=20, deadline=None, derandomize=True, database=None, phases=[Phase.generate, Phase.shrink]
)


def calls_of(tape: bytes) -> int:
    """Return the number of calls on a tape, which must replay."""
    result = replay([tape])
    assert (None, None) == (result.difference, result.ending)
    return result.calls


def test_each_client_has_a_tape() -> None:
    """Each client of a simulation, also one that replaces another, has a tape that replays; an unused one has none."""
    tapes = Tapes()
    simulation = Simulation(clients=2, make_machine=tapes.make_machine)
    for _ in range(2):
        simulation.submit(Get(Keyspace("default"), "ada"))
    simulation.run()
    before = len(tapes.contents())
    simulation.replace_client(1)
    simulation.submit(Get(Keyspace("default"), "ada"))
    simulation.submit(Get(Keyspace("default"), "ada"))
    simulation.run()

    assert (2, 3) == (before, len(tapes.contents()))
    assert all(calls_of(tape) > 3 for tape in tapes.contents())


@pytest.mark.history
def test_recorded_history_is_the_same() -> None:
    """A recorded history with token strategies and closed clients has the same steps, and its tapes replay."""
    seed = next(seed for seed in range(1000) if has_endings(seed) and has_token_strategies(seed))
    tapes = Tapes()
    recorded, plain = play(seed, make_machine=tapes.make_machine), play(seed)

    assert (plain.timeline, None) == (recorded.timeline, recorded.law)
    assert sum(map(calls_of, tapes.contents())) > 500


class Hasty(TokenStateMachine):
    """A state machine with a law that the second read breaks."""

    reads = 0

    @rule()
    def read(self) -> None:
        """Read a document."""
        self.reads += 1
        self.submit(Get(self.keyspace, "ada"))

    @invariant()
    def one_read(self) -> None:
        """Check that there is at most one read."""
        assert self.reads < 2


class Stubborn(KVStateMachine):
    """A state machine that breaks a law when it recovers."""

    def recover(self, is_busy: bool) -> None:
        """Recover, and raise."""
        super().recover(is_busy)
        raise AssertionError("it never recovers")


@pytest.mark.parametrize(("machine", "count"), [(Hasty, 1), (Stubborn, 1), (KVStateMachine, 0)])
def test_failing_example_leaves_one_tape(
    machine: type[RuleBasedStateMachine], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state machine passes on the tape of its minimal failing example, which replays, and nothing if it succeeds."""
    kept: list[tuple[str, bytes]] = []
    monkeypatch.setattr(KVStateMachine, "keep_tape", lambda name, tape: kept.append((name, tape)))
    with pytest.raises(AssertionError) if count else nullcontext():
        run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=200 if count else 3))

    assert [machine.__name__] * count == [name for name, _ in kept]
    assert all(calls_of(tape) for _, tape in kept)
    if machine is Hasty:
        assert 2 == kept[0][1].count(b'"OperationSubmitted"')
