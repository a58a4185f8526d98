"""Laws of token strategies: issued tokens, their ends, and their use by a client.

*Safety*: a request asks for one first token. A token ends once: it is renewed or refused for an attempt that failed, recorded
for a request that succeeded, or given back for an attempt that is not made. No attempt is made without one, or before its delay
is over, unless the strategy has refused the first. A strategy is asked neither about terminal reasons, which are never retried,
nor about those that are always retried. Its budget is never below zero nor above its capacity. *Liveness*: a request that is over
has given back what was lent for an attempt that was not made; a success is recorded; a request whose retry is refused fails for
that reason at once, and one whose retry is granted is retried.
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
    """What becomes of a token."""

    ASKED = auto()
    """The strategy has it, and has not answered for which of the next two."""
    RENEWED = auto()
    REFUSED = auto()
    RECORDED = auto()
    GIVEN_BACK = auto()


@dataclass(slots=True, eq=False)
class LentToken:
    """One token, from when it was lent."""

    token: RetryToken
    lent_at: float
    reason: RetryReason | None = None
    """For which the attempt before failed; None for a first token."""
    is_made: bool = False
    """Whether its attempt was."""
    end: TokenEnd | None = None
    """None for one that nobody brought back yet."""
    ended_at: int = 0
    """The step at which it ended."""


@dataclass(slots=True, eq=False)
class Loan:
    """All that a strategy has lent one request."""

    token_scope: str | None
    request: int | None = None
    """Its token as an operation; None until it is known."""
    lent: list[LentToken] = field(default_factory=list)
    """Oldest first."""
    position: int = 0
    """Which of them the client's reports are about."""
    is_first_refused: bool = False
    refusals: set[RetryReason] = field(default_factory=set)
    """Reasons for which the strategy refused a retry."""
    raised: Exception | None = None
    """What the strategy raised that was no refusal."""
    was_held_back: bool = False
    """Whether it had to wait for its strategy."""
    is_over: bool = False

    @total_repr
    def __repr__(self) -> str:
        return f"operation {self.request} under a token strategy"

    @property
    def is_excuse(self) -> bool:
        """Whether the request may fail because of its strategy, which let it wait, or raised."""
        return self.was_held_back or self.raised is not None

    @property
    def times_recorded(self) -> int:
        """How many of its tokens were recorded as a success."""
        return sum(lent.end is TokenEnd.RECORDED for lent in self.lent)


