"""The two ways to a cluster: ``open_cluster`` for a block, ``run_cluster`` for a nursery of one's own."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import trio

from triclinium._cluster import Cluster, running
from triclinium._driver.connector import TcpConnector, show_certificate
from triclinium._driver.driver import Driver
from triclinium._driver.log import Log
from triclinium._driver.stream import new_nonce
from triclinium.abc import Connector, Resolver
from triclinium_core.checks import check_flag
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.client_machine import ClientMachine
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.options import (
    AUTHENTICATOR_NAMES,
    AUTHENTICATORS,
    Authenticator,
    ClientOptions,
    TimeoutOptions,
)
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy, FastFailOnTerminalErrorRetryStrategy


def open_cluster(
    connection_string: str,
    authenticator: Authenticator | None = None,
    *,
    timeouts: TimeoutOptions | None = None,
    retry_strategy: AnyRetryStrategy | None = None,
    circuit_breaker: CircuitBreakerOptions | None = None,
    ssl_context: ssl.SSLContext | None = None,
    connector: Connector | None = None,
    resolver: Resolver | None = None,
    hello_after_auth: bool = False,
    renegotiate_on_corrupt_error_map: bool = False,
    compression: bool = True,
    network: str = "auto",
    enable_dns_srv: bool = True,
    redact_logs: bool = False,
) -> AbstractAsyncContextManager[Cluster]:
    """Give the block a cluster; leaving the block closes all its connections at once.

    Entering waits for nothing: whatever is wrong with the cluster shows in the first operation. An exception of the
    block leaves it as the very same object.

    Args:
        connection_string: ``couchbase://host``, ``couchbases://host`` for TLS, or ``memcached://host``; with a port
            where it is not the usual one.
        authenticator: a password, a token or a certificate; None only over ``memcached://``. A certificate that is named
            by its files is loaded into ``ssl_context``, where that is given.
        timeouts: the safety net; 2.5 s for an operation unless given.
        retry_strategy: ``FastFailOnTerminalErrorRetryStrategy()`` unless given.
        circuit_breaker: on, with the usual numbers, unless given.
        ssl_context: how to speak TLS; the system's trust store, verifying, unless given.
        connector: replaces TCP and TLS.
        resolver: replaces DNS where the nodes of a cluster are looked up by its name.
        hello_after_auth: for servers that refuse HELLO before authentication.
        renegotiate_on_corrupt_error_map: reconnect without extended errors where a node's error map is corrupt.
        compression: whether values may travel compressed.
        network: by which of its addresses each node is reached; by default that by which the cluster was found.
        enable_dns_srv: whether a lone host without a port may be the name of a cluster in DNS.
        redact_logs: whether document ids are marked as ``<ud>…</ud>`` in the log.

    Raises:
        InvalidArgumentException: an argument is wrong.
        InternalError: on leaving: a background task crashed, which had cancelled the block.

    Cancellation: reaches the block and not the connections, so that a block that is being cancelled can still write
    from within a shielded scope.
    """
    return running(
        make_driver(
            _options(
                connection_string,
                authenticator,
                timeouts,
                retry_strategy,
                circuit_breaker,
                hello_after_auth=hello_after_auth,
                renegotiate_on_corrupt_error_map=renegotiate_on_corrupt_error_map,
                compression=compression,
                network=network,
                enable_dns_srv=enable_dns_srv,
            ),
            connector=_connector(
                connector, ssl_context, authenticator, tls=parse_connection_string(connection_string).tls
            ),
            resolver=_resolver(resolver),
            log=Log(redact=check_flag(redact_logs, "redact_logs")),
        ),
        connection_string,
    )


async def run_cluster(
    connection_string: str,
    authenticator: Authenticator | None = None,
    *,
    timeouts: TimeoutOptions | None = None,
    retry_strategy: AnyRetryStrategy | None = None,
    circuit_breaker: CircuitBreakerOptions | None = None,
    ssl_context: ssl.SSLContext | None = None,
    connector: Connector | None = None,
    resolver: Resolver | None = None,
    hello_after_auth: bool = False,
    renegotiate_on_corrupt_error_map: bool = False,
    compression: bool = True,
    network: str = "auto",
    enable_dns_srv: bool = True,
    redact_logs: bool = False,
    task_status: trio.TaskStatus[Cluster] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a cluster in a nursery of one's own: ``cluster = await nursery.start(run_cluster, connection_string, auth)``.

    It runs until it is cancelled. The arguments, and what it raises, are those of ``open_cluster``.

    Cancellation: closes the cluster at once.
    """
    async with open_cluster(
        connection_string,
        authenticator,
        timeouts=timeouts,
        retry_strategy=retry_strategy,
        circuit_breaker=circuit_breaker,
        ssl_context=ssl_context,
        connector=connector,
        resolver=resolver,
        hello_after_auth=hello_after_auth,
        renegotiate_on_corrupt_error_map=renegotiate_on_corrupt_error_map,
        compression=compression,
        network=network,
        enable_dns_srv=enable_dns_srv,
        redact_logs=redact_logs,
    ) as cluster:
        task_status.started(cluster)
        await trio.sleep_forever()


