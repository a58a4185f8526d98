"""Network between a fake node and its clients: frozen connections and late replies.

A connection that is *cut* loses no byte: what either side sends arrives once the cut is healed, in its order, unless the
client has given the connection up. New connections to a node that everybody is cut from are made, and are cut too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from triclinium_core.checks import Duration, check_duration
from triclinium_core.options import SECONDS_MAX
from triclinium_core.testing.fakes.cluster.outbox import NodeAction


class FakeNetwork:
    """All connections of one node, by their numbers."""

    def __init__(self) -> None:
        self.slowness: float = 0.0
        """Seconds by which every reply is late."""
        self.cuts_all: bool = False
        """Whether nobody reaches the node."""
        self._cut: set[int] = set()
        self._held_actions: list[NodeAction] = []
        self._held_requests: list[tuple[int, bytes]] = []

    @property
    def cuts_some(self) -> bool:
        """Whether somebody does not reach the node."""
        return self.cuts_all or bool(self._cut)

    def is_cut(self, connection: int) -> bool:
        """Tell whether nothing moves on a connection."""
        return self.cuts_all or connection in self._cut

    @property
    def wakeup(self) -> float:
        """``-inf`` when what a cut has held back can go on, infinity otherwise."""
        if not self._held_actions and not self._held_requests:
            return math.inf
        held = {action.connection for action in self._held_actions} | {name for name, _ in self._held_requests}
        return math.inf if all(map(self.is_cut, held)) else -math.inf

    def slow_down(self, seconds: Duration) -> None:
        """Have every reply come so much later."""
        self.slowness = check_duration(seconds, "seconds", most=SECONDS_MAX)

    def cut(self, connections: Iterable[int] | None) -> None:
        """Let nothing move on these connections; None for all there are and will be."""
        if connections is None:
            self.cuts_all = True
        else:
            self._cut.update(connections)

    def heal(self) -> None:
        """Let everything move again, what was held back first."""
        self.cuts_all = False
        self._cut.clear()

    def holds(self, connection: int, data: bytes) -> bool:
        """Tell whether these bytes of a client do not arrive now, and keep them then."""
        if self.is_cut(connection) and data:
            self._held_requests.append((connection, data))
            return True
        return False

    def arrived(self) -> Sequence[tuple[int, bytes]]:
        """Return, once, the bytes of clients that a cut has held back and that arrive now."""
        here = [request for request in self._held_requests if not self.is_cut(request[0])]
        self._held_requests = [request for request in self._held_requests if self.is_cut(request[0])]
        return here

    def released(self) -> list[NodeAction]:
        """Return, once, what a cut has held back of what was sent, and that goes on now."""
        actions = [action for action in self._held_actions if not self.is_cut(action.connection)]
        self._held_actions = [action for action in self._held_actions if self.is_cut(action.connection)]
        return actions

    def let_through(self, actions: Iterable[NodeAction]) -> list[NodeAction]:
        """Return what reaches the clients of ``actions`` now, and keep the rest."""
        through: list[NodeAction] = []
        for action in actions:
            (self._held_actions if self.is_cut(action.connection) else through).append(action)
        return through

    def lost(self, connection: int) -> None:
        """Forget a connection that its client has given up, with all that was under way."""
        self._cut.discard(connection)
        self._held_actions = [action for action in self._held_actions if action.connection != connection]
        self._held_requests = [request for request in self._held_requests if request[0] != connection]
