"""The official client, release 4.6, with faults of ``triclinium serve --fault``, and the log of ``--log``."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

import pytest

from tests.live.line_process import SERVE, LineProcess
from tests.live.official import connected

pytestmark = pytest.mark.live

FAULTS = ("upsert: temporary_failure x2", "insert: drop_response", "remove: hang_up_after_applying")


def test_faults_of_the_official_client_are_logged(couchbase_package: None) -> None:
    """The client retries if a node is busy, and times out if a response is lost; the log has all injected faults."""
    faults = [part for fault in FAULTS for part in ("--fault", fault)]
    with LineProcess([*SERVE, "--log", *faults], end_with=signal.SIGTERM) as server:
        with connected("official_worker", server.hear()) as client:
            written = client.ask(do="upsert", key="ada", value=1)
            unanswered = client.ask(do="insert", key="grace", value=1, timeout=2.5)
            found = client.ask(do="get", key="grace")
            client.ask(do="remove", key="ada")
            left = client.ask(do="exists", key="ada")
        reported: list[Mapping[str, Any]] = []
        while not reported or (reported[-1].get("command"), reported[-1].get("key")) != ("get_meta", "ada"):
            reported.append(server.hear())

    assert "result" in written
    assert {"error": "AmbiguousTimeoutException"} == unanswered
    assert 1 == found["result"]["content"]
    assert {"result": False} == left
    assert [
        ("set", "TEMPORARY_FAILURE", False),
        ("set", "TEMPORARY_FAILURE", False),
        ("set", "SUCCESS", True),
        ("add", None, True),
        ("get", "SUCCESS", False),
        ("delete", None, True),
    ] == [
        (line["command"], line["status_name"], line["applied"])
        for line in reported
        if line.get("command") in ("set", "add", "get", "delete")
    ][:6]
