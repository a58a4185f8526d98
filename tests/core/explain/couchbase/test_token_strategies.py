"""One case under a token strategy, told by the machine and the strategy that the client runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Fixed
from triclinium_core import errors
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import Happening, KvAnswer
from triclinium_core.explain.explanation import Outcome
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import DispatchFailed, HandedOver, RetryReason, Service, SocketClosed, Status
from triclinium_core.retry.smithy import StandardRetryStrategy, as_async

BUSY = KvAnswer(Status.TEMPORARY_FAILURE)


def standard(quota: int | None = None) -> StandardRetryStrategy:
    """Return a strategy whose jittered delays are the longest."""
    return StandardRetryStrategy(rng=Fixed(1.0), quota_capacity=quota)


def case(happened: Happening, strategy: AnyRetryStrategy, **fields: Any) -> CouchbaseCase:
    """Return a write to which this happened."""
    return CouchbaseCase(service=Service.KV, operation="upsert", happened=happened, strategy=strategy, **fields)


def test_the_strategy_is_asked_and_its_quota_pays() -> None:
    """The delay is its own, and the facts say what it was shown."""
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
def test_an_empty_quota_refuses_in_its_own_words(strategy: AnyRetryStrategy) -> None:
    """A scope is looked through."""
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
def test_what_no_strategy_decides_is_not_put_to_it(happened: Happening, decided_by: str, action: str) -> None:
    """Its quota stays as it was, be it empty."""
    strategy = standard(0)
    facts = explain(case(happened, strategy)).facts

    assert (decided_by, action, None, None) == (
        facts["decided_by"],
        facts["action"],
        facts["strategy_answer"],
        facts["token"],
    )


def test_retries_that_were_done_were_permitted_and_paid() -> None:
    """More of them than the strategy permits cannot have been done."""
    facts: Any = explain(case(BUSY, standard(), attempt=1)).facts

    assert (495, 490) == (facts["token"]["quota_before"], facts["token"]["quota_after"])

    with pytest.raises(errors.InvalidArgumentException) as caught:
        explain(case(BUSY, standard(), attempt=3))

    assert "attempt" == caught.value.parameter


def test_a_strategy_that_has_to_be_awaited_is_awaited() -> None:
    """Nobody can say what it will answer."""
    assert (Outcome.CONSULT,) == explain(case(BUSY, as_async(standard()))).outcomes


def test_every_clause_that_is_named_stands_in_the_list() -> None:
    """That of the table too."""
    explanation = explain(case(BUSY, standard()))

    assert "decision T2" in explanation.clauses
    assert any("decision T2" in sentence for sentence in explanation.sentences())
