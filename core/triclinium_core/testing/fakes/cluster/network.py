"""Network between a fake node and its clients: frozen connections and late replies.

A *cut* connection loses no byte: everything that either side sends arrives in order after the cut is healed, unless
one side has closed the connection. A node that is cut from all clients still accepts connections, which are cut too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from triclinium_core.checks import Duration, check_duration
from triclinium_core.options import SECONDS_MAX
from triclinium_core.testing.fakes.cluster.outbox import NodeAction


class FakeNetwork:
    """Cuts and delays between one node and its clients. A connection is identified by its number."""

    def __init__(self) -> None:
        self.slowness: float = 0.0
        """Delay of every reply in seconds."""
        self.cuts_all: bool = False
        """Whether the node is cut from all clients."""
        self._cut: set[int] = set()
        self._held_actions: list[NodeAction] = []
        self._held_requests: list[tuple[int, bytes]] = []

    @property
    def cuts_some(self) -> bool:
        """Whether any connection is cut."""
        return self.cuts_all or bool(self._cut)

    def is_cut(self, connection: int) -> bool:
        """Return whether a connection is cut."""
        return self.cuts_all or connection in self._cut

    @property
    def wakeup(self) -> float:
        """``-inf`` if bytes held back by a cut can proceed, infinity otherwise."""
        if not self._held_actions and not self._held_requests:
            return math.inf
        held = {action.connection for action in self._held_actions} | {name for name, _ in self._held_requests}
        return math.inf if all(map(self.is_cut, held)) else -math.inf

    def slow_down(self, seconds: Duration) -> None:
        """Delay every reply by ``seconds``."""
        self.slowness = check_duration(seconds, "seconds", most=SECONDS_MAX)

    def cut(self, connections: Iterable[int] | None) -> None:
        """Cut these connections; None cuts all present and future ones."""
        if connections is None:
            self.cuts_all = True
        else:
            self._cut.update(connections)

    def heal(self) -> None:
        """Heal all cuts; held-back bytes move before new ones."""
        self.cuts_all = False
        self._cut.clear()

    def holds(self, connection: int, data: bytes) -> bool:
        """Return whether a cut holds back these bytes of a client. If so, keep them."""
        if self.is_cut(connection) and data:
            self._held_requests.append((connection, data))
            return True
        return False

    def arrived(self) -> Sequence[tuple[int, bytes]]:
        """Return, once, the bytes from clients that were held back and arrive now."""
        here = [request for request in self._held_requests if not self.is_cut(request[0])]
        self._held_requests = [request for request in self._held_requests if self.is_cut(request[0])]
        return here

    def released(self) -> list[NodeAction]:
        """Return, once, the actions that were held back and proceed now."""
        actions = [action for action in self._held_actions if not self.is_cut(action.connection)]
        self._held_actions = [action for action in self._held_actions if self.is_cut(action.connection)]
        return actions

    def let_through(self, actions: Iterable[NodeAction]) -> list[NodeAction]:
        """Return the actions that reach their clients now, and keep all others until the cut is healed."""
        through: list[NodeAction] = []
        for action in actions:
            (self._held_actions if self.is_cut(action.connection) else through).append(action)
        return through

    def lost(self, connection: int) -> None:
        """Forget a connection that its client has closed, with everything in transit."""
        self._cut.discard(connection)
        self._held_actions = [action for action in self._held_actions if action.connection != connection]
        self._held_requests = [request for request in self._held_requests if request[0] != connection]
