"""pytest plugin inside the environment of the official client.

It runs without our packages. It directs the client's tests to the served nodes and writes one line of JSON for each
event of a test to the file in ``OFFICIAL_SUITE_REPORT``.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

REASON_SIZE_MAX = 400
"""Maximum length of a reason, in characters."""


def pytest_configure(config: pytest.Config) -> None:
    """Replace the address in the configuration of the client's tests with the address of the served nodes."""
    settings: Any = importlib.import_module("tests.couchbase_config")
    settings.CONFIG_FILE = os.environ["OFFICIAL_SUITE_CONFIG"]
    # The configuration of these tests has no setting for the key-value port.
    settings.CouchbaseConfig.get_connection_string = lambda self: os.environ["OFFICIAL_SUITE_CONNECTION_STRING"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that an earlier process has run, and report all others."""
    done = set(json.loads(os.environ["OFFICIAL_SUITE_DONE"]))
    items[:] = [item for item in items if item.nodeid not in done]
    for item in items:
        _write(event="collected", test=item.nodeid)


def pytest_runtest_logstart(nodeid: str, location: object) -> None:
    """Report the start of a test."""
    _write(event="started", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Report the result of one phase of a test."""
    _write(event=report.outcome, test=report.nodeid, phase=report.when, reason=_reason_of(report))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Report a file that cannot be imported, or that skips itself."""
    if report.outcome != "passed":
        _write(event=report.outcome, test=report.nodeid, phase="collect", reason=_reason_of(report))


def _reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"[:REASON_SIZE_MAX]
    found: Any = report.longrepr
    if found is None:
        return ""
    if isinstance(found, tuple):
        return str(found[2]).removeprefix("Skipped: ")[:REASON_SIZE_MAX]
    crash = getattr(found, "reprcrash", None)
    text = crash.message if crash is not None else str(found)
    return " ".join(text.split())[:REASON_SIZE_MAX]


def _write(**event: object) -> None:
    # Write each line immediately, because the client may end the process.
    with Path(os.environ["OFFICIAL_SUITE_REPORT"]).open("a", encoding="utf-8") as report:
        report.write(json.dumps(event) + "\n")
