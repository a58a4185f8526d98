"""Simulation whose users send requests to the query service, with a record of the requests that its nodes receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.core.runtime.kv.simulated import E, Watched, node_options
from triclinium_core.contract.couchbase import Action
from triclinium_core.contract.neutral import StreamId, Token
from triclinium_core.options import Authenticator, ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.request_log import LoggedRequest

RECEIVE_SIZE = 64 * 1024

STATEMENT = "SELECT hotels"
ADMINISTRATOR = PasswordAuthenticator("Administrator", "password")
ROWS = [b'{"n":1}', b'{"n":2}', b'{"n":3}']
ANSWER = FakeAnswer(rows=[{"n": 1}, {"n": 2}, {"n": 3}])
NO_INDEX = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
"""Error response that the strategies retry."""


def asking(statement: str = STATEMENT, **options: Any) -> QueryRequest:
    """Return a query."""
    return QueryRequest(statement=statement, **options)


class Asking(Watched):
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

    def deliver(self, stream: StreamId, size: int | None = RECEIVE_SIZE) -> None:
        """Deliver at most as many bytes to the client as a driver reads at a time."""
        super().deliver(stream, size)

    def finish(self, request: ServiceRequest, **options: Any) -> Token:
        """Submit a request, run the simulation until it completes, and return its token."""
        return self.settled(self.request(request, **options))

    def failure(self, kind: type[E], request: ServiceRequest, **options: Any) -> E:
        """Run a request that must fail with exactly this class, and return its error."""
        return self.error(kind, self.finish(request, **options))

    @property
    def asked(self) -> list[LoggedRequest]:
        """HTTP requests that the nodes have received, ordered by time."""
        return sorted((each for node in self.nodes for each in node.request_log), key=lambda each: each.now)

    def count(self, *kinds: type[Action]) -> int:
        """Return the number of actions of these types."""
        return sum(type(action) in kinds for action in self.actions)
