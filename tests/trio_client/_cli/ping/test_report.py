"""Ping's report for people."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tests.rows import rows
from triclinium._cli.ping import report
from triclinium._cli.ping.pinging import NOOPS, PingedCluster, PingedConnection, PingedNode
from triclinium.health import ConnectionStatistics

FOUND = ConnectionStatistics(
    node="127.0.0.1:11210",
    bucket="default",
    state="READY",
    features=("JSON", "XERROR"),
    sasl_mechanisms=("SCRAM-SHA512", "PLAIN"),
    sasl_mechanism="SCRAM-SHA512",
    error_map_version=2,
    error_map_revision=9,
    config_revision=(1, 7),
)
BARE = ConnectionStatistics(node="127.0.0.1:11211", bucket=None, state="READY")
POOR = ConnectionStatistics(node="127.0.0.1:11210", bucket=None, state="READY", sasl_mechanism="PLAIN")


@rows(
    ("found", "tls", "expected"),
    [
        (
            FOUND,
            "TLSv1.3",
            {
                "TLS": "TLSv1.3",
                "features": "JSON, XERROR",
                "error map": "version 2, revision 9",
                "mechanism": "SCRAM-SHA512 (offered: SCRAM-SHA512, PLAIN)",
                "config": "epoch 1, revision 7",
            },
        ),
        (
            POOR,
            None,
            {
                "TLS": "none",
                "features": "none",
                "error map": "none",
                "mechanism": "PLAIN (offered: none listed)",
                "config": "none",
            },
        ),
        (BARE, None, {"TLS": "none", "protocol": "plain memcached: nothing is negotiated"}),
    ],
)
def test_facts_of_a_connection(found: ConnectionStatistics, tls: str | None, expected: dict[str, str]) -> None:
    """The facts of a connection include those that are missing or unknown."""
    assert expected == dict(report.facts(PingedConnection(found, tls, 0.004, 0.0002)))


def test_a_fact_is_one_line_without_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, each fact is one line, however long it is."""
    report.show(PingedCluster([PingedNode("127.0.0.1:11210", (PingedConnection(FOUND, None, 0.004, 0.0002),), None)]))

    title, *facts = capsys.readouterr().out.splitlines()
    assert f"127.0.0.1:11210, bucket 'default': ready in 4.00 ms, NOOP in 0.20 ms (median of {NOOPS})" == title
    assert "  TLS: none" == facts[0]
    assert 5 == len(facts)


@rows("width", [60, 120])
def test_on_a_terminal_facts_are_a_table(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """On a terminal, the table of facts fits the screen and shows each fact in full."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=width, color_system=None, highlight=False)
    monkeypatch.setattr(report, "Console", lambda **_: console)
    pinged = PingedConnection(FOUND, None, 0.004, 0.0002)

    report.show(PingedCluster([PingedNode(FOUND.node, (pinged,), None)]))

    _, *table = output.getvalue().splitlines()
    assert max(map(len, table)) <= width
    assert " ".join(f"{name} {value}" for name, value in report.facts(pinged)) == " ".join(" ".join(table).split())
