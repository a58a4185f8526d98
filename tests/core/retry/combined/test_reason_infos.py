"""What each retry reason says to a token strategy."""

from __future__ import annotations

import pytest

from tests.core.retry.smithy.cases import Fixed
from triclinium_core.retry.combined.reason_infos import REASON_INFOS, FailedAttemptError, _complete, describe
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason, RetryRequest, Service, parse_entry
from triclinium_core.retry.smithy import classify

ROWS = [*REASON_INFOS.items()]
SCHEDULE = {"strategy": "constant", "interval": 40, "after": 300, "max-duration": 1000, "ceil": 1000}


def request(*, idempotent: bool = False, attempts: int = 0, since: float = 0.0, schedule: bool = False) -> RetryRequest:
    """Return a request that has failed."""
    entry = {"name": "LATER", "desc": "", "attrs": ["auto-retry"], **({"retry": SCHEDULE} if schedule else {})}
    return RetryRequest(
        service=Service.KV,
        operation="get",
        idempotent=idempotent,
        rng=Fixed(),
        remaining=2.5,
        attempts_this_status=attempts,
        since_first_failure=since,
        error_map_entry=parse_entry(entry, "entry"),
    )


def test_each_reason_has_one_row() -> None:
    """In the order of the RFC's table, so that a reader can lay the one beside the other."""
    assert list(RetryReason) == list(REASON_INFOS)
    assert all(row.because for row in REASON_INFOS.values())


@pytest.mark.parametrize("rows", [ROWS[:-1], [*ROWS, ROWS[0]]])
def test_a_row_that_is_missing_or_stands_twice_fails_at_import(rows: list[object]) -> None:
    """So that a new reason cannot be forgotten."""
    with pytest.raises(ValueError, match="row"):
        _complete(rows)  # type: ignore[arg-type]


def test_the_terminal_reasons_and_no_others_are_never_retried() -> None:
    """They are the same five that the default strategy does not wait for."""
    assert set(TERMINAL_ERRORS) == {reason for reason, row in REASON_INFOS.items() if not row.is_retry_safe}


@pytest.mark.parametrize("reason", RetryReason)
def test_what_may_have_been_applied_is_safe_only_if_it_may_be_twice(reason: RetryReason) -> None:
    """Whatever its row says."""
    safe = REASON_INFOS[reason].is_retry_safe

    assert describe(request(idempotent=True), reason).info.is_retry_safe is safe
    assert describe(request(), reason).info.is_retry_safe is (safe and reason.allows_non_idempotent_retry)


@pytest.mark.parametrize(
    ("attempts", "since", "safe", "delay", "within"),
    [(0, 0.0, True, 0.3, 1.0), (1, 0.3, True, 0.04, 0.7), (5, 1.0, False, None, None)],
)
def test_the_schedule_of_an_error_map_is_what_the_server_asks_for(
    attempts: int, since: float, safe: bool, delay: float | None, within: float | None
) -> None:
    """First ``after``, then ``interval``, within ``max-duration``; when that is over there is no retry."""
    told = describe(request(attempts=attempts, since=since, schedule=True), RetryReason.KV_ERROR_MAP_RETRY_INDICATED)

    assert (safe, delay) == (told.info.is_retry_safe, told.info.retry_after)
    assert told.within == (pytest.approx(within) if within is not None else None)


def test_an_entry_without_a_schedule_asks_for_nothing() -> None:
    """The strategy's own backoff is what is waited for then."""
    told = describe(request(), RetryReason.KV_ERROR_MAP_RETRY_INDICATED)

    assert (True, None) == (told.info.is_retry_safe, told.info.retry_after)


def test_the_error_says_what_any_strategy_reads_and_what_only_ours_know() -> None:
    """The four attributes of Smithy's errors, and the reason and the request beside them."""
    asked = request()
    info = describe(asked, RetryReason.KV_TEMPORARY_FAILURE).info
    error = FailedAttemptError(asked, RetryReason.KV_TEMPORARY_FAILURE, info)

    assert info == classify(error)
    assert info.is_throttling_error
    assert (asked, RetryReason.KV_TEMPORARY_FAILURE) == (error.request, error.reason)
