"""Strategies that decide on failures of an operation, and the effects of a broken strategy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.phases import PHASES, read, write
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry import couchbase
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing.fakes import faults


@rows("answer", [None, 5, "retry", couchbase.RetryAction, LookupError("no such plan")])
def test_strategy_that_is_broken(answer: object) -> None:
    """If a strategy raises or returns no action, only its operation fails, with the exception as cause (C28)."""

    class Broken:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SET, faults.temporary_failure())
    error = simulation.failure(errors.RequestCanceledException, simulated.upsert(), retry_strategy=Broken())

    assert (LookupError if isinstance(answer, Exception) else TypeError) is type(error.__cause__)
    simulation.result(simulated.upsert())


def test_own_strategy_and_context() -> None:
    """The strategy of an operation replaces that of the client; it gets the ``client_context`` and the elapsed time."""
    seen: list[couchbase.RetryRequest] = []

    class Curious:
        def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason) -> couchbase.RetryAction:
            seen.append(request)
            return (
                couchbase.RetryAction.after(0.5)
                if len(seen) == 1
                else couchbase.RetryAction.no_retry(errors.InvalidArgumentException)
            )

    simulation = simulated.ready(options=simulated.client_options(retry_strategy=couchbase.FailFastRetryStrategy()))
    simulation.node.faults.always(Opcode.SET, faults.temporary_failure())
    # The age counts from the submission, although the client is already a second old.
    simulation.live(1.0)
    simulation.failure(
        errors.InvalidArgumentException, simulated.upsert(), retry_strategy=Curious(), client_context={"robot": True}
    )

    assert [{"robot": True}] * 2 == [request.client_context for request in seen]
    assert [(0.0, 2.5, 0), (0.5, 2.0, 1)] == [
        (request.age, request.remaining, request.retry_attempts) for request in seen
    ]
    assert {("upsert", "k", False)} == {(request.operation, request.key, request.idempotent) for request in seen}


def consulted() -> tuple[simulated.Recorded, neutral.Token]:
    """Return a simulation with a write that waits for its asynchronous strategy, and the write's token."""
    return PHASES["consulting"](write)


def test_strategy_decides_to_retry() -> None:
    """If the strategy decides to retry, the client sends the operation again after the delay."""
    simulation, token = consulted()
    simulation.live(0.5)
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.after(0.25)))
    simulation.run()

    assert token in simulation.results
    assert 0.75 == simulation.settled_at[token]


def test_strategy_decides_not_to_retry() -> None:
    """If the strategy refuses, the operation fails with the strategy's exception, or with that of the status."""
    simulation, token = consulted()
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.no_retry()))
    simulation.error(errors.TemporaryFailureException, token)

    simulation, token = consulted()
    simulation.feed(
        neutral.StrategyDecided(token, couchbase.RetryAction.no_retry(errors.AuthenticationFailureException))
    )
    simulation.error(errors.AuthenticationFailureException, token)


@pytest.mark.parametrize(
    ("answer", "raised", "cause"),
    [(None, LookupError("no"), LookupError), (None, KeyboardInterrupt(), KeyboardInterrupt), (None, None, TypeError)],
)
def test_strategy_that_fails_to_decide(
    answer: couchbase.RetryAction | None, raised: BaseException | None, cause: type[BaseException]
) -> None:
    """An exception of the strategy is the cause of the error; without a decision, a TypeError is (decision C28)."""
    simulation, token = consulted()
    simulation.feed(neutral.StrategyDecided(token, answer, raised))

    assert cause is type(simulation.error(errors.RequestCanceledException, token).__cause__)


def test_late_decisions_are_ignored() -> None:
    """The client ignores a decision about an operation that has timed out, was abandoned or is unknown."""
    simulation, token = consulted()
    simulation.live(3.0)
    simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.after(0)))
    simulation.feed(neutral.StrategyDecided(neutral.Token(99), couchbase.RetryAction.after(0)))
    other, left = consulted()
    other.abandon(left)
    other.feed(neutral.StrategyDecided(left, couchbase.RetryAction.after(0)))

    simulation.error(errors.UnambiguousTimeoutException, token)
    assert left not in other.settled_at


@pytest.mark.parametrize("phase", ["connecting", "in flight", "waiting"])
def test_an_unexpected_decision_raises(phase: str) -> None:
    """A decision about an operation that does not wait for one is rejected and changes nothing."""
    simulation, token = PHASES[phase](read)

    with pytest.raises(InvalidEvent):
        simulation.feed(neutral.StrategyDecided(token, couchbase.RetryAction.no_retry()))
    assert token not in simulation.settled_at

    simulation.live(simulated.TIMEOUT)

    simulation.error(errors.UnambiguousTimeoutException, token)


def test_always_retried_reasons_consult_no_strategy() -> None:
    """If the reason is always retried, the client does not consult an asynchronous strategy."""
    simulation, _ = consulted()
    simulation.node.faults.next(Opcode.SET, faults.not_my_vbucket())
    token = simulation.finish(simulated.upsert())

    assert token in simulation.results
    assert 1 == len(simulation.consulted)
