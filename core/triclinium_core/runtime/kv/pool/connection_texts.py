"""Texts about the state of a connection for errors and logs, some with a hint about the cause or the next step."""

from __future__ import annotations

from triclinium_core.contract.neutral import LossCause, StreamLost
from triclinium_core.kv.topology.connection_string import HTTP_PORTS
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.connection.states import ConnectionState
from triclinium_core.shown import one_line

LEFT_THE_MAP = "the node is not in the cluster map any more"
"""Reason for closing a connection whose node has left the map."""

_CERTIFICATE_HINT = "; the node requires a client certificate: use CertificateAuthenticator"
CONSOLE_PORT = (
    "8091 and 18091 are ports of the web console: remove the port from the connection string; KV listens on 11210, or on "
    "11207 with TLS"
)
"""Advice for an address with a port of the web console."""
_MEMCACHED_HINT = "; if it is a plain memcached, connect with memcached:// instead"


def ready_text(losses: int) -> str:
    """Return the text for a ready connection, with the number of failures before, if any."""
    return f"ready, after {losses} {'failure' if losses == 1 else 'failures'}" if losses else "ready"


def status_text(connection: Connection) -> str:
    """Return the state of a connection in words."""
    last_error = connection.history.last_end.error
    if connection.state is ConnectionState.LOST and last_error is not None:
        return last_error
    text = f"{connection.node}: {connection.state.value}"
    if connection.state is ConnectionState.READY and connection.in_flight.is_full:
        text += f", with {len(connection.in_flight)} requests unanswered"
    if connection.state is ConnectionState.READY and not connection.breaker.allows_operations:
        text += f", and the circuit breaker is {connection.breaker.state.value}"
    if last_error is not None:
        text += f" after: {last_error.removeprefix(f'{connection.node}: ')}"
    if connection.addresses.remark not in text:
        text += connection.addresses.remark
    hint = _hint_of_silence(connection)
    # The hint replaces the advice for the previous stream.
    return text.removesuffix(f"; {CONSOLE_PORT}") + hint if hint else text


def overdue_text(connection: Connection, timeout: float) -> str:
    """Return the text for a connection that did not become ready in time, without its address."""
    # Leave out the previous error: if each text contained the previous one, it would grow with each failure.
    return (
        f"still {connection.state.value} after {timeout:g} s{connection.addresses.remark}{_hint_of_silence(connection)}"
    )


def loss_text(connection: Connection, event: StreamLost) -> str:
    """Return the text for the loss of a stream, or for the failure to open it."""
    cause = event.cause.value
    detail = f" ({one_line(event.text)})" if event.text and event.text.casefold() != cause else ""
    text = f"{connection.node}: {cause}{detail}"
    if event.cause is LossCause.TLS and "certificate required" in event.text.casefold():
        # With TLS 1.3, the server checks the client certificate only after the client considers the stream open, so
        # the refusal arrives as the loss of an open stream.
        return f"{text}{_CERTIFICATE_HINT}"
    if event.cause is not LossCause.TLS and connection.unanswered is not None:
        return f"{text} before it responded to {connection.unanswered.name}{_hint_of_protocol(connection)}"
    if connection.address.port in HTTP_PORTS and not connection.history.was_ready:
        return f"{text}; {CONSOLE_PORT}"
    return f"{text}{connection.addresses.remark}"


def _hint_of_silence(connection: Connection) -> str:
    if connection.unanswered is None:
        return ""
    return f"; it has not responded to {connection.unanswered.name}{_hint_of_protocol(connection)}"


def _hint_of_protocol(connection: Connection) -> str:
    """Return a hint about a server that has not responded on this stream, if the connection was never ready."""
    if connection.has_spoken or connection.history.was_ready:
        return ""
    return f"; {CONSOLE_PORT}" if connection.address.port in HTTP_PORTS else _MEMCACHED_HINT


def advice_on(connection: Connection, failure: BootstrapFailure | None) -> str:
    """Return the next step for a stream that the client closes, or an empty string."""
    is_mute = not (connection.has_spoken or connection.history.was_ready or connection.is_leaving)
    if is_mute and connection.address.port in HTTP_PORTS:
        return CONSOLE_PORT
    return failure.advice if failure is not None else ""


def advice_on_loss(connection: Connection, event: StreamLost, text: str) -> str:
    """Return the advice with which ``text`` ends if the stream ended like one to a web console, else an empty string.

    Args:
        text: the result of ``loss_text``, which has the advice even if no server listens on the port.
    """
    ended_so = event.cause is LossCause.TLS or not connection.has_spoken
    return CONSOLE_PORT if ended_so and text.endswith(f"; {CONSOLE_PORT}") else ""


def advised(reason: str, failure: BootstrapFailure | None, advice: str) -> str:
    """Return ``reason`` with ``advice`` at its end, in place of the advice of ``failure``."""
    for known in (failure.advice if failure is not None else "", advice):
        reason = reason.removesuffix(f"; {known}") if known else reason
    return f"{reason}; {advice}" if advice else reason
