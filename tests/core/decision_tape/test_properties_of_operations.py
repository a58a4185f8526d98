"""Properties of each operation on the tapes of simulated histories, and of the whole tape."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Sequence
from functools import cache

from tests.core.decision_tape.recorded import Recorded, facts_of, tape_of
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.couchbase import (
    CompleteOperation,
    CompleteRequest,
    FailOperation,
    OperationAbandoned,
    OperationsSubmitted,
    OperationSubmitted,
    RequestSubmitted,
)
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.replay import replay
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.testing.simulation.history import play

SEEDS = (3, 21, 23, 37)
"""Seeds of histories with all kinds of steps, with a schedule from an error map, and with partly lost rows."""


@cache
def histories() -> Sequence[tuple[Sequence[lines.Fact], Counter[int], Counter[int]]]:
    """Return the facts of each client, and how often the token of each of its operations was settled and abandoned."""
    found, clients = [], Recorded()
    settled: dict[int, tuple[Counter[int], Counter[int]]] = {}

    def make(options: ClientOptions, *, rng: Random) -> ClientMachine:
        machine = clients.make_machine(options, rng=rng)
        ends, left = settled[id(machine)] = Counter[int](), Counter[int]()
        asked = set[int]()
        handle = machine.handle

        def counted(event: object, now: float) -> object:
            actions = handle(event, now)  # type: ignore[arg-type]
            match event:
                case OperationSubmitted() | RequestSubmitted():
                    asked.add(event.token)
                case OperationsSubmitted():
                    asked.update(submission.token for submission in event.submissions)
                case OperationAbandoned():
                    left[event.token] += 1
            for action in actions:
                if isinstance(action, CompleteOperation | CompleteRequest | FailOperation) and action.token in asked:
                    ends[action.token] += 1
            return actions

        machine.handle = counted  # type: ignore[method-assign,assignment]
        return machine

    for seed in SEEDS:
        play(seed, make_machine=make)
    for recorder, machine in clients.made:
        found.append((facts_of(tape_of(recorder, machine)), *settled[id(machine)]))
    return found


def operations() -> list[lines.Operation]:
    """Return the operations of all histories."""
    return [fact for facts, _, _ in histories() for fact in facts if isinstance(fact, lines.Operation)]


def test_each_operation_ends_once() -> None:
    """A tape has each token at most once; exactly the settled ones have completed or failed."""
    for facts, settled, abandoned in histories():
        results = {fact.token: fact.result for fact in facts if isinstance(fact, lines.Operation)}
        tokens = Counter(fact.token for fact in facts if isinstance(fact, lines.Operation))
        assert [] == [token for token, number in tokens.items() if number > 1]
        ended = {token for token, result in results.items() if result in ("completed", "failed")}
        left = {token for token, result in results.items() if result == "abandoned"}
        assert ended == set(settled)
        assert left <= set(abandoned) - ended


def test_steps_are_within_the_operation() -> None:
    """The times of an operation are in order from its submission to its end, and each answer follows an attempt."""
    for operation in operations():
        ended_at = operation.steps[-1].at if operation.ended_at is None and operation.steps else operation.ended_at
        times = [operation.submitted_at, *(step.at for step in operation.steps)]
        times += [] if ended_at is None else [ended_at]
        assert times == sorted(times), operation
        in_flight = False
        for step in operation.steps:
            assert in_flight or not isinstance(step, lines.Lost | lines.Responded | lines.ServiceResponded), operation
            in_flight = isinstance(step, lines.Sent)


def test_results_follow_the_decisions() -> None:
    """Exactly the failed operations have an exception class: that of their last decision, if this ended them."""
    for operation in operations():
        assert (operation.result == "failed") == (operation.error is not None), operation
        assert (operation.result == "abandoned") == (operation.abandoned is not None), operation
        assert (operation.result == "open") == (operation.ended_at is None), operation
        decisions = [step.decision for step in operation.steps if not isinstance(step, lines.Sent)]
        final = [decision for decision in decisions if decision.kind in ("fail", "complete")]
        assert final in ([], decisions[-1:]), operation
        if final and final[0].kind == "fail" and operation.result == "failed":
            assert final[0].error == operation.error, operation
        if operation.result == "completed":
            assert "fail" not in [decision.kind for decision in final], operation


def test_simulated_histories_replay_with_agreement() -> None:
    """Every decision of the histories agrees with its replay; the histories have each kind of step."""
    steps = [step for operation in operations() for step in operation.steps]

    assert [] == [operation for operation in operations() if replay(operation) is not None]
    assert set(typing.get_args(lines.Step)) == set(map(type, steps))
    assert any(step.entry and step.entry.algorithm for step in steps if isinstance(step, lines.Responded))
    assert any(step.is_partial for step in steps if isinstance(step, lines.Lost))
    assert {"completed", "failed", "abandoned"} <= {operation.result for operation in operations()}
