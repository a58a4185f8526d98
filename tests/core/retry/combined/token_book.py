"""A token strategy that writes down what becomes of each of its tokens, and accepts none twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from triclinium_core.retry.smithy import RetryError, RetryToken


@dataclass(eq=False)
class BookedToken:
    """One token, and how it ended."""

    token_scope: str | None
    retry_count: int = 0
    retry_delay: float = 0.0
    end: str | None = None


@dataclass(eq=False)
class TokenBook:
    """Permits so many retries in all, each after ``delay`` seconds; a success gives back what its last attempt took."""

    retries: int = 1_000_000
    delay: float = 0.01
    first_delay: float = 0.0
    tokens: list[BookedToken] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    """What it was shown."""
    raises: Exception | None = None
    """What it raises in place of an answer to a success."""

    def __post_init__(self) -> None:
        self.left = self.retries

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Return a token that costs nothing."""
        return self._new(BookedToken(token_scope, 0, self.first_delay))

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> BookedToken:
        """Return the next token while there are retries left."""
        self.errors.append(error)
        if not self.left:
            self._end(token_to_renew, "refused")
            raise RetryError("the book has no retry left")
        scope = self._end(token_to_renew, "renewed")
        self.left -= 1
        return self._new(BookedToken(scope, token_to_renew.retry_count + 1, self.delay))

    def record_success(self, *, token: RetryToken) -> None:
        """Take a token back, and what it cost."""
        self._end(token, "recorded")
        self.left += bool(token.retry_count)
        if self.raises is not None:
            raise self.raises

    def abandon(self, *, token: RetryToken) -> None:
        """Take back what will not be used."""
        self._end(token, "abandoned")
        self.left += bool(token.retry_count)

    @property
    def ends(self) -> list[str | None]:
        """How each token ended, in the order in which they were handed out; None for those that nobody brought back."""
        return [token.end for token in self.tokens]

    def _new(self, token: BookedToken) -> BookedToken:
        self.tokens.append(token)
        return token

    def _end(self, token: RetryToken, end: str) -> str | None:
        """Write down how a token ended, and return its scope."""
        assert isinstance(token, BookedToken)
        assert token.end is None, f"{token} is {end} after it ended"
        assert token in self.tokens
        token.end = end
        return token.token_scope


class AwaitedBook:
    """The same in the shape that is awaited; it thinks before and after each answer."""

    def __init__(self, book: TokenBook, think: Callable[[], Awaitable[object]]) -> None:
        self._book = book
        self._think = think
        self.abandon = book.abandon

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> BookedToken:
        """Think, and answer."""
        await self._think()
        return self._book.acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> BookedToken:
        """Think, and answer."""
        await self._think()
        return self._book.refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)

    async def record_success(self, *, token: RetryToken) -> None:
        """Write it down, and think."""
        self._book.record_success(token=token)
        await self._think()
