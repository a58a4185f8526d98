"""Explanations of one case under a token strategy, as the client's own machine and the strategy produce them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
from triclinium_core import errors
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import Happening, KvAnswer
from triclinium_core.explain.explanation import Outcome
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import DispatchFailed, HandedOver, RetryReason, Service, SocketClosed, Status
from triclinium_core.retry.smithy import StandardRetryStrategy, as_async

BUSY = KvAnswer(Status.TEMPORARY_FAILURE)


def standard(quota: int | None = None) -> StandardRetryStrategy:
    """Return a strategy whose jitter draws the longest delays."""
    return StandardRetryStrategy(rng=Fixed(1.0), quota_capacity=quota)


def case(happened: Happening, strategy: AnyRetryStrategy, **fields: Any) -> CouchbaseCase:
    """Return a case in which this event happens to an upsert."""
    return CouchbaseCase(service=Service.KV, operation="upsert", happened=happened, strategy=strategy, **fields)


def test_strategy_decides_and_quota_pays() -> None:
    """The strategy sets the delay; the facts have the strategy's arguments and the quota before and after the call."""
    explanation = explain(case(BUSY, standard()))
    facts = explanation.facts

    assert (Outcome.RETRY,) == explanation.outcomes
    assert ("StandardRetryStrategy", "strategy", 1000) == (facts["strategy"], facts["decided_by"], facts["delay_ms"])
    assert {
        "retry_safe": True,
        "throttling": True,
        "timeout": False,
        "retry_after": None,
        "quota_before": 500,
        "quota_after": 495,
    } == facts["token"]


@pytest.mark.parametrize("strategy", [standard(4), TokenScope(standard(4), "orders")])
def test_empty_quota_refuses(strategy: AnyRetryStrategy) -> None:
    """If the quota is empty, the retry is refused; the explanation names the strategy, even inside a token scope."""
    facts = explain(case(BUSY, strategy)).facts

    assert ("fail", "StandardRetryStrategy") == (facts["action"], facts["strategy"])
    assert "quota" in str(facts["strategy_answer"])


@pytest.mark.parametrize(
    ("happened", "decided_by", "action"),
    [
        (KvAnswer(Status.NOT_MY_VBUCKET), "controlled backoff", "retry"),
        (DispatchFailed(RetryReason.AUTHENTICATION_ERROR), "terminal reason", "fail"),
        (SocketClosed(HandedOver.ALL), "orchestrator", "fail"),
        (KvAnswer(Status.KEY_NOT_FOUND), "response", "fail"),
    ],
)
def test_other_decisions_do_not_consult_the_strategy(happened: Happening, decided_by: str, action: str) -> None:
    """If the machine decides without the strategy, the facts have no answer and no token of the strategy."""
    strategy = standard(0)
    facts = explain(case(happened, strategy)).facts

    assert (decided_by, action, None, None) == (
        facts["decided_by"],
        facts["action"],
        facts["strategy_answer"],
        facts["token"],
    )


def test_earlier_retries_are_paid_for() -> None:
    """The quota pays for the earlier retries; a case with more retries than the strategy permits is refused."""
    facts: Any = explain(case(BUSY, standard(), attempt=1)).facts

    assert (495, 490) == (facts["token"]["quota_before"], facts["token"]["quota_after"])

    with refusal_of("attempt", kind=errors.InvalidArgumentException):
        explain(case(BUSY, standard(), attempt=3))


def test_async_strategy_is_consulted() -> None:
    """With an asynchronous strategy the explanation ends with its call, because the result of the call is unknown."""
    assert (Outcome.CONSULT,) == explain(case(BUSY, as_async(standard()))).outcomes


def test_clauses_include_the_token_decision() -> None:
    """The clauses and the sentences have the decision from the table of the token strategies."""
    explanation = explain(case(BUSY, standard()))

    assert "decision T2" in explanation.clauses
    assert any("decision T2" in sentence for sentence in explanation.sentences())
