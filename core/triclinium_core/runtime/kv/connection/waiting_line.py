"""Queue of operations that wait until a connection is ready and has capacity (decision C37)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

WAITING_MAX = 131_072
"""Maximum number of operations queued for one connection or one collection id: a large burst, a few hundred bytes each.
A node could not answer more within their timeouts."""


class WaitingLine:
    """Queue of tokens, oldest first. All methods but ``take_all`` take constant time."""

    def __init__(self) -> None:
        # Finding the first key of a plain dictionary scans the entries of removed keys.
        self.tokens: OrderedDict[int, None] = OrderedDict()
        """Queued tokens, oldest first."""
        self.peak: int = 0
        """Maximum length of the queue since it was last empty."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.tokens

    def join(self, token: int) -> None:
        """Add an operation to the end of the queue."""
        self.tokens[token] = None
        self.peak = max(len(self), self.peak) if len(self) > 1 else 1

    def leave(self, token: int) -> None:
        """Remove an operation from the queue. Ignore one that is not in it."""
        self.tokens.pop(token, None)

    def take_first(self) -> int:
        """Remove and return the oldest operation."""
        return self.tokens.popitem(last=False)[0]

    def take_all(self) -> Sequence[int]:
        """Remove and return all operations."""
        tokens, self.tokens = tuple(self.tokens), OrderedDict()
        return tokens
