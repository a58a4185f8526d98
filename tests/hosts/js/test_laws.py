"""Laws of a driver, run inside Pyodide with the driver for Node."""

from __future__ import annotations

import pytest

from tests.hosts.js.conftest import RunNode
from triclinium_core.testing.driver_laws import LAWS

BROKEN = {
    "deaf": "a_pause_loses_nothing",
    "forgetful": "bytes_handed_over_are_never_fewer",
    "hasty": "arrived_bytes_come_before_the_time",
    "tardy": "bytes_come_before_the_loss",
}
"""Law that each broken driver of ``laws.mjs`` breaks."""


@pytest.mark.hosts
def test_driver_keeps_all_laws(run_node: RunNode) -> None:
    """The driver for Node keeps every law of a driver of the client machine."""
    found = run_node("laws.mjs", "correct")

    assert [{"law": law.__name__} for law in LAWS] == [
        {name: value for name, value in line.items() if value is not None} for line in found
    ]


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(name, marks=pytest.mark.hosts if name == "hasty" else pytest.mark.hosts_full)
        for name in sorted(BROKEN)
    ],
)
def test_broken_driver_breaks_its_law(variant: str, run_node: RunNode) -> None:
    """A driver for Node with one planted defect breaks the law that forbids the defect."""
    broken = {line["law"] for line in run_node("laws.mjs", variant) if line.get("broken") is not None}

    assert BROKEN[variant] in broken
