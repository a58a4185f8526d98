"""Token strategy that records how each of its tokens ended, and refuses a token that has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from triclinium_core.retry.smithy import RetryError, RetryToken


@dataclass(eq=False)
class BookedToken:
    """Token that records how it ended."""

    token_scope: str | None
    retry_count: int = 0
    retry_delay: float = 0.0
    end: str | None = None


@dataclass(eq=False)
class TokenBook:
    """Token strategy that permits ``retries`` retries, each after ``delay`` seconds; a retry's success restores it."""

    retries: int = 1_000_000
    delay: float = 0.01
    first_delay: float = 0.0
    tokens: list[BookedToken] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """Errors that the strategy received, one for each requested retry."""
    raises: Exception | None = None
    """Exception that ``record_success`` raises, or None to raise nothing."""

    def __post_init__(self) -> None:
        self.left = self.retries

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Return a token that costs nothing."""
        return self._new(BookedToken(token_scope, 0, self.first_delay))

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> BookedToken:
        """Return the next token, or raise if no retry is left."""
        self.errors.append(error)
        if not self.left:
            self._end(token_to_renew, "refused")
            raise RetryError("the book has no retry left")
        scope = self._end(token_to_renew, "renewed")
        self.left -= 1
        return self._new(BookedToken(scope, token_to_renew.retry_count + 1, self.delay))

    def record_success(self, *, token: RetryToken) -> None:
        """Accept a token, restore the retry for which it was issued, if any, and raise ``raises`` if it is set."""
        self._end(token, "recorded")
        self.left += bool(token.retry_count)
        if self.raises is not None:
            raise self.raises

    def abandon(self, *, token: RetryToken) -> None:
        """Accept an unused token, and restore the retry for which it was issued, if any."""
        self._end(token, "abandoned")
        self.left += bool(token.retry_count)

    @property
    def ends(self) -> list[str | None]:
        """The end of each token, in the order in which the tokens were created; None for a token that is in use."""
        return [token.end for token in self.tokens]

    def _new(self, token: BookedToken) -> BookedToken:
        self.tokens.append(token)
        return token

    def _end(self, token: RetryToken, end: str) -> str | None:
        """Record the end of a token, and return its scope."""
        assert isinstance(token, BookedToken)
        assert token.end is None, f"{token} is {end} after it ended"
        assert token in self.tokens
        token.end = end
        return token.token_scope


class AwaitedBook:
    """Asynchronous form of a token book, which awaits ``think`` in each asynchronous method."""

    def __init__(self, book: TokenBook, think: Callable[[], Awaitable[object]]) -> None:
        self._book = book
        self._think = think
        self.abandon = book.abandon

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Await ``think``, then return a token."""
        await self._think()
        return self._book.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> BookedToken:
        """Await ``think``, then return the next token."""
        await self._think()
        return self._book.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: RetryToken) -> None:
        """Accept a token, then await ``think``."""
        self._book.record_success(token=token)
        await self._think()
