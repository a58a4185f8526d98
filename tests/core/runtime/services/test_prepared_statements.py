"""Requests for prepared statements, and the cache of their plans."""

from __future__ import annotations

import pytest

from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.services import prepared_statements
from triclinium_core.services.query.query_request import PlanKey, PreparedPlan, PrepareRequest, QueryRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer


def key(statement: str, context: str = "", *, flex_index: bool = False) -> PlanKey:
    """Return the key of a statement."""
    return PlanKey(statement, context, flex_index)


def test_remembering() -> None:
    """The cache stores plans by statement, scope and flex index; a newer plan replaces an older one."""
    plans = prepared_statements.PreparedPlans()
    keys = [key("SELECT 1"), key("SELECT 2"), key("SELECT 1", "default:`b`.`s`"), key("SELECT 1", flex_index=True)]
    for number, each in enumerate(keys):
        plans.remember(each, PreparedPlan(f"p{number}"))
    plans.remember(keys[0], PreparedPlan("newer"))
    plans.forget(keys[1])
    plans.forget(keys[1])

    assert [PreparedPlan("newer"), None, PreparedPlan("p2"), PreparedPlan("p3")] == [
        plans.recall(each) for each in keys
    ]
    assert 3 == len(plans)


def test_count() -> None:
    """If the cache is full, it drops the plan that was used least recently."""
    plans = prepared_statements.PreparedPlans(count_max=2)
    plans.remember(key("a"), PreparedPlan("a"))
    plans.remember(key("b"), PreparedPlan("b"))
    plans.recall(key("a"))
    plans.remember(key("c"), PreparedPlan("c"))

    assert [PreparedPlan("a"), None, PreparedPlan("c")] == [plans.recall(key(name)) for name in "abc"]


def test_size() -> None:
    """The cache drops plans to stay below its maximum size, but always keeps the newest plan."""
    plans = prepared_statements.PreparedPlans(size_max=100)
    plans.remember(key("a"), PreparedPlan("a", "x" * 60))
    plans.remember(key("a"), PreparedPlan("a", "y" * 60))
    plans.remember(key("b"), PreparedPlan("b", "x" * 30))
    kept = [plans.recall(key(name)) is not None for name in "ab"]
    plans.remember(key("c"), PreparedPlan("c", "x" * 1000))

    assert [True, True] == kept
    assert 1 == len(plans)
    assert plans.recall(key("c")) is not None


def test_repr_of_a_plan() -> None:
    """The repr of a plan contains its name but not the encoded plan."""
    assert "PreparedPlan('p1')" == repr(PreparedPlan("p1", "x" * 5000))


QUERY = QueryRequest(statement="SELECT 1", adhoc=False)
PLAN = HttpResponse(200, b'{"results":[{"name":"p1","encoded_plan":"abc"}]}')


def prepared() -> prepared_statements.PreparedStatements:
    """Return prepared statements with a stored plan of the query."""
    statements = prepared_statements.PreparedStatements(KnownConfigs())
    statements.learn(statements.message(QUERY), PLAN)
    return statements


def test_an_adhoc_query_is_not_prepared() -> None:
    """The client sends an ad hoc query unchanged and stores no plan from its response."""
    statements, adhoc = prepared_statements.PreparedStatements(KnownConfigs()), QueryRequest(statement="SELECT 1")
    statements.learn(adhoc, HttpResponse(200, b'{"prepared":"p1"}'))

    assert adhoc == statements.message(adhoc)
    assert isinstance(statements.message(QUERY), PrepareRequest)


def test_an_enhanced_preparation_yields_a_plan() -> None:
    """If the response to an enhanced preparation names a plan, the client stores the plan."""
    statements, enhanced = prepared_statements.PreparedStatements(KnownConfigs()), QUERY.preparation(enhanced=True)
    statements.learn(enhanced, HttpResponse(200, b"{}"))
    before = statements.message(QUERY)
    statements.learn(enhanced, HttpResponse(200, b'{"prepared":"p2"}'))

    assert isinstance(before, PrepareRequest)
    assert QUERY.with_plan(PreparedPlan("p2")) == statements.message(QUERY)


@pytest.mark.parametrize("reason", RetryReason)
def test_reasons_that_forget_a_plan(reason: RetryReason) -> None:
    """The client forgets a plan only after a failure with a reason in ``REASONS_TO_PREPARE_AGAIN``."""
    statements = prepared()
    statements.failed(QUERY, reason)

    assert (reason in prepared_statements.REASONS_TO_PREPARE_AGAIN) == isinstance(
        statements.message(QUERY), PrepareRequest
    )


def test_an_invalid_plan() -> None:
    """An invalid plan in a response raises ``MalformedAnswer`` and is not stored."""
    statements = prepared_statements.PreparedStatements(KnownConfigs())

    with pytest.raises(MalformedAnswer):
        statements.learn(statements.message(QUERY), HttpResponse(200, b'{"results":[]}'))
    assert isinstance(statements.message(QUERY), PrepareRequest)
