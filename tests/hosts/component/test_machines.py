"""Machines of the component make the decisions of the core's machines."""

from __future__ import annotations

import json
import sys

import pytest

from tests.hosts.component.hostile import REQUEST
from tests.hosts.component.native import ABANDONED, DISPATCHED, Request, http, kv, lost, play
from tests.hosts.component.preparing import STORY, Arguments, replies, run
from triclinium_core.retry import couchbase

pytestmark = pytest.mark.hosts

BUSY, SUCCESS = kv(0x86), kv(0x00)
STALE_PLAN = '{"errors": [{"code": 4040, "msg": "no such prepared statement"}]}'
MAPPED_STATUS = 0x7FF0
RETRY = '{"strategy": "linear", "interval": 10, "after": 5, "max-duration": 60}'
ERROR_MAP = f'{{"version": 2, "revision": 1, "errors": {{"7ff0": {{"attrs": ["auto-retry"], "retry": {RETRY}}}}}}}'
REQUESTS = [
    # The first three are those of ``retry_story.mjs``.
    Request("upsert", 2.5, [BUSY, BUSY, SUCCESS]),
    Request("upsert", 2.5, [lost("all")]),
    Request("upsert", 0.01, [BUSY, BUSY, BUSY]),
    Request("get", 2.5, [kv(0x01)]),
    Request("get", 2.5, [kv(0x07), kv(0x88), kv(0x09), SUCCESS]),
    Request("upsert", 2.5, [lost("nothing"), lost("part")]),
    Request("get", 2.5, [kv(0x08)], idempotent=True),
    Request("get", 2.5, [kv(MAPPED_STATUS)] * 9, strategy="error_map", idempotent=True),
    Request("get", 2.5, [BUSY], strategy="fail_fast", idempotent=True),
    Request("get", 2.5, [ABANDONED], strategy="best_effort"),
    Request("query", 75.0, [http("query", 404, STALE_PLAN), http("query", 200, "{}")], service="query"),
    Request("query", 75.0, [http("query", 200, STALE_PLAN, is_partial=True)], service="query"),
    Request("query", 75.0, [http("views", 302, "moved")] * 2 + [http("views", 200, "{}")], service="views"),
    Request(
        "query", 75.0, [http("search", 429, "\ud7ff\ufffd\U0010ffff <html>")], service="search", strategy="fail_fast"
    ),
]
"""Requests with every kind of event and action."""

OUTCOMES = {"dispatch", "retry-after", "complete", "fail", "ignore"}
ORDERS = {"refresh-topology", "refresh-collection", "close-connection", "report-retry", "report-refusal"}


def test_the_story_on_the_page_is_current(node_host: Arguments) -> None:
    """The program on the page drives machines in Node, and prints what the page shows."""
    assert STORY.with_suffix(".txt").read_text(encoding="utf-8") == run("node", STORY, node_host[-1])


def test_machines_decide_as_natively(host: Arguments) -> None:
    """In both hosts, each call for requests with every kind of event and action has the native result."""
    maps = couchbase.ErrorMapStore()
    maps.load("n1", couchbase.parse_error_map(ERROR_MAP))
    steps = list(play(REQUESTS, maps))
    calls = [json.dumps(call) for call, _ in steps]
    got = replies(host, [json.dumps(["load-error-map", "n1", ERROR_MAP]), *calls]).lines
    tags = {action["tag"] for _, result in steps if isinstance(result, list) for action in result}

    assert {"ok": None} == json.loads(got[0])
    assert [{"ok": result} for _, result in steps] == [json.loads(line) for line in got[1:]]
    assert OUTCOMES | ORDERS == tags


def growth(host: Arguments, count: int, *, closes: bool) -> float:
    """Return the growth in MB of a host that opens ``count`` machines, and with ``closes`` also closes each of them."""
    calls = [
        call
        for number in range(1, count + 1)
        for call in (
            ["open", REQUEST, 0.0],
            ["handle", number, DISPATCHED[0], 0.0],
            ["handle", number, BUSY[0], 0.0],
            *([["close", number]] if closes else []),
        )
    ]
    return replies(host, list(map(json.dumps, calls))).figures["grown_mb"]


@pytest.mark.skipif(sys.platform != "linux", reason="the host measures its memory on Linux only")
def test_closed_machines_leave_no_memory(python_host: Arguments) -> None:
    """Thousands of machines that are closed need hardly more memory than a few, and open ones need more."""
    few = growth(python_host, 100, closes=True)

    assert growth(python_host, 4_000, closes=True) < few + 2
    assert growth(python_host, 4_000, closes=False) > few + 3
