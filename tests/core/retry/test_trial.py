"""What befell a request, put to its machine."""

from __future__ import annotations

import pytest

from tests.core.retry.request_cases import Awaits, Fixed
from triclinium_core.errors import CouchbaseException, DocumentNotFoundException, UnambiguousTimeoutException
from triclinium_core.retry.annotation import RequestAnnotation
from triclinium_core.retry.error_map import parse_entry
from triclinium_core.retry.explanation import Outcome
from triclinium_core.retry.occasions import Occasion, kv_answered
from triclinium_core.retry.strategy import AnyRetryStrategy, BestEffortRetryStrategy
from triclinium_core.retry.trial import LongestDelays, Trial, put_to_machine

PERMITTED = parse_entry({"attrs": ["retry-now"]})


def trial_of(occasion: Occasion, elapsed: float = 0.0, strategy: AnyRetryStrategy | None = None) -> Trial:
    """Return what becomes of a read that may take a second."""
    annotation = RequestAnnotation(
        operation="get",
        idempotent=True,
        strategy=strategy or BestEffortRetryStrategy(),
        submitted_at=0.0,
        deadline=1.0,
    )
    return put_to_machine(occasion, annotation, elapsed, rng=Fixed())


@pytest.mark.parametrize(
    ("occasion", "outcome", "error"),
    [
        (kv_answered(0x00), Outcome.COMPLETE, type(None)),
        (kv_answered(0x01), Outcome.FAIL, DocumentNotFoundException),
        (kv_answered(0x86), Outcome.RETRY, type(None)),
        (kv_answered(0x7FF0), Outcome.FAIL, CouchbaseException),
        (kv_answered(0x7FF0, PERMITTED), Outcome.RETRY, type(None)),
    ],
)
def test_outcome(occasion: Occasion, outcome: Outcome, error: type) -> None:
    """What becomes of the request, and what it fails with."""
    trial = trial_of(occasion)

    assert (outcome, error) == (trial.outcome, type(trial.error))


def test_a_delay_that_is_cut() -> None:
    """What the request fails with at its end is told too."""
    trial = trial_of(kv_answered(0x86), elapsed=0.9995)

    assert trial.retry is not None
    assert not trial.retry.dispatches
    assert isinstance(trial.error, UnambiguousTimeoutException)


def test_a_strategy_that_is_awaited() -> None:
    """Nothing is known before it has answered."""
    trial = trial_of(kv_answered(0x86), strategy=Awaits())

    assert (Outcome.CONSULT, None, None) == (trial.outcome, trial.retry, trial.error)


def test_longest_delays() -> None:
    """Nothing is taken off a delay."""
    assert 0.0 == LongestDelays().random()
