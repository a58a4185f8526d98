"""State machine of one function call, which decides whether and when to retry after a failed attempt.

If the first attempt succeeds, no machine is needed: the caller acquires a token from the strategy, and passes it to the
strategy's ``record_success``. If the first attempt fails, the caller creates a ``CallMachine`` with the token, and
reports each failure to the machine. The machine returns one of three decisions:

- ``Sleep``: the caller waits, calls ``begin``, and calls the function again.
- ``GiveUp``: the caller returns the result of the attempt or raises its error.
- ``AwaitStrategy``, for an asynchronous strategy: the caller awaits the strategy, and passes the token to ``grant`` or
  the exception to ``refuse``.

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
"""Maximum number of failed attempts that the machine records before the last one. It keeps the latest. A limit is
necessary, because a strategy may permit any number of attempts, and each record keeps an error."""


class Sleep(NamedTuple):
    """Wait, then make the next attempt."""

    delay: float
    """Seconds to wait, finite and at least 0."""


class GiveUp(NamedTuple):
    """Make no further attempt."""

    ending: RetryEnding


class AwaitStrategy(NamedTuple):
    """Await ``answer``, then pass its token to ``grant``, or the exception that it raises to ``refuse``."""

    answer: Awaitable[RetryToken]


Decision = Sleep | GiveUp | AwaitStrategy


def first_delay(terms: CallTerms[T], token: RetryToken) -> float:
    """Return the seconds to wait before the first attempt.

    Raises:
        ArgumentError: the strategy's ``token`` is invalid.
    """
    return delay_of(terms.strategy, token)


def refuse_first(refusal: Exception) -> None:
    """Accept ``refusal`` if it is a ``RetryError``: the first attempt is then made without a token.

    Raises:
        Exception: ``refusal``, if it is not a ``RetryError``.

    Source: the Smithy Python retry design, "Example Usage".
    """
    if not is_refusal(refusal):
        try:
            raise refusal
        finally:
            # The traceback of the error refers to this frame. A reference from the frame to the error would be a cycle.
            del refusal


class CallMachine:
    """State machine that decides about the attempts of one call.

    Args:
        terms: options of the call.
        token: token of the first attempt; None if the strategy refused a token.
        began: time at which the first attempt started, in monotonic seconds.
        attempts_max: maximum number of attempts, even if the strategy permits more; None if only the strategy limits
            the number.
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
        """Number of the newest attempt, from 1. During the delay before an attempt, it is already the number of that
        attempt."""
        self.token: RetryToken | None = token
        """Token of attempt ``number``; None if the strategy refused a token. ``CallTerms.abandon`` releases it."""
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
        """Last failed attempts after which another one was permitted, oldest first; empty after the end of the call."""
        return tuple(self._records)

    def begin(self, now: float) -> None:
        """Record the start of the next attempt."""
        self._began = now

    def fail(self, error: Exception, *, now: float, deadline: float) -> Decision:
        """Return the decision after an attempt that raised ``error``.

        Args:
            now: current time in monotonic seconds.
            deadline: time at or after which no attempt begins; ``math.inf`` for no deadline.

        Raises:
            ArgumentError: the strategy's token is invalid, or a function passed as ``on`` returned an invalid value.
                ``__cause__`` is ``error``.
            Exception: any exception of the function ``on``, or an exception of the strategy that is not a
                ``RetryError``.
        """
        try:
            info = info_of_error(self._terms.on, error)
        except ArgumentError as nonsense:
            raise nonsense from error
        return self._decide(error, info, now, deadline)

    def reject(self, info: ErrorInfo, *, now: float, deadline: float) -> Decision:
        """Return the decision after an attempt whose result the caller's rule does not accept.

        ``info`` is the retry information that the rule returned. This method raises the same exceptions as ``fail``,
        except those of ``on``.
        """
        return self._decide(None, info, now, deadline)

    def succeed(self) -> None:
        """Record that the attempt succeeded, and release the errors of earlier attempts."""
        self.forget_errors()

    def forget_errors(self) -> None:
        """Release the errors of all attempts at the end of the call.

        This breaks a reference cycle: the tracebacks of the errors refer to the frames of the call, and these frames
        refer to this machine.
        """
        self._records, self._error = [], None

    def grant(self, token: RetryToken, *, now: float, deadline: float) -> Sleep | GiveUp:
        """Return the decision after the strategy has returned ``token``.

        Raises:
            ArgumentError: ``token`` is invalid.
        """
        delay = delay_of(self._terms.strategy, token, self._error)
        # The strategy may permit a retry that is not safe. Smithy forbids such a retry, and so does this class.
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
        """Return the decision to give up, because the strategy raised ``refusal``.

        Raises:
            Exception: ``refusal``, if it is not a ``RetryError``.
        """
        if not is_refusal(refusal):
            try:
                raise refusal
            finally:
                # The traceback of the error refers to this frame. A reference from the frame to the error would be a
                # cycle.
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
        # Consult the strategy about a throttling error even if a retry is not safe: it may have to lower its rate.
        if not self._is_safe and not info.is_throttling_error:
            return self._give_up(RetryEnding.NOT_RETRY_SAFE)
        if self.token is None:
            return self._give_up(RetryEnding.NO_TOKEN if self._is_safe else RetryEnding.NOT_RETRY_SAFE)
        if self._attempts_max is not None and self.number >= self._attempts_max:
            return self._give_up(RetryEnding.EXHAUSTED)
        # Consult a synchronous strategy about a throttling error even after the deadline. ``grant`` then abandons the
        # token.
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
    # As in ``backoff.cap``, a delay that ends exactly at the deadline is too long.
    return delay >= remaining - RESOLUTION
