"""Summary at the end of a run: the number of moments at which each call was cancelled."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line for each situation, with its calls and the number of moments at which each was cancelled.

    A number in brackets counts the moments that were checkpoints of the caller's own task; most calls have one.
    """
    counts: dict[str, list[str]] = {}
    total = 0
    for finished in terminalreporter.getreports("passed"):
        for name, value in getattr(finished, "user_properties", ()):
            if name == "cancelled":
                situation, what, moments, checkpoints = value
                own = "" if checkpoints == 1 else f" ({checkpoints})"
                counts.setdefault(situation, []).append(f"{what} {moments}{own}")
                total += moments
    if counts:
        terminalreporter.section(f"cancelled at {total} moments, and used afterwards")
        for situation, calls in counts.items():
            terminalreporter.write_line(f"{situation}: {', '.join(calls)}")
