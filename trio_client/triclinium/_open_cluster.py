"""The entry points ``open_cluster``, for a block, and ``run_cluster``, for a nursery of the caller."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import NoneType
from typing import TypedDict, Unpack

import trio

from triclinium._cluster import Cluster, running
from triclinium._cluster_driver.certificates import show_certificate, verifies_tls
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import Log
from triclinium._driver.connector import TcpConnector
from triclinium._driver.streams import new_nonce
from triclinium._tapes.tape import Tape
from triclinium._telemetry.telemetry import Telemetry
from triclinium.abc import Connector, Resolver
from triclinium_core import errors
from triclinium_core.checks import check_flag, check_method, check_type
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.options import Authenticator, ClientOptions, TimeoutOptions
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import CircuitBreakerOptions, FastFailOnTerminalErrorRetryStrategy
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.metrics import Meter
from triclinium_core.telemetry.tracing import RequestTracer


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
    dns_srv_domains: Sequence[str] = (),
    max_http_connections: int = 64,
    redact_logs: bool = False,
    tracer: RequestTracer | ThresholdLoggingTracer | None = ThresholdLoggingTracer(),
    meter: Meter | LoggingMeter | None = LoggingMeter(),
    orphans: OrphanReporter | None = OrphanReporter(),
    tape: Tape | None = None,
) -> AbstractAsyncContextManager[Cluster]:
    """Open a cluster for the block; leaving the block closes all its connections immediately.

    If an asynchronous strategy is recording a success at that moment, leaving waits until it has finished, as long as
    the scopes around the block permit. If the block raises, leaving does not wait for it.

    Entering does not wait for a connection. The first operation reports connection problems. An exception that the
    block raises is not wrapped or copied.

    Args:
        connection_string: ``couchbase://host``, ``couchbases://host`` for TLS, or ``memcached://host``; with a port if
            it is not the default one.
        authenticator: a password, a token or a certificate; None only for ``memcached://``. If it names the files
            of a certificate, the client loads them into ``ssl_context``, or into the default context.
        timeouts: upper limits of operations and requests. None, the default, for ``TimeoutOptions()``: 2.5 s for a
            key-value operation.
        retry_strategy: decides about retries. None, the default, for ``FastFailOnTerminalErrorRetryStrategy()``. A
            token strategy with a quota, such as ``StandardRetryStrategy()``, is a retry budget for the cluster.
        circuit_breaker: settings of the circuit breakers. None, the default, for ``CircuitBreakerOptions()``.
        ssl_context: settings of TLS. None, the default, verifies against the system's trust store. If the context
            does not verify certificates and host names, the client logs a WARNING, and PLAIN and tokens need
            permission, as without TLS.
        connector: opens connections. None, the default, uses TCP and TLS. A connector whose TLS does not verify
            certificates and host names must have the attribute ``tls_is_verified = False``.
        resolver: looks up the nodes of a cluster by its name. None, the default, uses DNS.
        hello_after_auth: send HELLO after authentication, for servers that refuse it before. Default: False.
        renegotiate_on_corrupt_error_map: reconnect without extended errors if a node's error map is corrupt. Default:
            False.
        compression: allow compressed values on the wire. Default: True.
        network: which addresses of the nodes to use: ``"default"``, ``"external"`` or another network's name.
            ``"auto"``, the default, uses the network of the seed address.
        enable_dns_srv: allow a single host without a port to be the DNS name of a cluster. Default: True.
        dns_srv_domains: further domains at or below which a target of an SRV record may be. Targets at or below
            the host of the connection string are always accepted. If the host has four labels or more, so are targets
            at or below its parent. Default: no further domains.
        max_http_connections: maximum number of connections to each HTTP service of each node; 0 for no limit. Default:
            64.
        redact_logs: mark user data as ``<ud>…</ud>`` in the log. Default: False.
        tracer: a ``RequestTracer`` gets a span for each operation. The default logs slow operations instead. None
            disables both.
        meter: receives the durations of operations. The default logs a summary every ten minutes. None disables it.
        orphans: logs responses that arrive after their operation ended. The default logs samples every ten seconds.
            None disables it.
        tape: records what happens in the client: a ``DecisionTape`` or an ``EventTape``. None, the default, records
            nothing.

    Raises:
        InvalidArgumentException: an argument is wrong, or the file of the tape cannot be created.
        InternalError: on leaving: a background task crashed and cancelled the block.
        RuntimeError: on entering: the caller is not in a trio task, or the object was entered before.

    Cancellation: cancels the block, not the connections. Cleanup code can still write from a shielded scope.
    """
    options = ClientOptions(
        connection_string=connection_string,
        authenticator=authenticator,
        timeouts=TimeoutOptions() if timeouts is None else timeouts,
        retry_strategy=FastFailOnTerminalErrorRetryStrategy() if retry_strategy is None else retry_strategy,
        circuit_breaker=CircuitBreakerOptions() if circuit_breaker is None else circuit_breaker,
        hello_after_auth=hello_after_auth,
        renegotiate_on_corrupt_error_map=renegotiate_on_corrupt_error_map,
        compression=compression,
        network=network,
        enable_dns_srv=enable_dns_srv,
        dns_srv_domains=dns_srv_domains,
        max_http_connections=max_http_connections,
        tracer=tracer if isinstance(tracer, ThresholdLoggingTracer) else None,
        meter=meter if isinstance(meter, LoggingMeter) else None,
        orphans=orphans,
    )
    if resolver is not None:
        check_method(resolver, "resolver", "look_up", "look_up(service)")
    connector = _connector(connector, ssl_context, options)
    driver = make_driver(
        options,
        connector=connector,
        resolver=resolver,
        redact_logs=redact_logs,
        tracer=users_tracer(tracer),
        meter=users_meter(meter),
        tape=tape,
    )
    return running(driver, connection_string)


class CoreArguments(TypedDict, total=False):
    """Optional arguments of ``open_cluster`` that are options of the core."""

    timeouts: TimeoutOptions
    retry_strategy: AnyRetryStrategy
    circuit_breaker: CircuitBreakerOptions
    hello_after_auth: bool
    renegotiate_on_corrupt_error_map: bool
    compression: bool
    network: str
    enable_dns_srv: bool
    dns_srv_domains: Sequence[str]
    max_http_connections: int
    orphans: OrphanReporter | None


class ClientArguments(CoreArguments, total=False):
    """Options of the core, a tracer and a meter of the core or of the user, and the tape."""

    tracer: RequestTracer | ThresholdLoggingTracer | None
    meter: Meter | LoggingMeter | None
    tape: Tape | None


class ClusterArguments(ClientArguments, total=False):
    """Keyword arguments of ``open_cluster``."""

    ssl_context: ssl.SSLContext
    connector: Connector
    resolver: Resolver
    redact_logs: bool


async def run_cluster(
    connection_string: str,
    authenticator: Authenticator | None = None,
    *,
    task_status: trio.TaskStatus[Cluster] = trio.TASK_STATUS_IGNORED,
    **arguments: Unpack[ClusterArguments],
) -> None:
    """Run a cluster in your own nursery: ``cluster = await nursery.start(run_cluster, connection_string, auth)``.

    The cluster runs until the task is cancelled. The arguments and exceptions are those of ``open_cluster``.

    Cancellation: closes the cluster immediately.
    """
    async with open_cluster(connection_string, authenticator, **arguments) as cluster:
        task_status.started(cluster)
        await trio.sleep_forever()


def make_driver(
    options: ClientOptions,
    *,
    connector: Connector,
    resolver: Resolver | None = None,
    redact_logs: bool = False,
    tracer: RequestTracer | None = None,
    meter: Meter | None = None,
    rng: random.Random | None = None,
    make_nonce: Callable[[], str] = new_nonce,
    tape: Tape | None = None,
) -> ClusterDriver:
    """Return a driver with the real machine. Tests pass their own randomness.

    Raises:
        InvalidArgumentException: ``redact_logs`` is not a bool, the machine refuses an option, or ``tape`` is invalid
            or cannot record the client.
    """
    log = Log(redact=check_flag(redact_logs, "redact_logs"))
    options = replace(options, tls_is_verified=verifies_tls(connector))
    check_type(tape, "tape", Tape, NoneType)
    if tape is None and Tape.make_default is not None:
        tape = Tape.make_default(options)
    rng = rng if rng is not None else random.Random()
    recording = None if tape is None else tape.record(options, rng=rng, warn=log.tape_problem)
    machine = ClientMachine(options, rng=rng) if recording is None else recording.machine
    log.options(parse_connection_string(options.connection_string).over(options))
    telemetry = None
    if tracer is not None or meter is not None:
        telemetry = Telemetry(tracer, meter, lambda: machine.cluster_labels)
    return ClusterDriver(
        machine,
        connector=connector,
        resolver=resolver,
        log=log,
        telemetry=telemetry,
        # The logs of slow operations and of orphans include the encoding time.
        measures_encoding=options.tracer is not None or options.orphans is not None,
        make_nonce=make_nonce,
        call_timeout=options.timeouts.management,
        recording=recording,
    )


def users_tracer(given: RequestTracer | ThresholdLoggingTracer | None) -> RequestTracer | None:
    """Return the tracer if the user implements it; None for the core's own tracer and for None.

    Raises:
        InvalidArgumentException: the tracer has no method ``request_span``.
    """
    if given is None or isinstance(given, ThresholdLoggingTracer):
        return None
    check_method(given, "tracer", "request_span", "request_span(name, parent)")
    return given


def users_meter(given: Meter | LoggingMeter | None) -> Meter | None:
    """Return the meter if the user implements it; None for the core's own meter and for None.

    Raises:
        InvalidArgumentException: the meter has no method ``value_recorder``.
    """
    if given is None or isinstance(given, LoggingMeter):
        return None
    check_method(given, "meter", "value_recorder", "value_recorder(name, tags)")
    return given


def _connector(given: Connector | None, ssl_context: ssl.SSLContext | None, options: ClientOptions) -> Connector:
    tls = parse_connection_string(options.connection_string).tls
    check_type(ssl_context, "ssl_context", ssl.SSLContext, NoneType)
    if ssl_context is not None and (given is not None or not tls):
        why = "without TLS; connect with couchbases://" if given is None else "with a connector; configure TLS there"
        raise errors.InvalidArgumentException(f"ssl_context has no effect {why}", parameter="ssl_context")
    connector = TcpConnector(ssl_context) if given is None else given
    check_method(connector, "connector", "connect", "connect(host, port, tls=...)")
    # Without TLS, the client cannot present a certificate, and the core refuses a CertificateAuthenticator.
    if tls:
        show_certificate(connector, options.authenticator)
    return connector
