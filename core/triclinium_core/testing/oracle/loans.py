"""Laws of token strategies: which tokens they issue, how a client uses the tokens, and how each token ends.

A *loan* is all tokens that a strategy issues to one request.

*Safety*: a request acquires one first token. A token ends once: it is renewed or refused after a failed attempt,
recorded after a success, or released if its attempt is not made. No attempt is made without a token, or before its
delay ends, unless the strategy refused the first token. A strategy is consulted neither about terminal reasons, which
are never retried, nor about reasons that are always retried. A strategy's budget is never negative or above its
capacity.
*Liveness*: a finished request has released the token of an attempt that was not made; a success is recorded; a request
whose retry is refused fails immediately with that reason, and a request whose retry is granted is retried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.retry.backoff import RESOLUTION
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.couchbase import TERMINAL_ERRORS, RetryReason
from triclinium_core.retry.smithy import RetryToken
from triclinium_core.shown import total_repr
from triclinium_core.testing.oracle.submissions import Violation


class TokenEnd(Enum):
    """End of a token."""

    ASKED = auto()
    """Held by the strategy, which has not yet decided between the next two ends."""
    RENEWED = auto()
    REFUSED = auto()
    RECORDED = auto()
    RETURNED = auto()


@dataclass(slots=True, eq=False)
class IssuedToken:
    """One issued token."""

    token: RetryToken
    issued_at: float
    reason: RetryReason | None = None
    """Reason for which the previous attempt failed; None for a first token."""
    is_made: bool = False
    """Whether the client made the attempt for which the token was issued."""
    end: TokenEnd | None = None
    """End of the token; None while it is in use."""
    ended_at: int = 0
    """Step at which the token ended."""


@dataclass(slots=True, eq=False)
class Loan:
    """All tokens that a strategy has issued to one request."""

    token_scope: str | None
    request: int | None = None
    """Token of the operation or request; None until it is known."""
    issued: list[IssuedToken] = field(default_factory=list)
    """Issued tokens, oldest first."""
    position: int = 0
    """Index of the issued token to which the client's next report refers."""
    is_first_refused: bool = False
    refusals: set[RetryReason] = field(default_factory=set)
    """Reasons for which the strategy refused a retry."""
    raised: Exception | None = None
    """Exception that the strategy raised; None without one, and for a refusal."""
    was_held_back: bool = False
    """Whether the request had to wait for its strategy."""
    is_over: bool = False

    @total_repr
    def __repr__(self) -> str:
        return f"operation {self.request} under a token strategy"

    @property
    def is_excuse(self) -> bool:
        """Whether the request may fail because its strategy delayed it or raised."""
        return self.was_held_back or self.raised is not None

    @property
    def times_recorded(self) -> int:
        """Number of tokens of the loan that were recorded as a success."""
        return sum(issued.end is TokenEnd.RECORDED for issued in self.issued)


