"""Injected failures, which end in Node as the decisions in ``tests/data`` and ``triclinium explain`` say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pytest

from tests.docs.serving import serving
from tests.hosts.js.conftest import RunNode
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.retry.couchbase import Service

DECISIONS = Path(__file__).parents[2] / "data" / "decisions.jsonl"

OPERATIONS = ("get", "upsert", "insert", "append", "increment", "decrement", "get_and_lock", "unlock")

PLAIN = {"id", "family", "ask", "service", "op", "status", "expect", "source"}
"""Fields of a question without an error map."""

CANCELED = "RequestCanceledException"
STREAM_FAULTS: Mapping[str, tuple[str | None, str | None]] = {
    "hang_up": (None, CANCELED),
    "hang_up_after_applying": (None, CANCELED),
    "hang_up_mid_reply(bytes_sent=12)": (None, CANCELED),
    "drop_response": ("UnambiguousTimeoutException", "AmbiguousTimeoutException"),
    "garble": (None, CANCELED),
}
"""Failures of a connection, each with the error of a read and of a write; a retry has no error."""

SERVICE_FAULTS: Mapping[str, tuple[str | None, str | None]] = {
    "http_status(503)": ("TemporaryFailureException", "TemporaryFailureException"),
    "proxy_page(code=502)": ("CouchbaseException", "CouchbaseException"),
    "hang_up_after_applying": (None, CANCELED),
    "cut_body(bytes_sent=9)": (None, CANCELED),
}
"""Failures of a query, each with the error of a readonly one and of another."""

Case = Mapping[str, object]


def statuses() -> Iterator[Case]:
    """Yield a case for each recorded decision about a status of a tested operation that needs no error map."""
    for line in map(json.loads, DECISIONS.read_text(encoding="utf-8").splitlines()):
        if line["ask"] == "reason" and line.keys() == PLAIN and line["service"] == "kv" and line["op"] in OPERATIONS:
            status = int(line["status"], 16)
            explained = explain(CouchbaseCase(service=Service.KV, operation=line["op"], happened=KvAnswer(status)))
            is_retried = line["expect"]["reason"] is not None
            yield case(line["op"], f"status({status})", explained.facts.get("error"), is_retried=is_retried)


def case(operation: str, fault: str, error: object, *, is_retried: bool) -> Case:
    """Return a fault of an operation, and its outcome."""
    return {"operation": operation, "fault": fault, "error": error, "isRetried": is_retried}


def losses(read: str, writes: Sequence[str], faults: Mapping[str, tuple[str | None, str | None]]) -> Iterator[Case]:
    """Yield each fault of an operation that reads, and of those that write."""
    for fault, (of_read, of_write) in faults.items():
        yield case(read, fault, of_read, is_retried=of_read is None)
        for write in writes:
            yield case(write, fault, of_write, is_retried=False)


def cases(*, full: bool) -> list[Case]:
    """Return the cases of decisions, lost connections and the query service; without ``full``, only some of each."""
    lost, queries = losses("get", ("insert", "remove"), STREAM_FAULTS), losses("readonly", ("query",), SERVICE_FAULTS)
    # The steps of the short form reach reads and writes, and both kinds of queries.
    steps = (1, 1, 1) if full else (4, 2, 3)
    tables = zip((statuses(), lost, queries), steps, strict=True)
    return [each for table, step in tables for each in islice(table, 0, None, step)]


@pytest.mark.parametrize(
    "full",
    [
        pytest.param(False, marks=pytest.mark.hosts, id="some"),
        pytest.param(True, marks=pytest.mark.hosts_full, id="all"),
    ],
)
def test_failures_end_as_decided(full: bool, run_node: RunNode, tmp_path: Path) -> None:
    """Each injected fault has the decided outcome: a retry that succeeds, or an error of the decided class without one."""
    expected, file = cases(full=full), tmp_path / "cases.json"
    file.write_text(json.dumps(expected), encoding="utf-8")
    with serving("--nodes", "3") as served:
        assert expected == run_node("faults.mjs", served, str(file))
