"""Handle of a test on the fake nodes while they are served."""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Unpack

from triclinium._cluster import Cluster, running
from triclinium._open_cluster import ClientArguments, make_driver, users_meter, users_tracer
from triclinium.abc import Connector
from triclinium.testing._node_server import NodeServer
from triclinium_core.options import Authenticator, ClientOptions, PasswordAuthenticator
from triclinium_core.testing import FakeNode, FakeNodes


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """A cluster inside the process, of one node or several."""

    connection_string: str
    """``couchbase://…``, with all nodes."""
    authenticator: PasswordAuthenticator
    """The user that the nodes know."""
    connector: Connector
    """The connector to it, as in ``open_cluster(fake.connection_string, fake.authenticator,
    connector=fake.connector)``."""
    tls_connection_string: str | None
    """``couchbases://…``; None where the nodes have no port for TLS."""
    _server: NodeServer = field(repr=False)

    @property
    def node(self) -> FakeNode:
        """The first node, with its faults, its documents and its command log."""
        return self._server.node

    @property
    def nodes(self) -> FakeNodes:
        """All nodes, by number, and what changes their map: ``fake.nodes.move(range(64), to=2)``."""
        return self._server.nodes

    def set_config_revision(self, revision: int, *, epoch: int | None = None) -> None:
        """Give all configs another version, and notify the clients that asked for it.

        Raises:
            InvalidArgumentException: a revision or an epoch that no config has.
        """
        self.nodes.set_config_revision(revision, epoch=epoch)

    def open_client(
        self,
        *,
        authenticator: Authenticator | None = None,
        seed: int = 0,
        redact_logs: bool = False,
        **arguments: Unpack[ClientArguments],
    ) -> AbstractAsyncContextManager[Cluster]:
        """Give the block a client of this cluster, whose randomness and nonces are the same every time.

        Args:
            authenticator: other credentials than the right ones.
            seed: of the client's randomness; another one for clients that must not act alike at once.
            arguments: those of ``open_cluster``.

        Raises:
            InvalidArgumentException: an argument is wrong.
        """
        nonces = count(1)
        tracer, meter = users_tracer(arguments.get("tracer")), users_meter(arguments.get("meter"))
        of_core: dict[str, Any] = {**arguments}
        # What a user brings is used by the driver, and the core then gathers nothing of that kind.
        of_core |= {"tracer": None} if tracer is not None else {}
        of_core |= {"meter": None} if meter is not None else {}
        options = ClientOptions(
            connection_string=self.connection_string, authenticator=authenticator or self.authenticator, **of_core
        )
        driver = make_driver(
            options,
            connector=self.connector,
            redact_logs=redact_logs,
            tracer=tracer,
            meter=meter,
            rng=random.Random(seed),
            make_nonce=lambda: f"client{seed}nonce{next(nonces):016}",
        )
        return running(driver, self.connection_string)


def fake_cluster(server: NodeServer, connector: Connector, *, host: str | None = None) -> FakeCluster:
    """Return the cluster of nodes that are served, all of them at ``host`` where it is given."""
    options, nodes = server.node.options, server.nodes
    connection_string = nodes.connection_string(host=host)
    assert connection_string is not None
    return FakeCluster(
        connection_string=connection_string,
        authenticator=PasswordAuthenticator(options.username, options.password),
        connector=connector,
        tls_connection_string=nodes.connection_string(host=host, tls=True),
        _server=server,
    )
