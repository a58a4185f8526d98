"""Preparation of a statement: once, and again after its plan has become unusable."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import phases
from tests.core.runtime.services.asking import ANSWER, NO_INDEX, ROWS, STATEMENT, Asking, asking
from tests.core.runtime.services.request_cases import Never
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import RetryAction, RetryReason
from triclinium_core.testing.fakes.faults import refuse_connection
from triclinium_core.testing.fakes.services.answers import FakeAnswer


def test_a_statement_is_prepared_once() -> None:
    """The first execution of a statement prepares it; later executions send the plan."""
    simulation = Asking()

    for _ in range(3):
        simulation.finish(asking(adhoc=False))

    assert [True, False, False] == [b"PREPARE" in each.body for each in simulation.asked]


@pytest.mark.parametrize("code", [4040, 4050, 4070])
def test_a_stale_plan_is_prepared_again(code: int) -> None:
    """If a plan is stale and the strategy permits it, the client forgets the plan and prepares the statement again."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    simulation.nodes.plans.go_stale(code)

    token = simulation.finish(asking(adhoc=False))
    simulation.nodes.plans.go_stale(code)
    error = simulation.failure(errors.PreparedStatementFailureException, asking(adhoc=False), retry_strategy=Never())

    assert ROWS == simulation.rows[token]
    assert [RetryReason.QUERY_PREPARED_STATEMENT_FAILURE] == [retry.reason for retry in simulation.retries]
    assert code == error.context.error_code


def test_a_plan_with_a_missing_index() -> None:
    """If the index of a plan is missing, the client prepares the statement again, because this plan needs the index."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)

    token = simulation.finish(asking(adhoc=False))

    assert ROWS == simulation.rows[token]
    assert [True, False, True] == [b"PREPARE" in each.body for each in simulation.asked]
    assert [RetryReason.QUERY_INDEX_NOT_FOUND] == [retry.reason for retry in simulation.retries]


@pytest.mark.parametrize("decision", [RetryAction.after(0.1), RetryAction.no_retry()])
def test_plan_is_kept_until_the_strategy_decides(decision: RetryAction) -> None:
    """A stale plan is sent until the asynchronous strategy has decided, and is then forgotten."""
    simulation = Asking()
    simulation.finish(asking(adhoc=False))
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, ANSWER)
    token = simulation.request(asking(adhoc=False), retry_strategy=phases.Asking())
    simulation.flow()
    meanwhile = simulation.finish(asking(adhoc=False), retry_strategy=Never())
    before = [b"PREPARE" in each.body for each in simulation.asked]
    simulation.feed(neutral.StrategyDecided(token, decision))
    afterwards = simulation.finish(asking(adhoc=False), retry_strategy=Never())

    assert 1 == len(simulation.consulted)
    assert [True, False, False] == before
    assert [True] == [b"PREPARE" in each.body for each in simulation.asked][len(before) : len(before) + 1]
    assert [ROWS, ROWS] == [simulation.rows[each] for each in (meanwhile, afterwards)]


def test_a_cluster_that_cannot_read_from_replicas() -> None:
    """If the cluster does not support reads from replicas, a query that needs them fails unsent."""
    simulation = Asking(enhanced=False)

    simulation.failure(errors.FeatureNotAvailableException, asking(use_replica=True))

    assert not simulation.asked


def test_a_cluster_without_enhanced_prepared_statements() -> None:
    """Without enhanced prepared statements, the client sends a PREPARE once, and the plan with each execution."""
    simulation = Asking(enhanced=False)

    tokens = [simulation.finish(asking(adhoc=False)) for _ in range(2)]

    assert [ROWS] * 2 == [simulation.rows[token] for token in tokens]
    assert [True, False, False] == [b"PREPARE" in each.body for each in simulation.asked]
    assert [False, True, True] == [b"encoded_plan" in each.body for each in simulation.asked]


@pytest.mark.parametrize("end", ["deadline", "refused"])
def test_prepared_statement_that_cannot_be_executed(end: str) -> None:
    """If a prepared statement gets no connection, it fails once: at its deadline, or when no connection opens."""
    simulation = Asking(enhanced=False, max_http_connections=1, timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer("SELECT slow", FakeAnswer(rows=[1], seconds=60.0))
    simulation.run()
    token = simulation.request(asking(adhoc=False), retry_strategy=Never())
    slow = simulation.request(asking("SELECT slow", readonly=True), retry_strategy=Never())
    simulation.flow()
    context = simulation.machine.error_context(token, simulation.now)
    if end == "refused":
        simulation.nodes[0].faults.always(None, refuse_connection())
        simulation.lose(max(simulation.links))
    simulation.run()

    assert context is not None
    assert ("in_flight", 1) == (context.state, len([each for each in simulation.asked if b"PREPARE" in each.body]))
    expected = errors.UnambiguousTimeoutException if end == "deadline" else errors.RequestCanceledException
    assert expected is type(simulation.errors[token])
    assert {str(RetryReason.SOCKET_NOT_AVAILABLE)} == simulation.errors[token].context.retry_reasons
    assert slow in simulation.errors
    assert 0 == simulation.open_operations
