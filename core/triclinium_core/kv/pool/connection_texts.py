"""What is wrong with a connection, in words for errors and logs, each with its address and a hint where one may help."""

from __future__ import annotations

from triclinium_core.client.events import LossCause, StreamLost
from triclinium_core.kv.connection.connection import Connection
from triclinium_core.kv.connection.states import ConnectionState
from triclinium_core.kv.topology.connection_string import HTTP_PORTS
from triclinium_core.shown import one_line

LEFT_THE_MAP = "the node is not in the cluster map any more"
"""Why a connection is closed whose node has left."""

_CERTIFICATE_HINT = "; it demands a certificate of the client, which CertificateAuthenticator shows"
_MEMCACHED_HINT = "; if it is a plain memcached, connect with memcached:// instead"


def ready_text(losses: int) -> str:
    """Say that a connection is ready, and how often its stream was lost, or could not be opened, before that."""
    return f"ready, after {losses} {'failure' if losses == 1 else 'failures'}" if losses else "ready"


def status_text(connection: Connection) -> str:
    """Return where a connection stands."""
    if connection.state is ConnectionState.LOST and connection.last_error is not None:
        return connection.last_error
    text = f"{connection.node}: {connection.state.value}"
    if connection.state is ConnectionState.READY and connection.in_flight.is_full:
        text += f", with {len(connection.in_flight)} requests unanswered"
    if connection.state is ConnectionState.READY and not connection.breaker.allows_operations:
        text += f", and the circuit breaker is {connection.breaker.state.value}"
    if connection.last_error is not None:
        text += f" after: {connection.last_error.removeprefix(f'{connection.node}: ')}"
    if connection.address_remark not in text:
        text += connection.address_remark
    return text + _hint_of_silence(connection)


def overdue_text(connection: Connection, timeout: float) -> str:
    """Return what a connection has not done in time, without its address."""
    # Without the error before this one, which ends in the one before that.
    return (
        f"still {connection.state.value} after {timeout:g} s{connection.address_remark}{_hint_of_silence(connection)}"
    )


def loss_text(connection: Connection, event: StreamLost) -> str:
    """Return how a stream was lost, or why it was not opened."""
    cause = event.cause.value
    said = f" ({one_line(event.text)})" if event.text and event.text.casefold() != cause else ""
    text = f"{connection.node}: {cause}{said}"
    if event.cause is LossCause.TLS and "certificate required" in event.text.casefold():
        # With TLS 1.3 a server looks at our certificate when we take the stream for open already.
        return f"{text}{_CERTIFICATE_HINT}"
    if event.cause is not LossCause.TLS and connection.unanswered is not None:
        return f"{text} before it answered {connection.unanswered.name}{_hint_of_protocol(connection)}"
    port = connection.address.port
    if port in HTTP_PORTS:
        return f"{text}; {port} is a port of the web console, KV listens on {HTTP_PORTS[port]}"
    return f"{text}{connection.address_remark}"


def _hint_of_silence(connection: Connection) -> str:
    if connection.unanswered is None:
        return ""
    return f"; it has not answered {connection.unanswered.name}{_hint_of_protocol(connection)}"


def _hint_of_protocol(connection: Connection) -> str:
    """Return what a peer may be that has never said a word of the protocol."""
    return "" if connection.has_spoken or connection.was_ready else _MEMCACHED_HINT
