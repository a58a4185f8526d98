"""Laws of token strategies, which find each kind of violation and accept lawful histories."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import smithy
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.combined.reason_infos import FailedAttemptError, describe
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason, RetryRequest, Service
from triclinium_core.testing.oracle.checked_strategies import CheckedStrategy
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation.token_strategies import Unwilling

LOCKED, TEMPORARY, UNKNOWN = RetryReason.KV_LOCKED, RetryReason.KV_TEMPORARY_FAILURE, RetryReason.UNKNOWN
SNAPSHOT = RetryRequest(
    service=Service.KV, operation="get", idempotent=True, rng=ConstantRandom(0.5), remaining=2.0, age=0.5
)


def shown(reason: RetryReason, **changes: Any) -> FailedAttemptError:
    """Return the error that the client passes to a strategy for a retry reason."""
    request = replace(SNAPSHOT, **changes)
    return FailedAttemptError(request, reason, describe(request, reason).info)


def refused(
    reason: RetryReason | None, kind: type[errors.CouchbaseException] = errors.TemporaryFailureException
) -> errors.CouchbaseException:
    """Return the error of a request: its retry was refused for ``reason`` or, without a reason, its response is final."""
    name = None if reason is None else str(reason)
    return kind("", ErrorContext(idempotent=True, refused_reason=name))


@dataclass
class Borrowed:
    """Client with one request, which is operation 1."""

    book: LoanBook
    strategy: CheckedStrategy
    token: smithy.RetryToken

    def send(self) -> None:
        """Make an attempt."""
        self.book.begun(1)
        self.book.check()

    def renew(self, reason: RetryReason = LOCKED) -> None:
        """Consult the strategy about a failed attempt, and keep the token that it returns."""
        self.token = self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=shown(reason))

    def renew_in_vain(self) -> None:
        """Consult the strategy about failed attempts until it refuses."""
        with suppress(smithy.RetryError):
            while True:
                self.renew()

    def report(self, reason: RetryReason = LOCKED, delay: float = 5.0, *, dispatches: bool = True) -> None:
        """Report a retry."""
        self.book.retried(ReportRetry(Token(1), SNAPSHOT, reason, delay, dispatches, None))

    def retry(self, reason: RetryReason = LOCKED) -> None:
        """Consult the strategy, report the retry, wait and make the next attempt."""
        self.renew(reason)
        self.report(reason)
        self.book.now += self.token.retry_delay
        self.send()


def borrowed(strategy: smithy.RetryStrategy | None = None, scope: str | None = None) -> Borrowed:
    """Return a client whose request has its first token."""
    book = LoanBook()
    checked = CheckedStrategy(
        book, strategy or smithy.StandardRetryStrategy(rng=ConstantRandom(0.5), quota_capacity=40)
    )
    token = checked.acquire_initial_retry_token(token_scope=scope)
    book.submitted([1])
    book.check()
    return Borrowed(book, checked, token)


@pytest.mark.parametrize("scope", [None, "near"])
def test_lawful_histories(scope: str | None) -> None:
    """A success after a retry, a refused retry and an abandoned request break no law."""
    succeeds, fails, leaves = (borrowed(scope=scope) for _ in range(3))
    for each in (succeeds, fails, leaves):
        each.send()
        each.retry()
    succeeds.strategy.record_success(token=succeeds.token)
    succeeds.book.completed(1)
    fails.renew_in_vain()
    fails.book.failed(1, refused(LOCKED), is_well=False)
    leaves.book.abandoned(1, has_rows=False)
    for each in (succeeds, fails, leaves):
        each.book.check()

    assert 1 in succeeds.book
    assert 1 == succeeds.book[1].times_recorded
    assert {LOCKED} == fails.book[1].refusals
    assert not leaves.book[1].is_excuse
    assert "operation 1 under a token strategy" == repr(leaves.book[1])
    assert "CheckedStrategy(StandardRetryStrategy(" in repr(leaves.strategy)


def test_always_retried_reason() -> None:
    """A reason that is always retried needs no token."""
    client = borrowed()
    client.send()
    client.report(RetryReason.KV_NOT_MY_VBUCKET, 0.001)
    client.send()
    client.strategy.record_success(token=client.token)
    client.book.completed(1)
    client.book.check()

    assert 1 == len(client.book[1].issued)


def test_first_tokens() -> None:
    """Each submitted request acquires exactly one first token before it is sent."""
    book = LoanBook()
    strategy = CheckedStrategy(book, smithy.StandardRetryStrategy(rng=ConstantRandom(0.5)))
    strategy.acquire_initial_retry_token()
    with pytest.raises(Violation, match="^first tokens requested: 1; requests submitted: 0"):
        book.check()
    with pytest.raises(Violation, match="^first tokens requested: 1; requests submitted: 2"):
        book.submitted([1, 2])
    with pytest.raises(Violation, match="operation 7 is sent before "):
        book.begun(7)
    for _ in range(2):
        book.asking = 3
        strategy.acquire_initial_retry_token()
    with pytest.raises(Violation, match="operation 3 .* first token twice"):
        book.check()


def test_sending_without_a_token() -> None:
    """An attempt after its token was abandoned is a violation."""
    client = borrowed()
    client.strategy.abandon(token=client.token)
    client.book.check()
    with pytest.raises(Violation, match="is sent without a token"):
        client.send()


def test_sending_too_early() -> None:
    """Making an attempt before the end of its token's delay is a violation."""
    client = borrowed()
    client.send()
    client.renew(TEMPORARY)
    client.report(TEMPORARY)
    client.book.now += client.token.retry_delay / 2
    with pytest.raises(Violation, match="is sent before the 0.5 s of its token "):
        client.send()


