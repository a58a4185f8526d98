"""Handle through which a test uses a served fake cluster."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Unpack

from triclinium._cluster import Cluster, running
from triclinium._open_cluster import ClientArguments, make_driver, users_meter, users_tracer
from triclinium.abc import Connector
from triclinium.testing._node_server import NodeServer
from triclinium_core import errors
from triclinium_core.options import Authenticator, ClientOptions, PasswordAuthenticator
from triclinium_core.testing import FakeNode, FakeNodeOptions, FakeNodes


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """Cluster inside the process, of one or more nodes."""

    connection_string: str
    """``couchbase://…`` with all nodes."""
    authenticator: PasswordAuthenticator
    """Credentials of the user that the nodes accept."""
    connector: Connector
    """Connector to the cluster, as in ``open_cluster(fake.connection_string, fake.authenticator,
    connector=fake.connector)``."""
    tls_connection_string: str | None
    """``couchbases://…``; None if the nodes have no TLS port."""
    _server: NodeServer = field(repr=False)

    @property
    def node(self) -> FakeNode:
        """First node, with its faults, its documents and its command log."""
        return self._server.node

    @property
    def nodes(self) -> FakeNodes:
        """All nodes by number, with methods that change their map: ``fake.nodes.move(range(64), to=2)``."""
        return self._server.nodes

    def set_config_revision(self, revision: int, *, epoch: int | None = None) -> None:
        """Give the configs another version, and notify the subscribed clients.

        Raises:
            InvalidArgumentException: the revision or the epoch is invalid.
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
        """Open a client of this cluster for the block, with reproducible randomness and nonces.

        Args:
            authenticator: credentials; default: those that the nodes accept.
            seed: seed of the client's randomness. Clients that must not act in step need different seeds. Default: 0.
            arguments: options of ``open_cluster``, except ``ssl_context``, ``connector`` and ``resolver``.

        Raises:
            InvalidArgumentException: an argument is wrong.
        """
        nonces = count(1)
        tracer, meter = users_tracer(arguments.get("tracer")), users_meter(arguments.get("meter"))
        of_core: dict[str, Any] = {**arguments}
        tape = of_core.pop("tape", None)
        # If the caller passes a tracer or a meter, the driver uses it, and the core must not collect the same data.
        of_core |= {"tracer": None} if tracer is not None else {}
        of_core |= {"meter": None} if meter is not None else {}
        options = ClientOptions(
            connection_string=self.connection_string, authenticator=authenticator or self.authenticator, **of_core
        )
        driver = make_driver(
            options,
            connector=self.connector,
            redact_logs=redact_logs,
            tape=tape,
            tracer=tracer,
            meter=meter,
            rng=random.Random(seed),
            make_nonce=lambda: f"client{seed}nonce{next(nonces):016}",
        )
        return running(driver, self.connection_string)


def fake_cluster(server: NodeServer, connector: Connector, *, host: str | None = None) -> FakeCluster:
    """Return the cluster of served nodes, all of them at ``host`` if it is given."""
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


def with_buckets(options: FakeNodeOptions, buckets: Sequence[str] | None) -> FakeNodeOptions:
    """Return the options of nodes with these buckets; None keeps those of ``options``.

    Raises:
        InvalidArgumentException: ``buckets`` is not a sequence of names. A single string is not one either.
    """
    if buckets is None:
        return options
    if isinstance(buckets, str) or not isinstance(buckets, Sequence):
        raise errors.InvalidArgumentException(f"buckets={buckets!r} must be a sequence of names", parameter="buckets")
    return replace(options, buckets=tuple(buckets))
