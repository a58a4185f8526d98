"""Queue of operations that wait until a connection is ready and has capacity (decision C37)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

WAITING_MAX = 131_072
"""Operations that wait, in order, for a connection, or for the id of a collection: those of a large burst, for a few
hundred bytes each. More are more than a node could answer within the time that they have."""


class WaitingLine:
    """Tokens, oldest first; whoever comes, leaves or is next costs the same however many there are."""

    def __init__(self) -> None:
        # The first of a plain dictionary is found by a walk over the places of those that have left it.
        self.tokens: OrderedDict[int, None] = OrderedDict()
        """Who waits, oldest first."""
        self.peak: int = 0
        """How many waited at most since nobody did."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.tokens

    def join(self, token: int) -> None:
        """Have an operation wait behind those that do."""
        self.tokens[token] = None
        self.peak = max(len(self), self.peak) if len(self) > 1 else 1

    def leave(self, token: int) -> None:
        """Have an operation wait no longer, if it does."""
        self.tokens.pop(token, None)

    def take_first(self) -> int:
        """Return who has waited for longest, and waits no longer."""
        return self.tokens.popitem(last=False)[0]

    def take_all(self) -> Sequence[int]:
        """Return who waited; nobody does any more."""
        tokens, self.tokens = tuple(self.tokens), OrderedDict()
        return tokens
