"""Report of a ping, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triclinium._cli._output import plain
from triclinium._cli.ping.pinging import NOOPS, PingedCluster, PingedConnection
from triclinium.health import EndpointPingReport, PingState
from triclinium_core.explain.explanation import milliseconds
from triclinium_core.shown import json_text


def show(pinged_cluster: PingedCluster) -> None:
    """Print the features of each connection, then the services that answered; without a terminal, one fact per line."""
    console = Console(highlight=False)
    for pinged in (connection for node in pinged_cluster.nodes for connection in node.connections):
        console.print(_title(pinged), soft_wrap=True)
        if console.is_terminal:
            console.print(_table(pinged))
        else:
            for name, value in facts(pinged):
                console.print(plain(f"  {name}: {value}"), soft_wrap=True)
    for service, reports in pinged_cluster.endpoints.items():
        for found in reports:
            if found.state is PingState.OK:
                answered = (f"answered in {_ms(found.latency)} ms", "green")
                console.print(Text.assemble(plain(found.remote, "bold"), f", {service}: ", answered), soft_wrap=True)


def _title(pinged: PingedConnection) -> Text:
    found = pinged.negotiated
    return Text.assemble(
        plain(found.node, "bold"),
        f", {'no bucket' if found.bucket is None else f'bucket {found.bucket!r}'}: ",
        (f"ready in {_ms(pinged.ready_after)} ms, NOOP in {_ms(pinged.round_trip)} ms", "green"),
        (f" (median of {NOOPS})", "dim"),
    )


def _table(pinged: PingedConnection) -> Padding:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    for name, value in facts(pinged):
        table.add_row(name, plain(value))
    return Padding(table, (0, 0, 1, 2), expand=False)


def facts(pinged: PingedConnection) -> Iterator[tuple[str, str]]:
    """Yield the negotiated features in words."""
    found = pinged.negotiated
    yield "TLS", pinged.tls or "none"
    if found.sasl_mechanism is None:
        yield "protocol", "plain memcached: nothing is negotiated"
        return
    yield "features", ", ".join(found.features) or "none"
    if found.error_map_version is None:
        yield "error map", "none"
    else:
        yield "error map", f"version {found.error_map_version}, revision {found.error_map_revision}"
    offered = ", ".join(found.sasl_mechanisms) or "none listed"
    yield "mechanism", f"{found.sasl_mechanism} (offered: {offered})"
    if found.config_revision is None:
        yield "config", "none"
    else:
        epoch, revision = found.config_revision
        yield "config", f"epoch {epoch}, revision {revision}"


def as_json(pinged: PingedCluster) -> str:
    """Return the results as one JSON object on one line."""
    return json_text(
        {
            "ok": not pinged.problems,
            "nodes": [
                {
                    "node": node.node,
                    "error": node.problem,
                    "connections": [_connection_as_json(connection) for connection in node.connections],
                }
                for node in pinged.nodes
            ],
            "services": {
                service: [_endpoint_as_json(found) for found in reports]
                for service, reports in pinged.endpoints.items()
            },
        }
    )


def _endpoint_as_json(found: EndpointPingReport) -> dict[str, object]:
    return {
        "endpoint": found.remote,
        "state": found.state.value,
        "latency_ms": milliseconds(found.latency),
        "bucket": found.namespace,
        "error": found.error,
    }


def _connection_as_json(pinged: PingedConnection) -> dict[str, object]:
    found = pinged.negotiated
    epoch, revision = found.config_revision or (None, None)
    return {
        "bucket": found.bucket,
        "tls": pinged.tls,
        "features": found.features,
        "error_map_version": found.error_map_version,
        "error_map_revision": found.error_map_revision,
        "mechanisms_offered": found.sasl_mechanisms,
        "mechanism": found.sasl_mechanism,
        "config_epoch": epoch,
        "config_revision": revision,
        "ready_ms": milliseconds(pinged.ready_after),
        "noop_ms": milliseconds(pinged.round_trip),
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"
