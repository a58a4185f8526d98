"""What a ping found, for people."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tests.rows import rows
from triclinium import ConnectionStatistics
from triclinium._cli.ping import report
from triclinium._cli.ping.pinging import NOOPS, PingedCluster, PingedConnection, PingedNode

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
                "mechanism": "PLAIN (offered: nothing said)",
                "config": "none",
            },
        ),
        (BARE, None, {"TLS": "none", "protocol": "plain memcached: nothing is negotiated"}),
    ],
)
def test_facts_of_a_connection(found: ConnectionStatistics, tls: str | None, expected: dict[str, str]) -> None:
    """What there is none of is told too."""
    assert expected == dict(report.facts(PingedConnection(found, tls, 0.004, 0.0002)))


def test_elsewhere_than_on_a_terminal_a_fact_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However long it is."""
    report.show(PingedCluster([PingedNode("127.0.0.1:11210", (PingedConnection(FOUND, None, 0.004, 0.0002),), None)]))

    title, *facts = capsys.readouterr().out.splitlines()
    assert f"127.0.0.1:11210, bucket 'default': ready in 4.00 ms, NOOP in 0.20 ms (median of {NOOPS})" == title
    assert "  TLS: none" == facts[0]
    assert 5 == len(facts)


@rows("width", [60, 120])
def test_on_a_terminal_facts_are_a_table(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No fact is wider than the screen, and none is cut."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=width, color_system=None, highlight=False)
    monkeypatch.setattr(report, "Console", lambda **_: console)
    pinged = PingedConnection(FOUND, None, 0.004, 0.0002)

    report.show(PingedCluster([PingedNode(FOUND.node, (pinged,), None)]))

    _, *table = output.getvalue().splitlines()
    assert max(map(len, table)) <= width
    assert " ".join(f"{name} {value}" for name, value in report.facts(pinged)) == " ".join(" ".join(table).split())