def test_refused_first_token() -> None:
    """A request whose first token was refused is sent once; retrying it is a violation."""
    book = LoanBook()
    strategy = CheckedStrategy(book, Unwilling(rng=ConstantRandom(0.5)))
    with pytest.raises(smithy.RetryError):
        strategy.acquire_initial_retry_token()
    book.submitted([1])
    book.begun(1)
    book.failed(1, refused(LOCKED), is_well=False)
    book.check()
    with pytest.raises(Violation, match="is retried for KV_LOCKED, "):
        book.retried(ReportRetry(Token(1), SNAPSHOT, LOCKED, 1.0, True, None))


def test_strategy_that_raises() -> None:
    """If a strategy raises an exception, the failure of its request with this exception is lawful."""

    class Raises(smithy.StandardRetryStrategy):
        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> smithy.SingleUseToken:
            """Raise ZeroDivisionError."""
            raise ZeroDivisionError("a defect")

        def refresh_retry_token_for_retry(
            self, *, token_to_renew: smithy.RetryToken, error: Exception
        ) -> smithy.SingleUseToken:
            """Raise ZeroDivisionError."""
            raise ZeroDivisionError("a defect")

    book = LoanBook()
    strategy = CheckedStrategy(book, Raises(rng=ConstantRandom(0.5)))
    with pytest.raises(ZeroDivisionError):
        strategy.acquire_initial_retry_token()
    book.submitted([1])
    book.failed(1, refused(None, errors.RequestCanceledException), is_well=False)
    book.check()

    assert book[1].is_excuse


@pytest.mark.parametrize("reason", [*TERMINAL_ERRORS, RetryReason.KV_NOT_MY_VBUCKET])
def test_reasons_outside_the_strategys_decision(reason: RetryReason) -> None:
    """Consulting a strategy about a terminal reason, or one that is always retried, is a violation."""
    client = borrowed()
    client.send()
    with suppress(smithy.RetryError):
        client.renew(reason)
    with pytest.raises(Violation, match=" about "):
        client.book.check()


def test_errors_shown_to_strategies() -> None:
    """A strategy must get the client's own error, with the true safety of a retry."""
    client = borrowed()
    client.send()
    request = replace(SNAPSHOT, idempotent=False)
    lie = FailedAttemptError(request, UNKNOWN, smithy.ErrorInfo(True))
    client.strategy.refresh_retry_token_for_retry(token_to_renew=client.token, error=lie)
    with pytest.raises(Violation, match="UNKNOWN .*safe"):
        client.book.check()

    other = borrowed()
    with pytest.raises(smithy.RetryError):
        other.strategy.refresh_retry_token_for_retry(token_to_renew=other.token, error=OSError())
    with pytest.raises(Violation, match=r"OSError\(\)"):
        other.book.check()


def test_retries_without_permission() -> None:
    """A retry without the strategy's permission, for another or a terminal reason, or too early is a violation."""
    with pytest.raises(Violation, match="is retried for KV_LOCKED, "):
        borrowed().report()
    client = borrowed()
    client.renew(LOCKED)
    with pytest.raises(Violation, match="is retried for KV_TEMPORARY_FAILURE, "):
        client.report(TEMPORARY)
    client = borrowed()
    client.renew(TEMPORARY)
    with pytest.raises(Violation, match="0.001 s of the 0.5 s of its token"):
        client.report(TEMPORARY, 0.001)
    for reason in TERMINAL_ERRORS:
        with pytest.raises(Violation, match="which is terminal"):
            borrowed().report(reason)


def test_unrecorded_successes() -> None:
    """A final response of a healthy service must be recorded as a success; a timeout or an abandonment must not be."""
    client = borrowed()
    client.send()
    with pytest.raises(Violation, match="succeeded, .* 0 successes"):
        client.book.completed(1)
    with pytest.raises(Violation, match="0 successes"):
        client.book.failed(1, refused(None, errors.DocumentNotFoundException), is_well=True)
    client.strategy.record_success(token=client.token)
    with pytest.raises(Violation, match="fails with .* a success"):
        client.book.failed(1, refused(None, errors.UnambiguousTimeoutException), is_well=False)
    with pytest.raises(Violation, match="abandoned, .* a success"):
        client.book.abandoned(1, has_rows=False)


