"""Injected failures, which end in Node as the decisions in ``tests/data`` and the trio client say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import triclinium
from docs.howto.examples.control_through_http import ask
from tests.docs.serving import serving
from tests.hosts.js.conftest import RunNode
from triclinium_core.kv.operation.results import Cas

DECISIONS = Path(__file__).parents[2] / "data" / "decisions.jsonl"

OPERATIONS = ("get", "upsert", "insert", "append", "increment", "decrement", "get_and_lock", "unlock")

PLAIN = {"id", "family", "ask", "service", "op", "status", "expect", "source"}
"""Fields of a question without an error map."""

STREAM_FAULTS = ("hang_up", "hang_up_after_applying", "hang_up_mid_reply(bytes_sent=12)", "drop_response", "garble")

SERVICE_FAULTS = ("http_status(503)", "proxy_page(code=502)", "hang_up_after_applying", "cut_body(bytes_sent=9)")

Case = dict[str, Any]


def decided() -> list[Mapping[str, Any]]:
    """Return the questions on the reason of a status of one operation, without those that need an error map."""
    lines = map(json.loads, DECISIONS.read_text(encoding="utf-8").splitlines())
    asked = (line for line in lines if (line["ask"], line.get("service")) == ("reason", "kv"))
    return [line for line in asked if line["op"] in OPERATIONS and line.keys() == PLAIN]


def cases(*, full: bool) -> list[Case]:
    """Return the cases of the decisions, and those of lost connections and of the query service."""
    statuses = [{"operation": line["op"], "fault": f"status({int(line['status'], 16)})"} for line in decided()]
    streams = [
        {"operation": operation, "fault": fault}
        for operation in ("get", "insert", "remove")
        for fault in (STREAM_FAULTS if full else STREAM_FAULTS[:2])
    ]
    services = [
        {"operation": operation, "fault": fault}
        for operation in ("query", "readonly")
        for fault in (SERVICE_FAULTS if full else SERVICE_FAULTS[:1])
    ]
    return [*statuses[:: 1 if full else 4], *streams, *services]


async def in_trio(served: Mapping[str, Any], asked: Sequence[Case]) -> list[Case]:
    """Return the outcomes of the trio client."""
    timeouts = triclinium.TimeoutOptions(kv=1.0, query=1.0)
    authenticator = triclinium.PasswordAuthenticator(served["username"], served["password"])
    outcomes: list[Case] = []
    async with triclinium.open_cluster(served["connection_string"], authenticator, timeouts=timeouts) as cluster:
        store = cluster.bucket("default").default_collection()

        async def query(readonly: bool) -> None:
            async with cluster.query("SELECT 1 AS one", readonly=readonly) as result:
                assert [{"one": 1}] == await result.rows()

        run: dict[str, Any] = {
            "get": lambda: store.get("ada"),
            "upsert": lambda: store.upsert("ada", 1),
            "insert": lambda: store.insert("grace", 1),
            "append": lambda: store.binary.append("text", b"x"),
            "increment": lambda: store.binary.increment("count", initial=1),
            "decrement": lambda: store.binary.decrement("count", initial=1),
            "get_and_lock": lambda: store.get_and_lock("held", 1),
            "unlock": lambda: store.unlock("ada", Cas(1)),
            "remove": lambda: store.remove("grace"),
            "query": lambda: query(False),
            "readonly": lambda: query(True),
        }
        await store.upsert("held", 1)
        for case in asked:
            ask(served["control"], "/commands", "clear_faults")
            await store.upsert("ada", 1)
            await store.upsert("text", b"\0", transcoder=triclinium.RawBinaryTranscoder())
            await store.upsert("grace", 1)
            if case["operation"] != "remove":
                await store.remove("grace")
            target = "query" if case["operation"] == "readonly" else case["operation"]
            ask(served["control"], "/commands", f"{target}: {case['fault']}")
            error = None
            try:
                await run[case["operation"]]()
            except triclinium.errors.CouchbaseException as raised:
                error = type(raised).__name__
            outcomes.append({**case, "error": error})
    return outcomes


@pytest.mark.parametrize(
    "full",
    [
        pytest.param(False, marks=pytest.mark.hosts, id="some"),
        pytest.param(True, marks=pytest.mark.hosts_full, id="all"),
    ],
)
async def test_failures_end_as_decided(full: bool, run_node: RunNode, tmp_path: Path) -> None:
    """Each injected failure ends with the class of the trio client, after a retry if the decision requires one."""
    asked = cases(full=full)
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(asked), encoding="utf-8")
    with serving("--nodes", "3") as served:
        found = run_node("faults.mjs", served, str(file))
    with serving("--nodes", "3") as served:
        expected = await in_trio(served, asked)

    assert expected == [{name: value for name, value in line.items() if name != "isRetried"} for line in found]
    is_retried = {(line["operation"], line["fault"]): line["isRetried"] for line in found}
    for line in decided():
        case = line["op"], f"status({int(line['status'], 16)})"
        if case in is_retried:
            assert (line["id"], line["expect"]["reason"] is not None) == (line["id"], is_retried[case])
