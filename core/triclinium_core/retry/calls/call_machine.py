"""Machine of one call of any function, from its first failed attempt: whether it retries, and when.

A call that succeeds at once needs none of this: it takes the strategy's initial token and gives it back with
``record_success``. At the first failure a ``CallMachine`` is made, with that token. Each failure is told to it; it answers
``Sleep``, after which ``begin`` is told and the function is called again, or ``GiveUp``, after which the caller gets the
error or the result of the attempt. A strategy that does not answer at once makes a third answer, ``AwaitStrategy``, and what
comes of it is told as ``grant`` or ``refuse``.

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
"""Attempts of a call that are remembered, the last ones: a strategy may permit any number, and each record keeps an error."""


class Sleep(NamedTuple):
    """Wait, then try again."""

    delay: float
    """Seconds, finite and at least 0."""


class GiveUp(NamedTuple):
    """Do not try again."""

    ending: RetryEnding


class AwaitStrategy(NamedTuple):
    """Wait for the strategy, then tell what it answered: a token as ``grant``, an exception as ``refuse``."""

    answer: Awaitable[RetryToken]


Decision = Sleep | GiveUp | AwaitStrategy


def first_delay(terms: CallTerms[T], token: RetryToken) -> float:
    """Return the seconds to wait before the first attempt.

    Raises:
        ArgumentError: the strategy's ``token`` makes no sense.
    """
    return delay_of(terms.strategy, token)


def refuse_first(refusal: Exception) -> None:
    """Go on without a token: there will be one attempt.

    Raises:
        Exception: ``refusal``, where it is no ``RetryError``.

    Source: the Smithy Python retry design, "Example Usage".
    """
    if not is_refusal(refusal):
        try:
            raise refusal
        finally:
            # The traceback of the error refers to this frame: together they would form a cycle.
            del refusal


class CallMachine:
    """Decides about the attempts of one call.

    Args:
        terms: what its caller chose.
        token: of the first attempt; None where the strategy had none.
        began: seconds, monotonic: when the first attempt began.
        attempts_max: attempts that are made whatever the strategy permits; None for no limit but its own.
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
        """Of the attempt under way, or of the one that failed last."""
        self.token: RetryToken | None = token
        """Of that attempt; None where there was none to be had. ``CallTerms.abandon`` takes one back."""
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
        """The attempts so far that failed and were followed by another one, oldest first; nothing once the call has ended."""
        return tuple(self._records)

    def begin(self, now: float) -> None:
        """Note that the next attempt begins."""
        self._began = now

    def fail(self, error: Exception, *, now: float, deadline: float) -> Decision:
        """Decide what follows an attempt that raised ``error``.

        Args:
            now: seconds, monotonic.
            deadline: no attempt begins then or later; ``math.inf`` for none.

        Raises:
            ArgumentError: the strategy's token makes no sense, or a function that stands for ``on`` answered
                nonsense; the error is its cause.
            Exception: whatever the strategy or such a function raises that is no ``RetryError``.
        """
        try:
            info = info_of_error(self._terms.on, error)
        except ArgumentError as nonsense:
            raise nonsense from error
        return self._decide(error, info, now, deadline)

    def reject(self, info: ErrorInfo, *, now: float, deadline: float) -> Decision:
        """Decide what follows an attempt whose result is to be retried, of which the caller says ``info``.

        Raises what ``fail`` raises.
        """
        return self._decide(None, info, now, deadline)

    def succeed(self) -> None:
        """Note that the attempt succeeded, and forget the errors of those before."""
        self.forget_errors()

    def forget_errors(self) -> None:
        """Release the errors of all attempts, because the call has ended.

        Their tracebacks refer to the frames of the call, and those refer to this machine.
        """
        self._records, self._error = [], None

    def grant(self, token: RetryToken, *, now: float, deadline: float) -> Sleep | GiveUp:
        """Go on with the ``token`` that the strategy answered in its time.

        Raises:
            ArgumentError: it makes no sense.
        """
        delay = delay_of(self._terms.strategy, token, self._error)
        # A strategy may let an error pass that nobody called retry-safe; Smithy forbids it to, and so do we.
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
        """Give up, for the strategy raised ``refusal``.

        Raises:
            Exception: ``refusal``, where it is no ``RetryError``.
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
        # What throttles is shown to the strategy all the same: it may have a rate to lower.
        if not self._is_safe and not info.is_throttling_error:
            return self._give_up(RetryEnding.NOT_RETRY_SAFE)
        if self.token is None:
            return self._give_up(RetryEnding.NO_TOKEN if self._is_safe else RetryEnding.NOT_RETRY_SAFE)
        if self._attempts_max is not None and self.number >= self._attempts_max:
            return self._give_up(RetryEnding.EXHAUSTED)
        # What throttles is shown all the same, where that takes no time, and its token abandoned.
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
    # As ``backoff.cap`` has it: what ends at the limit is too late.
    return delay >= remaining - RESOLUTION
