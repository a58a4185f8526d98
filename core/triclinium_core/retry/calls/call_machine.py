"""Machine of one call of any function: whether it retries after a failed attempt, and when.

A call whose first attempt succeeds needs no machine: it acquires the strategy's initial token and returns it with
``record_success``. The first failure creates a ``CallMachine`` with that token. The caller reports each failure to it.
The machine returns ``Sleep``, after which the caller calls ``begin`` and then the function again, or ``GiveUp``, after
which the caller returns the result of the attempt or raises its error. For an asynchronous strategy the machine returns
``AwaitStrategy``; the caller awaits it and passes the outcome to ``grant`` or ``refuse``.

Source: the Smithy Python retry design, "Example Usage"; decisions S2, S8.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.backoff import RESOLUTION
from triclinium_core.retry.calls.history import AttemptRecord, RetryEnding, attach
from triclinium_core.retry.calls.retryable import for_strategy, info_of_error
from triclinium_core.retry.calls.terms import CallTerms, delay_of, is_refusal
from triclinium_core.retry.smithy import ErrorInfo, RetryToken
from triclinium_core.shown import total_repr

T = TypeVar("T")

RECORDS_MAX = 100
"""Maximum number of failed attempts recorded for a call, the latest ones: a strategy may permit any number, and each
record keeps an error."""


class Sleep(NamedTuple):
    """Wait, then make the next attempt."""

    delay: float
    """Seconds, finite and at least 0."""


class GiveUp(NamedTuple):
    """Make no further attempt."""

    ending: RetryEnding


class AwaitStrategy(NamedTuple):
    """Await the strategy, then pass its token to ``grant`` or its exception to ``refuse``."""

    answer: Awaitable[RetryToken]


Decision = Sleep | GiveUp | AwaitStrategy


def first_delay(terms: CallTerms[T], token: RetryToken) -> float:
    """Return the seconds to wait before the first attempt.

    Raises:
        ArgumentError: the strategy's ``token`` is invalid.
    """
    return delay_of(terms.strategy, token)


def refuse_first(refusal: Exception) -> None:
    """Continue without a token: the call gets one attempt.

    Raises:
        Exception: ``refusal``, unless it is a ``RetryError``.

    Source: the Smithy Python retry design, "Example Usage".
    """
    if not is_refusal(refusal):
        try:
            raise refusal
        finally:
            # The traceback of the error refers to this frame: together they would form a cycle.
            del refusal


class CallMachine:
    """State machine that decides about the attempts of one call.

    Args:
        terms: the caller's options.
        token: token of the first attempt; None if the strategy refused one.
        began: start of the first attempt, in monotonic seconds.
        attempts_max: maximum number of attempts, whatever the strategy permits; None for no other limit than the
            strategy's.
    """

    __slots__ = (
        "_attempts_max",
        "_began",
        "_deadline",
        "_delay",
        "_elapsed",
        "_error",
        "_is_safe",
        "_records",
        "_terms",
        "number",
        "token",
    )

    def __init__(
        self, terms: CallTerms[T], *, token: RetryToken | None, began: float, attempts_max: int | None = None
    ) -> None:
        self.number: int = 1
        """Number of the current attempt, or of the one that failed last."""
        self.token: RetryToken | None = token
        """Token of that attempt; None if the strategy refused one. Release it with ``CallTerms.abandon``."""
        self._terms: CallTerms[T] = terms
        self._attempts_max = attempts_max
        self._began = began
        self._delay = 0.0 if token is None else token.retry_delay
        self._records: list[AttemptRecord] = []
        self._elapsed = 0.0
        self._error: Exception | None = None
        self._is_safe = False

    @total_repr
    def __repr__(self) -> str:
        return f"<CallMachine: attempt {self.number}>"

    @property
    def records(self) -> tuple[AttemptRecord, ...]:
        """Failed attempts that were followed by another one, oldest first; empty once the call has ended."""
        return tuple(self._records)

    def begin(self, now: float) -> None:
        """Record the start of the next attempt."""
        self._began = now

    def fail(self, error: Exception, *, now: float, deadline: float) -> Decision:
        """Return the decision after an attempt that raised ``error``.

        Args:
            now: monotonic seconds.
            deadline: no attempt begins at or after this time; ``math.inf`` for none.

        Raises:
            ArgumentError: the strategy's token is invalid, or a function passed as ``on`` returned an invalid value;
                ``error`` is the cause.
            Exception: any exception of the strategy or of such a function that is not a ``RetryError``.
        """
        try:
            info = info_of_error(self._terms.on, error)
        except ArgumentError as nonsense:
            raise nonsense from error
        return self._decide(error, info, now, deadline)

    def reject(self, info: ErrorInfo, *, now: float, deadline: float) -> Decision:
        """Return the decision after an attempt whose result is to be retried, as ``info`` describes.

        Raises the same exceptions as ``fail``.
        """
        return self._decide(None, info, now, deadline)

    def succeed(self) -> None:
        """Record the success of the attempt, and release the errors of earlier attempts."""
        self.forget_errors()

    def forget_errors(self) -> None:
        """Release the errors of all attempts at the end of the call.

        Their tracebacks refer to the frames of the call, and those frames refer to this machine.
        """
        self._records, self._error = [], None

    def grant(self, token: RetryToken, *, now: float, deadline: float) -> Sleep | GiveUp:
        """Return the decision after an asynchronous strategy returned ``token``.

        Raises:
            ArgumentError: ``token`` is invalid.
        """
        delay = delay_of(self._terms.strategy, token, self._error)
        # A strategy may permit a retry of an error that is not retry-safe. Smithy forbids that, and so do we.
        if not self._is_safe:
            return self._abandon(token, RetryEnding.NOT_RETRY_SAFE)
        if _reaches(delay, deadline - now):
            return self._abandon(token, RetryEnding.DEADLINE)
        self._records.append(AttemptRecord(self.number, self._error, self._delay, self._elapsed))
        if len(self._records) > RECORDS_MAX:
            del self._records[0]
        self.number += 1
        self.token = token
        self._delay = delay
        self._error = None
        return Sleep(delay)

    def refuse(self, refusal: Exception) -> GiveUp:
        """Give up because the strategy raised ``refusal``.

        Raises:
            Exception: ``refusal``, unless it is a ``RetryError``.
        """
        if not is_refusal(refusal):
            try:
                raise refusal
            finally:
                # The traceback of the error refers to this frame: together they would form a cycle.
                del refusal
        if not self._is_safe:
            return self._give_up(RetryEnding.NOT_RETRY_SAFE)
        if getattr(refusal, "retry_after", None) is not None:
            return self._give_up(RetryEnding.QUOTA)
        attempts_max = getattr(self._terms.strategy, "max_attempts", None)
        is_last = isinstance(attempts_max, int) and self.number >= attempts_max
        return self._give_up(RetryEnding.EXHAUSTED if is_last else RetryEnding.REFUSED)

    def _decide(self, error: Exception | None, info: ErrorInfo, now: float, deadline: float) -> Decision:
        self._error, self._is_safe, self._elapsed = error, info.is_retry_safe is True, now - self._began
        # A strategy sees throttling errors even if they are not retried: it may have to lower its rate.
        if not self._is_safe and not info.is_throttling_error:
            return self._give_up(RetryEnding.NOT_RETRY_SAFE)
        if self.token is None:
            return self._give_up(RetryEnding.NO_TOKEN if self._is_safe else RetryEnding.NOT_RETRY_SAFE)
        if self._attempts_max is not None and self.number >= self._attempts_max:
            return self._give_up(RetryEnding.EXHAUSTED)
        # A synchronous strategy sees a throttling error even after the deadline; the token is then abandoned.
        if _reaches(0.0, deadline - now) and (self._terms.is_async or not info.is_throttling_error):
            return self._give_up(RetryEnding.DEADLINE)
        shown = for_strategy(error, info)
        try:
            answer = self._terms.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=shown)
        except Exception as refusal:
            return self.refuse(refusal)
        if self._terms.is_async:
            return AwaitStrategy(answer)  # type: ignore[arg-type]
        return self.grant(answer, now=now, deadline=deadline)  # type: ignore[arg-type]

    def _abandon(self, token: RetryToken, ending: RetryEnding) -> GiveUp:
        self._terms.abandon(token)
        return self._give_up(ending)

    def _give_up(self, ending: RetryEnding) -> GiveUp:
        last = AttemptRecord(self.number, self._error, self._delay, self._elapsed, ending)
        attach(self._records, last, ended=self._began + self._elapsed)
        self.forget_errors()
        return GiveUp(ending)


def _reaches(delay: float, remaining: float) -> bool:
    # As in ``backoff.cap``: an attempt at the deadline is too late.
    return delay >= remaining - RESOLUTION