class LoanBook:
    """All tokens that the token strategies of one simulation have issued.

    A strategy is called while the client handles an event, and the client catches its exceptions. So the book stores
    breaches of strategies, and ``check`` raises them. The methods for actions of clients raise ``Violation`` directly.
    The owner sets ``now`` to the time in seconds.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.asking: int | None = None
        """Request whose awaited strategy is being called for a first token; None otherwise."""
        self._loans: dict[int, Loan] = {}
        self._in_hand: dict[RetryToken, tuple[Loan, IssuedToken]] = {}
        self._unknown: list[Loan] = []
        """Loans of requests that are being submitted, in the order in which their strategies were called."""
        self._touched: list[Loan] = []
        """Loans that have changed since their last check."""
        self._step = 0
        self._broken: str | None = None

    def __contains__(self, request: int) -> bool:
        return request in self._loans

    def __getitem__(self, request: int) -> Loan:
        return self._loans[request]

    # Calls to strategies.

    def begin(self, token_scope: str | None) -> Loan:
        """Return the loan of a request that acquires its first token."""
        loan = Loan(token_scope)
        if self.asking is None:
            self._unknown.append(loan)
        else:
            self._know(loan, self.asking)
        return loan

    def issue(self, loan: Loan, token: RetryToken, reason: RetryReason | None = None) -> None:
        """Record that a token was issued."""
        issued = IssuedToken(token, self.now, reason)
        loan.issued.append(issued)
        self._in_hand[token] = loan, issued
        self._touched.append(loan)
        if reason is None and token.retry_delay:
            loan.was_held_back = True

    def end(self, token: RetryToken, end: TokenEnd) -> Loan | None:
        """Record the end of a token. Return its loan, or None if the token was not in use."""
        found = self._in_hand.pop(token, None)
        if found is None:
            self.breaks(f"a token is returned ({end.name}) that is not in use: {token!r}")
            return None
        loan, issued = found
        issued.end, issued.ended_at = end, self._step
        self._touched.append(loan)
        if end is TokenEnd.ASKED:
            self._in_hand[token] = found
        return loan

    def shown(self, loan: Loan, error: Exception) -> None:
        """Record the error of a failed attempt that the client passes to a strategy."""
        if not isinstance(error, FailedAttemptError):
            self.breaks(f"{loan}: its strategy received {error!r}")
            return
        reason, request = error.reason, error.request
        if reason.always_retry or reason in TERMINAL_ERRORS:
            self.breaks(f"{loan}: its strategy was consulted about {reason}, on which it does not decide")
        if error.is_retry_safe and not request.idempotent and not reason.allows_non_idempotent_retry:
            self.breaks(f"{loan}: its strategy received {reason} as safe, but the operation may have been applied")

    def breaks(self, law: str) -> None:
        """Record a breach, unless one is recorded already."""
        self._broken = self._broken or law

    # Actions of clients and callers.

    def submitted(self, requests: Sequence[int]) -> None:
        """Record the submitted requests with synchronous strategies, in the order in which a client processes them."""
        unknown, self._unknown = self._unknown, []
        if len(unknown) != len(requests):
            raise Violation(f"first tokens requested: {len(unknown)}; requests submitted: {len(requests)}")
        for loan, request in zip(unknown, requests, strict=True):
            self._know(loan, request)

    def begun(self, request: int) -> None:
        """Record that an attempt is made, which requires a token unless the strategy refused the first one."""
        loan = self._loans.get(request)
        if loan is None:
            raise Violation(f"operation {request} is sent before a token was requested from its strategy")
        if loan.is_first_refused:
            return
        issued = loan.issued[loan.position] if loan.position < len(loan.issued) else None
        if issued is None or (issued.end is not None and issued.ended_at < self._step):
            raise Violation(f"{loan} is sent without a token")
        if self.now < issued.issued_at + issued.token.retry_delay - RESOLUTION:
            raise Violation(f"{loan} is sent before the {issued.token.retry_delay:g} s of its token have passed")
        issued.is_made = True
        self._touched.append(loan)

    def retried(self, report: ReportRetry) -> None:
        """Record a reported retry, which the strategy must have granted, unless the reason is always retried."""
        loan = self._loans[report.token]
        if report.reason.always_retry:
            return
        if report.reason in TERMINAL_ERRORS:
            raise Violation(f"{loan} is retried for {report.reason}, which is terminal")
        loan.position += 1
        granted = loan.issued[loan.position] if loan.position < len(loan.issued) else None
        if granted is None or granted.reason is not report.reason:
            raise Violation(f"{loan} is retried for {report.reason}, but its strategy has not permitted it")
        if report.dispatches and report.delay < granted.token.retry_delay - RESOLUTION:
            raise Violation(f"{loan} waits only {report.delay:g} s of the {granted.token.retry_delay:g} s of its token")

    def completed(self, request: int) -> None:
        """Record a success, which the strategy must have recorded if it issued a token."""
        loan = self._over(request)
        if loan.issued and loan.times_recorded != 1:
            raise Violation(f"{loan} succeeded, but its strategy recorded {loan.times_recorded} successes")

    def failed(self, request: int, error: errors.CouchbaseException, *, is_well: bool, has_rows: bool = False) -> None:
        """Record a failure.

        Args:
            is_well: whether the failure is a final response of a healthy service.
            has_rows: whether the reader got rows before the failure.
        """
        loan = self._over(request)
        refused = error.context.refused_reason
        reason = RetryReason[refused] if refused is not None else None
        if loan.refusals and reason not in loan.refusals and not _was_late(error):
            raise Violation(f"{loan} was refused a retry for {_names(loan.refusals)}, but fails with {error!r}")
        if reason is not None and not _may_be_refused(loan, reason, error, has_rows=has_rows):
            raise Violation(f"{loan} is not retried for {reason}, but its strategy has not refused it")
        if loan.issued and is_well and loan.times_recorded != 1:
            raise Violation(f"{loan} got a response, but its strategy recorded {loan.times_recorded} successes")
        if loan.times_recorded and (refused is not None or isinstance(error, errors.TimeoutException)):
            raise Violation(f"{loan} fails with {error!r}, but its strategy recorded a success")

    def abandoned(self, request: int, *, has_rows: bool) -> None:
        """Record that a caller left. ``has_rows`` is whether the caller had received rows."""
        loan = self._over(request)
        if loan.times_recorded > has_rows:
            raise Violation(f"{loan} was abandoned, but its strategy recorded a success")

    def check(self) -> None:
        """Check the tokens after a client has handled an event."""
        self._step += 1
        touched, self._touched = self._touched, []
        if self._broken is not None:
            raise Violation(self._broken)
        if self._unknown:
            raise Violation(f"first tokens requested: {len(self._unknown)}; requests submitted: 0")
        for loan in touched:
            self._check_loan(loan)

    def _check_loan(self, loan: Loan) -> None:
        if loan.refusals and not loan.is_over:
            raise Violation(f"{loan} was refused a retry for {_names(loan.refusals)}, but still waits")
        for issued in loan.issued:
            if issued.end is TokenEnd.RETURNED and issued.is_made:
                raise Violation(f"{loan} returned a token whose attempt was made")
            if issued.end is TokenEnd.RECORDED and not issued.is_made:
                raise Violation(f"{loan} recorded a token whose attempt was not made")
            if issued.end is None and issued is not loan.issued[-1]:
                raise Violation(f"{loan} still has an older token")
        if loan.is_over and loan.issued and loan.issued[-1].end is None and not loan.issued[-1].is_made:
            raise Violation(f"{loan} is over, but has kept a token whose attempt was not made")

    def _know(self, loan: Loan, request: int) -> None:
        if request in self._loans:
            self.breaks(f"operation {request} requests its first token twice")
        loan.request = request
        self._loans[request] = loan

    def _over(self, request: int) -> Loan:
        loan = self._loans[request]
        loan.is_over = True
        self._touched.append(loan)
        return loan


def _names(reasons: set[RetryReason]) -> str:
    return ", ".join(sorted(map(str, reasons)))


def _was_late(error: errors.CouchbaseException) -> bool:
    """Return whether the deadline was reached, so that an awaited strategy is irrelevant (decision C23)."""
    context = error.context
    if not isinstance(error, errors.TimeoutException) or context.elapsed is None or context.timeout is None:
        return False
    return context.elapsed >= context.timeout - RESOLUTION


def _may_be_refused(loan: Loan, reason: RetryReason, error: errors.CouchbaseException, *, has_rows: bool) -> bool:
    """Return whether a request may fail because the client does not retry it for ``reason``."""
    return (
        reason in loan.refusals
        or reason in TERMINAL_ERRORS
        or loan.is_first_refused
        or loan.raised is not None
        or not (error.context.idempotent or reason.allows_non_idempotent_retry)
        # The retry schedule in the node's error map may be exhausted.
        or reason is RetryReason.KV_ERROR_MAP_RETRY_INDICATED
        # No strategy is consulted after rows were handed out.
        or has_rows
    )
