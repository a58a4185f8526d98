"""Queue of operations that wait until a connection is ready and has capacity (decision C37)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

WAITING_MAX = 131_072
"""Maximum number of operations queued for one connection or one collection id. Each takes a few hundred bytes. A node
could not respond to more operations within the default timeout."""


class WaitingLine:
    """Queue of tokens, oldest first. All methods except ``take_all`` take constant time."""

    def __init__(self) -> None:
        # Not a plain dictionary: finding its first key scans the entries of removed keys.
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
        """Remove an operation from the queue. Ignore an operation that is not queued."""
        self.tokens.pop(token, None)

    def take_first(self) -> int:
        """Remove and return the oldest operation."""
        return self.tokens.popitem(last=False)[0]

    def take_all(self) -> Sequence[int]:
        """Remove and return all operations."""
        tokens, self.tokens = tuple(self.tokens), OrderedDict()
        return tokens