def make_driver(
    options: ClientOptions,
    *,
    connector: Connector,
    resolver: Resolver | None = None,
    log: Log | None = None,
    rng: random.Random | None = None,
    make_nonce: Callable[[], str] = new_nonce,
) -> Driver:
    """Return a driver with the real machine; tests pass their own randomness.

    Raises:
        InvalidArgumentException: the machine refuses an option.
    """
    machine = ClientMachine(options, rng=rng if rng is not None else random.Random())
    return Driver(
        machine,
        connector=connector,
        resolver=resolver,
        log=log if log is not None else Log(),
        make_nonce=make_nonce,
    )


def _options(
    connection_string: str,
    authenticator: Authenticator | None,
    timeouts: TimeoutOptions | None,
    retry_strategy: AnyRetryStrategy | None,
    circuit_breaker: CircuitBreakerOptions | None,
    *,
    hello_after_auth: bool,
    renegotiate_on_corrupt_error_map: bool,
    compression: bool,
    network: str,
    enable_dns_srv: bool,
) -> ClientOptions:
    """Return the options of the core, once their types are right; the core knows what the values may be."""
    if authenticator is not None and not isinstance(authenticator, AUTHENTICATORS):
        # What was passed may well be a secret, so the error does not quote it.
        raise InvalidArgumentException(
            f"authenticator must be a {AUTHENTICATOR_NAMES}, not {type(authenticator).__name__}",
            parameter="authenticator",
        )
    for name, value, kind in (
        ("timeouts", timeouts, TimeoutOptions),
        ("circuit_breaker", circuit_breaker, CircuitBreakerOptions),
    ):
        if value is not None and not isinstance(value, kind):
            raise InvalidArgumentException(f"{name}={value!r} must be a {kind.__name__}", parameter=name)
    return ClientOptions(
        connection_string=connection_string,
        authenticator=authenticator,
        timeouts=timeouts or TimeoutOptions(),
        retry_strategy=FastFailOnTerminalErrorRetryStrategy() if retry_strategy is None else retry_strategy,
        circuit_breaker=circuit_breaker or CircuitBreakerOptions(),
        compression=check_flag(compression, "compression"),
        network=network,
        enable_dns_srv=check_flag(enable_dns_srv, "enable_dns_srv"),
        hello_after_auth=check_flag(hello_after_auth, "hello_after_auth"),
        renegotiate_on_corrupt_error_map=check_flag(
            renegotiate_on_corrupt_error_map, "renegotiate_on_corrupt_error_map"
        ),
    )


def _resolver(resolver: Resolver | None) -> Resolver | None:
    if resolver is not None and (isinstance(resolver, type) or not callable(getattr(resolver, "look_up", None))):
        raise InvalidArgumentException(
            f"resolver={resolver!r} must be an object with a method look_up(service)", parameter="resolver"
        )
    return resolver


def _connector(
    connector: Connector | None, ssl_context: ssl.SSLContext | None, authenticator: Authenticator | None, *, tls: bool
) -> Connector:
    connector = _checked(connector, ssl_context, tls=tls)
    # What does not go with the scheme is for the core to refuse, which knows why.
    if tls:
        show_certificate(connector, authenticator)
    return connector


def _checked(connector: Connector | None, ssl_context: ssl.SSLContext | None, *, tls: bool) -> Connector:
    if ssl_context is not None and not isinstance(ssl_context, ssl.SSLContext):
        raise InvalidArgumentException(f"ssl_context={ssl_context!r} must be an SSLContext", parameter="ssl_context")
    if connector is None:
        if ssl_context is not None and not tls:
            raise InvalidArgumentException(
                "ssl_context has no effect without TLS; connect with couchbases://", parameter="ssl_context"
            )
        return TcpConnector(ssl_context)
    if ssl_context is not None:
        raise InvalidArgumentException(
            "ssl_context has no effect beside a connector, which does TLS itself", parameter="ssl_context"
        )
    if isinstance(connector, type) or not callable(getattr(connector, "connect", None)):
        raise InvalidArgumentException(
            f"connector={connector!r} must be an object with a method connect(host, port, tls=...)",
            parameter="connector",
        )
    return connector
