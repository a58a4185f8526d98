"""Simulation whose users send requests to the query service, with a record of the requests that its nodes receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tests.core.runtime.kv.simulated import node_options
from triclinium_core import errors
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.options import Authenticator, ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.request_log import LoggedRequest
from triclinium_core.testing.simulation import Simulation

RECEIVE_SIZE = 64 * 1024

E = TypeVar("E", bound=errors.CouchbaseException)

STATEMENT = "SELECT hotels"
ADMINISTRATOR = PasswordAuthenticator("Administrator", "password")
ROWS = [b'{"n":1}', b'{"n":2}', b'{"n":3}']
ANSWER = FakeAnswer(rows=[{"n": 1}, {"n": 2}, {"n": 3}])


def asking(statement: str = STATEMENT, **options: Any) -> QueryRequest:
    """Return a query."""
    return QueryRequest(statement=statement, **options)


class Asking(Simulation):
    """Simulation of a client, and of nodes whose query service knows one statement."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        enhanced: bool = True,
        tokens: tuple[str, ...] = (),
        authenticator: Authenticator = ADMINISTRATOR,
        hosts: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self.actions: list[Action] = []
        cluster = FakeNodes(
            node_options(services=frozenset(Service), enhanced_prepared_statements=enhanced, tokens=tokens),
            nodes=nodes if hosts is None else [(host, 11210) for host in hosts],
        )
        cluster.script.answer(STATEMENT, ANSWER)
        connection_string = cluster.connection_string()
        assert connection_string is not None
        super().__init__(
            cluster, ClientOptions(connection_string=connection_string, authenticator=authenticator, **options)
        )

    def feed(self, event: Event) -> list[Action]:
        """Feed an event, and record the resulting actions."""
        actions = list(super().feed(event))
        self.actions += actions
        return actions

    def deliver(self, stream: StreamId, size: int | None = RECEIVE_SIZE) -> None:
        """Deliver at most as many bytes to the client as a driver reads at a time."""
        super().deliver(stream, size)

    def live(self, seconds: float) -> None:
        """Let ``seconds`` pass and all bytes flow, even after all requests have completed."""
        end = self.now + seconds
        self.flow()
        while (instant := self.wakeup) <= end:
            self.now = max(self.now, instant)
            self.flow()
        self.now = end

    def finish(self, request: ServiceRequest, **options: Any) -> Token:
        """Submit a request, run the simulation until it completes, and return its token."""
        token = self.request(request, **options)
        self.run()
        assert token in self.settled_at
        return token

    def failure(self, kind: type[E], request: ServiceRequest, **options: Any) -> E:
        """Run a request that must fail with exactly this class, and return its error."""
        error = self.errors[self.finish(request, **options)]
        assert type(error) is kind, repr(error)
        assert isinstance(error, kind)
        return error

    @property
    def asked(self) -> list[LoggedRequest]:
        """HTTP requests that the nodes have received, ordered by time."""
        return sorted((each for node in self.nodes for each in node.request_log), key=lambda each: each.now)

    def count(self, *kinds: type[Action]) -> int:
        """Return the number of actions of these types."""
        return sum(type(action) in kinds for action in self.actions)