def test_refusal_at_the_deadline() -> None:
    """After a refusal, a timeout is lawful only at the deadline; before it the request fails with the refusal."""
    early, late = (
        errors.UnambiguousTimeoutException("", ErrorContext(idempotent=True, elapsed=elapsed, timeout=2.5))
        for elapsed in (2.4, 2.5)
    )
    hasty, patient = borrowed(), borrowed()
    for client in (hasty, patient):
        client.send()
        client.renew_in_vain()
    patient.book.failed(1, late, is_well=False)

    patient.book.check()
    with pytest.raises(Violation, match="was refused a retry for KV_LOCKED, .*fails with"):
        hasty.book.failed(1, early, is_well=False)


def test_rows_are_an_excuse() -> None:
    """Only a request whose rows were handed out may fail for a reason about which its strategy was not consulted."""
    reader, waiter, unsent = borrowed(), borrowed(), borrowed()
    for client in (reader, waiter):
        client.send()
    reader.book.failed(1, refused(LOCKED), is_well=False, has_rows=True)

    reader.book.check()
    for client in (waiter, unsent):
        with pytest.raises(Violation, match="is not retried for KV_LOCKED, .*its strategy has not refused it"):
            client.book.failed(1, refused(LOCKED), is_well=False)


def test_refusals_take_effect() -> None:
    """A refusal fails the request immediately and with its reason; waiting and another reason are violations."""
    client = borrowed()
    client.send()
    client.renew_in_vain()
    with pytest.raises(Violation, match="was refused a retry for KV_LOCKED, .*waits"):
        client.book.check()
    with pytest.raises(Violation, match="was refused a retry for KV_LOCKED, .*fails with"):
        client.book.failed(1, refused(UNKNOWN), is_well=False)


def test_every_token_ends_correctly() -> None:
    """A token is recorded if its attempt was made, else abandoned, exactly once and before the next is issued."""
    kept = borrowed()
    kept.book.abandoned(1, has_rows=False)
    with pytest.raises(Violation, match="is over, .*has kept a token"):
        kept.book.check()

    made = borrowed()
    made.send()
    made.strategy.abandon(token=made.token)
    with pytest.raises(Violation, match=" a token whose attempt was made"):
        made.book.check()

    unmade = borrowed()
    unmade.strategy.record_success(token=unmade.token)
    with pytest.raises(Violation, match="recorded a token whose attempt was not made"):
        unmade.book.check()

    twice = borrowed()
    twice.send()
    twice.strategy.record_success(token=twice.token)
    with pytest.raises(Exception, match="has been used"):
        twice.strategy.record_success(token=twice.token)
    with pytest.raises(Violation, match=r"\(RECORDED\)"):
        twice.book.check()

    two = borrowed()
    two.book.issue(two.book[1], smithy.SingleUseToken(None))
    with pytest.raises(Violation, match="older token"):
        two.book.check()


class Overflows(smithy.StandardRetryStrategy):
    """Strategy with a defect: it refunds twice the cost of a retry."""

    def record_success(self, *, token: smithy.RetryToken) -> None:
        """Refund the cost twice."""
        assert isinstance(token, smithy.SingleUseToken)
        self._quota.capacity += token.quota_acquired
        super().record_success(token=token)


class Overdraws(smithy.BudgetRetryStrategy):
    """Strategy with a defect: its budget falls below zero."""

    def available_budget(self, token_scope: str | None = None) -> float:
        """Return the budget, reduced by 9 once something was taken."""
        left = super().available_budget(token_scope)
        return left if left == 5.0 else left - 9.0


class Leaks(smithy.StandardRetryStrategy):
    """Strategy with a defect: it does not refund the cost of an abandoned token."""

    def abandon(self, *, token: smithy.RetryToken) -> None:
        """Do nothing."""


def test_budgets_are_kept() -> None:
    """A budget never exceeds its capacity or falls below zero, and what is missing equals the costs of open tokens."""
    above = borrowed(Overflows(rng=ConstantRandom(0.5), quota_capacity=40))
    above.send()
    above.retry()
    above.strategy.record_success(token=above.token)
    with pytest.raises(Violation, match="has 54 .*in scope None.* 40"):
        above.book.check()

    below = borrowed(Overdraws(rng=ConstantRandom(0.5)))
    below.renew()
    with pytest.raises(Violation, match="has -5 .*in scope None.* 5"):
        below.book.check()

    leaking = borrowed(Leaks(rng=ConstantRandom(0.5), quota_capacity=40))
    leaking.renew()
    leaking.strategy.abandon(token=leaking.token)
    with pytest.raises(Violation, match="has 26 .*in scope None.* 0"):
        leaking.book.check()
