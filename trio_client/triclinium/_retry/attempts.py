"""``attempts``: retries of a block of code, as a loop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import TracebackType
from typing import NoReturn, Self

import trio

from triclinium._retry.calls import SLEEPS, Recovery, begin_first, record_success
from triclinium._trio_run import not_on_trio
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.calls.machine import Sleep, refuse_first
from triclinium_core.retry.calls.reports import RetryHook
from triclinium_core.retry.calls.retryable import RETRY_SAFE, RetryOn, check_info
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import AnyRetryStrategy, RetryToken


def attempts(
    strategy: AnyRetryStrategy,
    *,
    on: RetryOn = None,
    token_scope: str | None = None,
    name: str | None = None,
    hooks: Sequence[RetryHook] = (),
) -> Attempts:
    """Return an async iterator over attempts; ``with attempt:`` stands around what is to be retried.

    An error of that block that is to be retried ends there, and the loop goes on with the next attempt when ``strategy``
    lets it. Any other error, and that of the last attempt, leaves the loop as it is. A block that raises nothing is a
    success and ends the loop, be it by ``return`` or ``break``. What stands behind the block runs after failures as well.

    The arguments are those of ``retry``, and what it says of errors, cancellation and checkpoints holds here. Results are
    judged in the block, with ``attempt.retry()``. A strategy that does not answer at once needs ``async with attempt:``.

    Raises:
        InvalidArgumentException: an argument is wrong.
    """
    return Attempts(CallTerms(strategy, on, None, token_scope, name, hooks))


class _Stage(Enum):
    NEW = "it has not begun"
    WAITING = "its block was not entered"
    OPEN = "its block is open"
    FAILED = "it has failed, and another one follows"
    LEFT = "it was given up while it waited to begin"
    OVER = "it is over, and no other one follows"


_NEW, _WAITING, _OPEN, _FAILED, _LEFT, _OVER = _Stage
# Every attempt goes through them, and a member is found faster by a name of its own.


class Attempt:
    """One attempt: ``with attempt:`` stands around what is to be retried.

    ``async with attempt:`` does the same, for strategies of both kinds. Neither adds a checkpoint.
    """

    __slots__ = ("_began", "_info", "_recovery", "_stage", "_terms", "_token")

    def __init__(self, terms: CallTerms[None]) -> None:
        self._terms = terms
        self._token: RetryToken | None = None
        self._recovery: Recovery | None = None
        self._info: ErrorInfo | None = None
        self._stage = _NEW
        self._began = 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number}: {self._stage.value}>"

    @property
    def number(self) -> int:
        """1 for the first, and 1 more for each that follows."""
        return 1 if self._recovery is None else self._recovery.number

    def retry(self, info: ErrorInfo = RETRY_SAFE) -> None:
        """Have the attempt count as failed although its block raises nothing: what it got is to be retried.

        When attempts are used up the loop ends without an error, and what the last block got is still there.

        Args:
            info: what else is to be said of it, such as a server's ``retry_after``.

        Raises:
            InvalidArgumentException: ``info`` is no ErrorInfo or makes no sense, or the attempt's block is not open.
        """
        if self._stage is not _OPEN:
            raise InvalidArgumentException(
                f"attempt {self.number}: {self._stage.value}; call retry() inside of the block", parameter="attempt"
            )
        self._info = check_info("info", info)

    def __enter__(self) -> Self:
        if self._terms.is_async:
            name = type(self._terms.strategy).__qualname__
            raise InvalidArgumentException(
                f"strategy {name} does not answer at once: write `async with attempt:`", parameter="strategy"
            )
        if self._stage is not _WAITING:
            self._refuse_entry()
        self._stage = _OPEN
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._stage = _OVER
        if error is None and self._info is None:
            if self._token is not None:
                self._terms.strategy.record_success(token=self._token)
            if self._recovery is not None:
                self._recovery.succeeded()
            return False
        if error is not None and not isinstance(error, Exception):
            return False
        info, self._info = self._info, None
        return self._settle(isinstance(self._made().decide(error, info), Sleep), error)

    async def __aenter__(self) -> Self:
        if self._stage is not _WAITING:
            self._refuse_entry()
        self._stage = _OPEN
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._stage = _OVER
        if error is None and self._info is None:
            await record_success(self._terms, self._token)
            if self._recovery is not None:
                self._recovery.succeeded()
            return False
        if error is not None and not isinstance(error, Exception):
            return False
        info, self._info = self._info, None
        return self._settle(await self._made().goes_on(error, info), error)

    def _refuse_entry(self) -> NoReturn:
        raise InvalidArgumentException(
            f"attempt {self.number} cannot be entered: {self._stage.value}", parameter="attempt"
        )

    def _made(self) -> Recovery:
        if self._recovery is None:
            self._recovery = Recovery(self._terms, "attempts", self._token, self._began)
        return self._recovery

    def _settle(self, goes_on: bool, error: Exception | None) -> bool:
        if not goes_on:
            return False
        self._stage = _FAILED
        # What was raised ends here; of a result there is nothing to end.
        return error is not None


class Attempts(Attempt):
    """What ``attempts`` returns; one loop goes over it, once.

    One object is the iterator and each of the attempts, of which only one is under way at a time.
    """

    __slots__ = ()

    def __aiter__(self) -> Attempts:
        if self._stage is not _NEW:
            raise InvalidArgumentException(
                "these attempts were begun already; call attempts() again for another loop", parameter="attempts"
            )
        return self

    async def __anext__(self) -> Attempt:
        stage = self._stage
        if stage is _OVER:
            raise StopAsyncIteration
        if stage is _NEW:
            terms = self._terms
            try:
                self._began = trio.current_time()
            except RuntimeError as elsewhere:
                raise not_on_trio(SLEEPS) from elsewhere
            try:
                answer = terms.strategy.acquire_initial_retry_token(token_scope=terms.token_scope)
            except Exception as refusal:
                refuse_first(refusal)
            else:
                # As in ``call``: what may begin at once does.
                if getattr(answer, "retry_delay", None) != 0:
                    self._token = await begin_first(terms, answer)
                    self._began = trio.current_time()
                else:
                    self._token = answer  # type: ignore[assignment]  # what has a delay is a token
        else:
            await self._wait_next()
        self._stage = _WAITING
        return self

    async def _wait_next(self) -> None:
        if self._stage is not _FAILED or self._recovery is None:
            raise InvalidArgumentException(
                f"attempt {self.number}: {self._stage.value}; write `with attempt:` around what is to be retried",
                parameter="attempt",
            )
        self._stage = _LEFT
        await self._recovery.sleep()
        self._token = self._recovery.token
