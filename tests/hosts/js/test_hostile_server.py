"""JSON of a server that is nested too deeply, which costs one request and not the process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.serving import serving
from tests.hosts.js.conftest import RunNode

pytestmark = [pytest.mark.hosts, pytest.mark.native]

DEEP = "[" * 20_000
"""Start of arrays whose decoding ends Python in WebAssembly."""


def test_deeply_nested_responses(run_node: RunNode, tmp_path: Path) -> None:
    """A row, a response or an error that is nested too deeply fails its query; later operations succeed."""
    bodies = {"row": '{"results":[' + DEEP + "]" * len(DEEP) + "]}", "rest": '{"results":[],"a":' + DEEP, "error": DEEP}
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                {"statement": f"SELECT {name}", "body": body, "http_status": 500 if name == "error" else 200}
                for name, body in bodies.items()
            ]
        ),
        encoding="utf-8",
    )
    with serving("--script", str(script)) as said:
        shown = run_node("hostile.mjs", said)

    names = ["DecodingFailureException", "DecodingFailureException", "InternalServerFailureException", [{"one": 1}]]
    assert [each for name in names for each in (name, 1)] == shown
