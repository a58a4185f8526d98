"""Several clients of one cluster, with the interface of a single client.

The clients share one sequence of streams and one of tokens: a number modulo the number of clients is a client's index.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.client.health.statistics import ClientStatistics
from triclinium_core.contract import couchbase, neutral
from triclinium_core.error_context import ErrorContext


class Clients:
    """Independent clients with the interface of one ``ClientMachine``.

    Args:
        clients: the clients.
        opened: number of streams that a client has opened already, if it was alone before.
    """

    def __init__(self, clients: Sequence[ClientMachine], *, opened: int = 0) -> None:
        self._clients = list(clients)
        self._opened = [opened] * len(self._clients)
        """Number of streams opened at each client's index."""
        self._before = [0] * len(self._clients)
        """Number of streams that earlier clients had opened at each index."""

    def replace(self, index: int, client: ClientMachine) -> None:
        """Replace a client, which receives no more events. The new client has different streams."""
        self._clients[index] = client
        self._before[index] = self._opened[index]

    @property
    def wakeup(self) -> float:
        """Time at which the first of the clients is due."""
        return min(client.wakeup for client in self._clients)

    def handle(self, event: couchbase.Event, now: float) -> Sequence[couchbase.Action]:
        """Feed an event to its client, time to due clients, or a global event to all clients. Return all actions."""
        if isinstance(event, neutral.TimePassed):
            due = [index for index, client in enumerate(self._clients) if client.wakeup <= now]
            return [action for index in due for action in self._feed(index, event, now)]
        if isinstance(event, neutral.StreamOpened | neutral.BytesReceived | neutral.StreamLost):
            stream, index = divmod(event.stream, len(self._clients))
            own = neutral.StreamId(stream - self._before[index])
            return self._feed(index, msgspec.structs.replace(event, stream=own), now)
        if isinstance(event, couchbase.AuthenticatorChanged | couchbase.ServiceLookedUp | couchbase.SubscribersChanged):
            return [action for index in range(len(self._clients)) for action in self._feed(index, event, now)]
        if isinstance(event, couchbase.OperationsSubmitted):
            batches: list[list[couchbase.OperationSubmitted]] = [[] for _ in self._clients]
            for each in event.submissions:
                batches[each.token % len(batches)].append(each)
            return [
                action
                for index, batch in enumerate(batches)
                if batch
                for action in self._feed(index, couchbase.OperationsSubmitted(batch), now)
            ]
        # ``CallEnded`` has no token and affects only statistics, so any client can handle it.
        index = 0 if isinstance(event, couchbase.CallEnded) else event.token % len(self._clients)
        return self._feed(index, event, now)

    def is_ambiguous(self, token: neutral.Token) -> bool:
        """Return whether the operation, if abandoned now, may have been or may still be applied."""
        return self._client_of(token).is_ambiguous(token)

    def error_context(self, token: neutral.Token, now: float) -> ErrorContext | None:
        """Return the error context of an operation, if it is abandoned now; None for an unknown token."""
        return self._client_of(token).error_context(token, now)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of all clients: concatenated connections and summed numbers."""
        each = [client.statistics() for client in self._clients]
        reasons = {reason for one in each for reason in one.retries_by_reason}
        return ClientStatistics(
            connections=tuple(connection for one in each for connection in one.connections),
            open_operations=sum(one.open_operations for one in each),
            in_flight=sum(one.in_flight for one in each),
            orphans=sum(one.orphans for one in each),
            retries_by_reason={reason: sum(one.retries_by_reason.get(reason, 0) for one in each) for reason in reasons},
        )

    def _client_of(self, token: neutral.Token) -> ClientMachine:
        return self._clients[token % len(self._clients)]

    def _feed(self, index: int, event: couchbase.Event, now: float) -> Sequence[couchbase.Action]:
        return [self._renamed(action, index) for action in self._clients[index].handle(event, now)]

    def _renamed(self, action: couchbase.Action, index: int) -> couchbase.Action:
        if isinstance(
            action,
            neutral.OpenStream
            | neutral.SendBytes
            | neutral.CloseStream
            | neutral.PauseReading
            | neutral.ResumeReading
            | neutral.ReportConnection,
        ):
            stream = self._before[index] + action.stream
            self._opened[index] = max(self._opened[index], stream + 1)
            return msgspec.structs.replace(action, stream=neutral.StreamId(stream * len(self._clients) + index))
        return action
