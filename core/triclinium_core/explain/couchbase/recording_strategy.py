"""Wrapper of a strategy that records the last call and its result, and finds the reason for a refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from triclinium_core.explain.explanation import milliseconds
from triclinium_core.retry import couchbase

_OBSTACLES: Mapping[str, Callable[[couchbase.RetryRequest], couchbase.RetryRequest]] = {
    "the request is not idempotent": lambda request: replace(request, idempotent=True),
    "the schedule of the error map has ended": lambda request: replace(
        request, since_first_failure=0.0, since_this_status=None
    ),
}
"""Reasons for which a stateless strategy of this package may refuse a retry, each with the change that removes it."""


class RecordingStrategy:
    """Wrapper of a strategy that records the last call and its result."""

    def __init__(self, strategy: couchbase.RetryStrategy) -> None:
        self._strategy = strategy
        self._question: tuple[couchbase.RetryRequest, couchbase.RetryReason] | None = None
        self._answer: object = None

    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        """Record the call and return the strategy's decision. Record and propagate any exception of the strategy."""
        self._question = request, reason
        try:
            self._answer = answer = self._strategy.retry_after(request, reason)
        except Exception as error:
            self._answer = error
            raise
        return answer

    @property
    def was_asked(self) -> bool:
        """Whether the strategy was called."""
        return self._question is not None

    @property
    def delay(self) -> float | None:
        """Seconds until the retry that the strategy requests; None if it requests no retry or was not called."""
        return self._answer.delay if isinstance(self._answer, couchbase.RetryAction) else None

    @property
    def would_retry(self) -> bool:
        """Whether the strategy requests a retry."""
        return self.delay is not None

    def words(self) -> str | None:
        """Return the strategy's decision as the predicate of a sentence, or None if the strategy was not called."""
        if self._question is None:
            return None
        request, reason = self._question
        words = words_of_answer(self._answer, reason)
        if words == REFUSES and _is_stateless(self._strategy):
            for obstacle, change in _OBSTACLES.items():
                changed = change(request)
                if changed != request and self._strategy.retry_after(changed, reason).delay is not None:
                    return f"{words}, because {obstacle}"
        return words


def _is_stateless(strategy: couchbase.RetryStrategy) -> bool:
    """Return whether a strategy is one of the stateless ones that may permit a retry, so that a call is harmless."""
    if type(strategy) is couchbase.ErrorMapRetryStrategy:
        return _is_stateless(strategy.otherwise)
    return type(strategy) in (couchbase.BestEffortRetryStrategy, couchbase.FastFailOnTerminalErrorRetryStrategy)


REFUSES = "refuses"

_NUMBERS = {4: "four", 5: "five", 6: "six"}


def words_of_answer(answer: object, reason: couchbase.RetryReason) -> str:
    """Return a strategy's decision about ``reason``, or its exception, as the predicate of a sentence."""
    match answer:
        case couchbase.RetryAction(delay=None, error=error) if (
            error is not None and error is couchbase.TERMINAL_ERRORS.get(reason)
        ):
            number = len(couchbase.TERMINAL_ERRORS)
            return f"{REFUSES}: {reason} is one of the {_NUMBERS.get(number, number)} terminal reasons"
        case couchbase.RetryAction(delay=None, because=str() as words):
            return f"{REFUSES}: {words}"
        case couchbase.RetryAction(delay=None):
            return REFUSES
        case couchbase.RetryAction(delay=float() | int() as delay, within=within):
            limit = "" if within is None else f", but only within {milliseconds(within)} ms"
            return f"requests a retry in {milliseconds(delay)} ms{limit}"
        case Exception():
            return f"raises {type(answer).__name__}"
        case _:
            return "does not return a RetryAction"