class LoanBook:
    """What all token strategies of one simulation have lent.

    Strategies are asked amid the work of a client, which survives whatever they raise. So what breaks a law is kept, and
    ``check`` raises it. ``now`` is the time in seconds; its feeder keeps it.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.asking: int | None = None
        """The request whose awaited strategy is being asked for a first token; None while none is."""
        self._loans: dict[int, Loan] = {}
        self._in_hand: dict[RetryToken, tuple[Loan, LentToken]] = {}
        self._unknown: list[Loan] = []
        """Loans of requests that are being submitted, in the order in which their strategies were asked."""
        self._touched: list[Loan] = []
        """Loans of which something has changed since they were checked last."""
        self._step = 0
        self._broken: str | None = None

    def __contains__(self, request: int) -> bool:
        return request in self._loans

    def __getitem__(self, request: int) -> Loan:
        return self._loans[request]

    # What strategies are asked.

    def begin(self, token_scope: str | None) -> Loan:
        """Return the loan of a request that asks for its first token."""
        loan = Loan(token_scope)
        if self.asking is None:
            self._unknown.append(loan)
        else:
            self._know(loan, self.asking)
        return loan

    def lend(self, loan: Loan, token: RetryToken, reason: RetryReason | None = None) -> None:
        """Record that a token was handed out."""
        lent = LentToken(token, self.now, reason)
        loan.lent.append(lent)
        self._in_hand[token] = loan, lent
        self._touched.append(loan)
        if reason is None and token.retry_delay:
            loan.was_held_back = True

    def end(self, token: RetryToken, end: TokenEnd) -> Loan | None:
        """Record that a token came back; return its loan, None where nobody had it."""
        found = self._in_hand.pop(token, None)
        if found is None:
            self.breaks(f"a token comes back ({end.name}) that nobody has in hand: {token!r}")
            return None
        loan, lent = found
        lent.end, lent.ended_at = end, self._step
        self._touched.append(loan)
        if end is TokenEnd.ASKED:
            self._in_hand[token] = found
        return loan

    def shown(self, loan: Loan, error: Exception) -> None:
        """Record what a strategy is shown of a failed attempt."""
        if not isinstance(error, FailedAttemptError):
            self.breaks(f"{loan}: its strategy is shown {error!r}")
            return
        reason, request = error.reason, error.request
        if reason.always_retry or reason in TERMINAL_ERRORS:
            self.breaks(f"{loan}: its strategy is asked about {reason}, which is not for it to decide")
        if error.is_retry_safe and not request.idempotent and not reason.allows_non_idempotent_retry:
            self.breaks(f"{loan}: its strategy is told that {reason} is safe, and it may have been applied")

    def breaks(self, law: str) -> None:
        """Record that a law is broken, unless one was before."""
        self._broken = self._broken or law

    # What clients do.

    def submitted(self, requests: Sequence[int]) -> None:
        """Record who was submitted, of those whose strategies answer at once, in the order in which a client takes them up."""
        unknown, self._unknown = self._unknown, []
        if len(unknown) != len(requests):
            raise Violation(f"{len(unknown)} first tokens were asked for, for {len(requests)} requests")
        for loan, request in zip(unknown, requests, strict=True):
            self._know(loan, request)

    def begun(self, request: int) -> None:
        """Record that an attempt is made, which needs a token."""
        loan = self._loans.get(request)
        if loan is None:
            raise Violation(f"operation {request} is sent before its strategy was asked for a token")
        if loan.is_first_refused:
            return
        lent = loan.lent[loan.position] if loan.position < len(loan.lent) else None
        if lent is None or (lent.end is not None and lent.ended_at < self._step):
            raise Violation(f"{loan} is sent without a token")
        if self.now < lent.lent_at + lent.token.retry_delay - RESOLUTION:
            raise Violation(f"{loan} is sent before the {lent.token.retry_delay:g} s of its token are over")
        lent.is_made = True
        self._touched.append(loan)

    def retried(self, report: ReportRetry) -> None:
        """Record a reported retry, which has to be always retried or granted."""
        loan = self._loans[report.token]
        if report.reason.always_retry:
            return
        if report.reason in TERMINAL_ERRORS:
            raise Violation(f"{loan} is retried for {report.reason}, which is terminal")
        loan.position += 1
        granted = loan.lent[loan.position] if loan.position < len(loan.lent) else None
        if granted is None or granted.reason is not report.reason:
            raise Violation(f"{loan} is retried for {report.reason}, and its strategy has not granted it")
        if report.dispatches and report.delay < granted.token.retry_delay - RESOLUTION:
            raise Violation(f"{loan} waits for {report.delay:g} s of the {granted.token.retry_delay:g} s of its token")

    def completed(self, request: int) -> None:
        """Record a success, of which the strategy has to be told."""
        loan = self._over(request)
        if loan.lent and loan.times_recorded != 1:
            raise Violation(f"{loan} succeeded, and its strategy was told of {loan.times_recorded} successes")

    def failed(self, request: int, error: errors.CouchbaseException, *, is_well: bool, has_rows: bool = False) -> None:
        """Record a failure.

        Args:
            is_well: whether it is a final answer of a service that is well.
            has_rows: whether rows were handed out before it.
        """
        loan = self._over(request)
        refused = error.context.refused_reason
        reason = RetryReason[refused] if refused is not None else None
        if loan.refusals and reason not in loan.refusals and not _was_late(error):
            raise Violation(f"{loan} was refused a retry for {_names(loan.refusals)}, and fails with {error!r}")
        if reason is not None and not _may_be_refused(loan, reason, error, has_rows=has_rows):
            raise Violation(f"{loan} is not retried for {reason}, and its strategy has not refused it")
        if loan.lent and is_well and loan.times_recorded != 1:
            raise Violation(f"{loan} was answered, and its strategy was told of {loan.times_recorded} successes")
        if loan.times_recorded and (refused is not None or isinstance(error, errors.TimeoutException)):
            raise Violation(f"{loan} fails with {error!r}, and its strategy was told of a success")

    def abandoned(self, request: int, *, has_rows: bool) -> None:
        """Record that a caller left, who may have got rows."""
        loan = self._over(request)
        if loan.times_recorded > has_rows:
            raise Violation(f"{loan} was left, and its strategy was told of a success")

    def check(self) -> None:
        """Check, when a client has done all that followed from an event, that what was lent is where it should be."""
        self._step += 1
        touched, self._touched = self._touched, []
        if self._broken is not None:
            raise Violation(self._broken)
        if self._unknown:
            raise Violation(f"{len(self._unknown)} first tokens were asked for, and nobody was submitted")
        for loan in touched:
            self._check_loan(loan)

    def _check_loan(self, loan: Loan) -> None:
        if loan.refusals and not loan.is_over:
            raise Violation(f"{loan} was refused a retry for {_names(loan.refusals)}, and waits")
        for lent in loan.lent:
            if lent.end is TokenEnd.GIVEN_BACK and lent.is_made:
                raise Violation(f"{loan} gave back a token whose attempt was made")
            if lent.end is TokenEnd.RECORDED and not lent.is_made:
                raise Violation(f"{loan} recorded a token whose attempt was not made")
            if lent.end is None and lent is not loan.lent[-1]:
                raise Violation(f"{loan} has a token beside a newer one")
        if loan.is_over and loan.lent and loan.lent[-1].end is None and not loan.lent[-1].is_made:
            raise Violation(f"{loan} is over, and has kept a token whose attempt was not made")

    def _know(self, loan: Loan, request: int) -> None:
        if request in self._loans:
            self.breaks(f"operation {request} asks for a first token twice")
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
    """Tell whether time was up, so that it does not matter what an awaited strategy answers (decision C23)."""
    context = error.context
    if not isinstance(error, errors.TimeoutException) or context.elapsed is None or context.timeout is None:
        return False
    return context.elapsed >= context.timeout - RESOLUTION


def _may_be_refused(loan: Loan, reason: RetryReason, error: errors.CouchbaseException, *, has_rows: bool) -> bool:
    """Tell whether a request may fail because it is not retried for a reason."""
    return (
        reason in loan.refusals
        or reason in TERMINAL_ERRORS
        or loan.is_first_refused
        or loan.raised is not None
        or not (error.context.idempotent or reason.allows_non_idempotent_retry)
        # The schedule of the node's error map may have come to its end.
        or reason is RetryReason.KV_ERROR_MAP_RETRY_INDICATED
        # No strategy decides once rows were handed out.
        or has_rows
    )
