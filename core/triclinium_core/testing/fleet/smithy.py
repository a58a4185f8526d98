"""Operations that retry as Smithy's clients do: through tokens of a strategy that the clients of a process share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from triclinium_core.retry.backoff import Random, cap
from triclinium_core.retry.smithy.classification import ClassifiedError, ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryError, RetryToken
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy
from triclinium_core.testing.fleet.calls import Call, MakeProcess
from triclinium_core.testing.fleet.scenario import Fleet
from triclinium_core.testing.fleet.service import AttemptOutcome

MakeStrategy = Callable[[Random, Callable[[], float]], SimpleRetryStrategy | StandardRetryStrategy]
"""Makes the strategy of one process, given its randomness and its clock."""


def _errors(*, idempotent: bool) -> Mapping[AttemptOutcome, Exception]:
    """Return the error that the strategy gets for each outcome; what may have been applied is safe to retry if idempotent."""
    infos = {
        AttemptOutcome.THROTTLED: ErrorInfo(is_retry_safe=True, is_throttling_error=True, fault="server"),
        AttemptOutcome.REFUSED: ErrorInfo(is_retry_safe=True, fault="server"),
        AttemptOutcome.CLOSED: ErrorInfo(is_retry_safe=idempotent, fault="server"),
        AttemptOutcome.TIMED_OUT: ErrorInfo(is_retry_safe=idempotent, is_timeout_error=True),
        AttemptOutcome.DENIED: ErrorInfo(is_retry_safe=False, fault="client"),
    }
    return {outcome: ClassifiedError(ConnectionError(outcome.value), info) for outcome, info in infos.items()}


_ERRORS = {idempotent: _errors(idempotent=idempotent) for idempotent in (False, True)}


class SmithyProcess:
    """Clients that share one of Smithy's strategies, its quota and its rate."""

    def __init__(self, make_strategy: MakeStrategy, fleet: Fleet, rng: Random) -> None:
        self.now: float = 0.0
        self.strategy: SimpleRetryStrategy | StandardRetryStrategy = make_strategy(rng, lambda: self.now)
        self.errors: Mapping[AttemptOutcome, Exception] = _ERRORS[fleet.idempotent]
        self.attempt_timeout: float = fleet.attempt_timeout if fleet.attempt_timeout is not None else math.inf


def smithy_clients(make_strategy: MakeStrategy) -> MakeProcess:
    """Return clients that retry as Smithy's do, with what ``make_strategy(rng, clock)`` returns for each process."""
    return lambda fleet, rng: partial(SmithyCall, SmithyProcess(make_strategy, fleet, rng))


class SmithyCall(Call):
    """One operation, and the token of its present attempt."""

    __slots__ = ("_process", "_token", "attempt_timeout")
    hears_success = True

    def __init__(self, process: SmithyProcess, began: float, deadline: float) -> None:
        super().__init__(began, deadline)
        self.attempt_timeout: float = process.attempt_timeout
        self._process = process
        process.now = began
        self._token: RetryToken = process.strategy.acquire_initial_retry_token()

    def begin(self, now: float) -> float | None:
        """Wait where even a first attempt has to, but no longer than until the deadline."""
        delay = self._token.retry_delay
        return min(now + delay, self.deadline) if delay > 0 else None

    def fail(self, outcome: AttemptOutcome, now: float) -> float | None:
        """Ask for the next token; without one, or without time for it, the operation is over at once (decision F6)."""
        process = self._process
        process.now = now
        try:
            token = process.strategy.refresh_retry_token_for_retry(
                token_to_renew=self._token, error=process.errors[outcome]
            )
        except RetryError:
            return None
        delay, is_in_time = cap(token.retry_delay, self.deadline - now)
        if not is_in_time:
            process.strategy.abandon(token=token)
            return None
        self._token = token
        return now + delay

    def resume(self, now: float) -> bool:
        """Tell whether there is still time; a first attempt may have waited for too long."""
        if now < self.deadline:
            return True
        self._process.now = now
        self._process.strategy.abandon(token=self._token)
        return False

    def succeed(self, now: float) -> None:
        """Give the token back."""
        process = self._process
        process.now = now
        process.strategy.record_success(token=self._token)
