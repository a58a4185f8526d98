"""Check of the errors of commands."""

from __future__ import annotations

from click.testing import Result


def assert_refused(result: Result, *parts: str, status: int = 2) -> None:
    """Assert that a command exited with ``status``, an empty stdout, and one line on stderr that has all parts."""
    assert (status, "") == (result.exit_code, result.stdout)
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert [] == [part for part in parts if part not in line]
