"""The tokens of open operations and requests: the first is acquired before anything is sent, and all end with the request.

A strategy that answers at once is asked here. One that has to be awaited is asked by the driver: what is to be awaited
leaves as an action, and what comes of it arrives as ``StrategyDecided``.

Source: the Smithy Python retry design, "Example Usage"; decisions T1 and T5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triclinium_core.client.actions import AcquireToken, Action, RecordSuccess, ReportStrategyError
from triclinium_core.client.events import StrategyDecided, Token
from triclinium_core.retry.combined.request_tokens import AnyRequestTokens, AsyncRequestTokens


class Begins(NamedTuple):
    """The first attempt is made."""

    delay: float
    """In so many seconds; 0 for now."""


class NotBegun(NamedTuple):
    """There is no first attempt: the strategy has failed."""

    cause: BaseException | None
    """What it raised; None where it answered that there is none."""


FirstAttempt = Begins | NotBegun | None
"""What becomes of the first attempt; None as long as that is open: an answer has yet to come, or the deadline has."""


class LentTokens:
    """Acquires and ends the tokens of whatever a client has submitted."""

    def __init__(self, *, emit: Callable[[Action], None]) -> None:
        self._emit = emit

    def acquire(self, token: Token, tokens: AnyRequestTokens, time_left: float) -> FirstAttempt:
        """Ask a token strategy for the first attempt.

        Args:
            time_left: seconds to the deadline.
        """
        if isinstance(tokens, AsyncRequestTokens):
            self._emit(AcquireToken(token, tokens))
            return None
        try:
            delay = tokens.acquire()
        except Exception as error:
            return NotBegun(error)
        return _postponed(tokens, delay, time_left)

    def decided(self, tokens: AsyncRequestTokens, event: StrategyDecided, time_left: float) -> FirstAttempt:
        """Return what becomes of the first attempt, for which ``tokens`` is acquiring, now that it was decided."""
        tokens.is_acquiring = False
        if event.answer is None or event.answer.delay is None:
            return NotBegun(event.raised)
        return _postponed(tokens, event.answer.delay, time_left)

    def end(self, token: Token, tokens: AnyRequestTokens, *, succeeded: bool) -> None:
        """Tell a token strategy how an operation or a request ended."""
        if isinstance(tokens, AsyncRequestTokens):
            if tokens.end(succeeded=succeeded):
                self._emit(RecordSuccess(token, tokens))
            return
        try:
            tokens.end(succeeded=succeeded)
        except Exception as error:
            self._emit(ReportStrategyError(token, error))


def _postponed(tokens: AnyRequestTokens, delay: float, time_left: float) -> FirstAttempt:
    wait = tokens.postpone(delay, time_left)
    return Begins(wait) if wait is not None else None
