"""``attempts``: retries of a block of code, as a loop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import TracebackType
from typing import Self

from triclinium._retry.calls import RetriedCall
from triclinium._retry.strategies import as_token_strategy
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.calls import RETRY_SAFE, CallTerms, RetryHook, RetryOn, check_info
from triclinium_core.retry.combined.call_strategies import AnyCallStrategy
from triclinium_core.retry.smithy import ErrorInfo
from triclinium_core.shown import total_repr


def attempts(
    strategy: AnyCallStrategy,
    *,
    on: RetryOn = None,
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> Attempts:
    """Return an async iterator over attempts. Put the code to retry inside ``with attempt:``.

    The ``with`` block suppresses a retryable error if ``strategy`` permits another attempt, with which the loop
    continues after the backoff. Any other error, and the error of the last attempt, propagates out of the loop as the
    same object. A block that ends without an error or ``attempt.retry()``, even by ``return`` or ``break``, is a
    success and ends the loop. Code after the block also runs after suppressed errors.

    Each argument is as for ``retry``, except that the default ``name`` is ``attempts``. The rules of ``retry`` for
    errors, cancellation and checkpoints apply here too. To retry because of a result, call ``attempt.retry()`` in the
    block. An asynchronous strategy needs ``async with attempt:``.

    Raises:
        ArgumentError: an argument is wrong.
    """
    called = "attempts" if name is None else name
    return Attempts(CallTerms(as_token_strategy(strategy, called), on, None, token_scope, called, hooks))


class _State(Enum):
    WAITING = "its block was not entered"
    OPEN = "its block is open"
    FAILED = "it has failed, and another attempt follows"
    OVER = "it is over, and no other attempt follows"


class Attempt:
    """Attempt of a loop. Put the code to retry inside ``with attempt:``.

    ``async with attempt:`` works in the same way, for both kinds of strategies. Neither form adds a checkpoint.
    """

    __slots__ = ("_call", "_info", "_state", "_terms", "number")

    def __init__(self, terms: CallTerms[None], call: RetriedCall) -> None:
        self.number: int = call.number
        """Number of the attempt, beginning with 1."""
        self._terms = terms
        self._call = call
        self._info: ErrorInfo | None = None
        self._state = _State.WAITING

    @total_repr
    def __repr__(self) -> str:
        return f"<Attempt {self.number}: {self._state.value}>"

    def retry(self, info: ErrorInfo = RETRY_SAFE) -> None:
        """Count the attempt as failed because of its result, although its block raises nothing.

        After the last attempt, the loop ends without an error; variables keep the values of the last block.

        Args:
            info: further information for the strategy, such as a server's ``retry_after``. Default: the result
                may be retried.

        Raises:
            ArgumentError: ``info`` is not an ErrorInfo or is invalid, or the attempt's block is not open.
        """
        if self._state is not _State.OPEN:
            raise self._misuse(f": {self._state.value}; call retry() inside the block")
        self._info = check_info("info", info)

    def __enter__(self) -> Self:
        if self._terms.is_async:
            name = type(self._terms.strategy).__qualname__
            raise ArgumentError(f"strategy {name} is asynchronous: write `async with attempt:`", parameter="strategy")
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            # With a synchronous strategy, ``_close`` ends without waiting.
            self._close(error).send(None)
        except StopIteration as end:
            return end.value is True
        raise AssertionError("a synchronous strategy returns without waiting")

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return await self._close(error)

    def _open(self) -> None:
        if self._state is not _State.WAITING:
            raise self._misuse(f" cannot be entered: {self._state.value}")
        self._state = _State.OPEN

    async def _close(self, error: BaseException | None) -> bool:
        """Report the outcome of the attempt, and return whether its error is suppressed."""
        self._state = _State.OVER
        try:
            if error is None and self._info is None:
                await self._call.succeed()
            elif (error is None or isinstance(error, Exception)) and await self._call.goes_on(error, self._info):
                self._state = _State.FAILED
                return error is not None
        except BaseException as raised:
            self._call.end(raised)
            raise
        self._call.end(error)
        return False

    def _misuse(self, how: str) -> ArgumentError:
        return ArgumentError(f"attempt {self.number}{how}", parameter="attempt")


class Attempts:
    """Iterator that ``attempts`` returns, for one loop."""

    __slots__ = ("_attempt", "_call", "_terms")

    def __init__(self, terms: CallTerms[None]) -> None:
        self._terms = terms
        self._call = RetriedCall(terms)
        self._attempt: Attempt | None = None

    @total_repr
    def __repr__(self) -> str:
        return f"<Attempts {self._call.number}: {self._standing}>"

    def __aiter__(self) -> Attempts:
        if self._attempt is not None:
            raise ArgumentError(
                "these attempts have already begun; call attempts() again for another loop", parameter="attempts"
            )
        return self

    async def __anext__(self) -> Attempt:
        if self._attempt is None or (self._attempt._state is _State.FAILED and self._call.is_due):
            await self._wait_for_turn()
        elif self._attempt._state is _State.OVER:
            raise StopAsyncIteration
        else:
            raise ArgumentError(
                f"attempt {self._call.number}: {self._standing}; write `with attempt:` or "
                "`async with attempt:` around the code to retry, in a new loop",
                parameter="attempt",
            )
        self._attempt = Attempt(self._terms, self._call)
        return self._attempt

    async def _wait_for_turn(self) -> None:
        """Wait until the first or the next attempt may begin."""
        try:
            await (self._call.begin() if self._attempt is None else self._call.sleep())
        except BaseException as error:
            self._call.end(error)
            raise

    @property
    def _standing(self) -> str:
        if self._attempt is None:
            return "it has not begun"
        if self._attempt._state is _State.FAILED and not self._call.is_due:
            return "it was abandoned while it waited to begin"
        return self._attempt._state.value
