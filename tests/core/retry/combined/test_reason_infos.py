"""Error information that a token strategy gets for each retry reason."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import map_entry, retry_request
from triclinium_core.retry.combined.reason_infos import REASON_INFOS, FailedAttemptError, _complete, describe
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason
from triclinium_core.retry.smithy import classify

ROWS = [*REASON_INFOS.items()]
INDICATED = RetryReason.KV_ERROR_MAP_RETRY_INDICATED
SCHEDULE = {"strategy": "constant", "interval": 40, "after": 300, "max-duration": 1000, "ceil": 1000}


def test_each_reason_has_one_row() -> None:
    """Each retry reason has one row with an explanation, in the order of the RFC's table."""
    assert list(RetryReason) == list(REASON_INFOS)
    assert all(row.because for row in REASON_INFOS.values())


@pytest.mark.parametrize("rows", [ROWS[:-1], [*ROWS, ROWS[0]]])
def test_a_missing_or_duplicate_row_fails(rows: list[object]) -> None:
    """Creating a table in which a reason has no row or two rows raises an error."""
    with pytest.raises(ValueError, match="row"):
        _complete(rows)  # type: ignore[arg-type]


def test_only_terminal_reasons_are_never_retried() -> None:
    """A reason is not retry-safe if and only if it is a terminal error of the default strategy."""
    assert set(TERMINAL_ERRORS) == {reason for reason, row in REASON_INFOS.items() if not row.is_retry_safe}


@pytest.mark.parametrize("reason", RetryReason)
def test_possibly_applied_requests_need_idempotency(reason: RetryReason) -> None:
    """If a request may have been sent before the failure, the reason is retry-safe only for an idempotent request."""
    safe = REASON_INFOS[reason].is_retry_safe

    assert describe(retry_request(idempotent=True), reason).info.is_retry_safe is safe
    assert describe(retry_request(), reason).info.is_retry_safe is (safe and reason.allows_non_idempotent_retry)


@pytest.mark.parametrize(
    ("attempts", "since", "safe", "delay", "within"),
    [(0, 0.0, True, 0.3, 1.0), (1, 0.3, True, 0.04, 0.7), (5, 1.0, False, None, None)],
)
def test_the_error_map_schedule_sets_the_delay(
    attempts: int, since: float, safe: bool, delay: float | None, within: float | None
) -> None:
    """The first delay is ``after`` and later ones ``interval``; after ``max-duration`` the error is not retry-safe."""
    entry = map_entry("auto-retry", retry=SCHEDULE)
    reported = describe(retry_request(attempts_this_status=attempts, since_first_failure=since, entry=entry), INDICATED)

    assert (safe, delay) == (reported.info.is_retry_safe, reported.info.retry_after)
    assert reported.within == (pytest.approx(within) if within is not None else None)


def test_an_entry_without_a_schedule_sets_no_delay() -> None:
    """Without a schedule in the error map there is no ``retry_after``, so the strategy's backoff applies."""
    reported = describe(retry_request(entry=map_entry("auto-retry")), INDICATED)

    assert (True, None) == (reported.info.is_retry_safe, reported.info.retry_after)


def test_the_error_has_the_request_and_reason() -> None:
    """The error has the attributes of Smithy's errors, and also the reason and the request."""
    asked = retry_request()
    info = describe(asked, RetryReason.KV_TEMPORARY_FAILURE).info
    error = FailedAttemptError(asked, RetryReason.KV_TEMPORARY_FAILURE, info)

    assert info == classify(error)
    assert info.is_throttling_error
    assert (asked, RetryReason.KV_TEMPORARY_FAILURE) == (error.request, error.reason)
