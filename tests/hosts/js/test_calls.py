"""Cancellation, timeouts, bad input, rows on demand, streams, TLS and memory of the client for Node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme

import triclinium
from tests.docs.serving import serving
from tests.hosts.js.conftest import RunNode
from triclinium import errors

INVALID = "InvalidArgumentException"
DEEP = "[" * 20_000
"""Start of arrays whose decoding ends Python in WebAssembly."""


@pytest.mark.hosts
def test_calls_end_as_documented(run_node: RunNode) -> None:
    """Signals, timeouts, strategies and ``close`` end calls; bad input is refused, mostly with its argument's name."""
    with serving("--nodes", "3") as served:
        found = run_node("calls.mjs", served)
    invalid = [line for line in found if isinstance(line, list) and len(line) == 3 and isinstance(line[2], bool)]
    others = [line for line in found if line not in invalid]

    assert [
        True,
        "AbortError",
        "TimeoutError",
        "AbortError",
        1,
        ["UnambiguousTimeoutException", "get", 0.03, True],
        ["AmbiguousTimeoutException", "ada", True, False],
        2,
        "DocumentLockedException",
        "bigint",
        f"{INVALID} statement",
        f"{INVALID} statement",
        INVALID,
        "EncodingFailureException parameters",
        f"{INVALID} parameters",
        f"{INVALID} consistentWith",
        INVALID,
        f"{INVALID} scanConsistency",
        f"{INVALID} bucket",
        [f"{INVALID} connectionString"],
        [INVALID],
        [f"{INVALID} connectionString"],
        [f"{INVALID} authenticator"],
        [f"{INVALID} password"],
        [INVALID],
        [f"{INVALID} tls"],
        [f"{INVALID} kv"],
        [INVALID],
        [INVALID],
        {"value": {"one": 1}, "done": False},
        ["ClosedError", True, "ClosedError", "ClosedError"],
    ] == others
    assert 44 == len(invalid)
    assert {INVALID, "EncodingFailureException", "ValueTooLargeException"} == {line[1].split()[0] for line in invalid}
    assert all(line[2] for line in invalid)


@pytest.mark.hosts
def test_rows_are_read_on_demand(run_node: RunNode, tmp_path: Path) -> None:
    """A loop that pauses stops the reading; leaving or aborting a loop closes the connection of its query."""
    script = tmp_path / "script.json"
    large = [{"number": number, "text": "x" * 1000} for number in range(20_000)]
    answers = [
        {"statement": "SELECT large", "rows": large},
        {"statement": "SELECT small", "rows": [{"a": 1}]},
        {"statement": "SELECT refused", "errors": [{"code": 3000, "msg": "it is refused"}]},
    ]
    script.write_text(json.dumps(answers), encoding="utf-8")
    with serving("--script", str(script)) as served:
        found = run_node("queries.mjs", served)

    assert [
        [None],
        {"count": 20_000, "sum": sum(range(20_000)), "isBounded": True, "isLarge": True, "status": "success"},
        "TypeError",
        ["left", True],
        ["aborted", "AbortError"],
        [{"a": 1}],
        ["ParsingFailureException", 3000, "it is refused", "SELECT refused", True],
    ] == found


@pytest.mark.hosts
def test_deeply_nested_responses(run_node: RunNode, tmp_path: Path) -> None:
    """A row, a response or an error that is nested too deeply fails its query; later operations succeed."""
    script = tmp_path / "script.json"
    answers = [
        {"statement": "SELECT row", "body": '{"results":[' + DEEP + "]" * len(DEEP) + "]}", "http_status": 200},
        {"statement": "SELECT rest", "body": '{"results":[],"a":' + DEEP, "http_status": 200},
        {"statement": "SELECT error", "body": DEEP, "http_status": 500},
    ]
    script.write_text(json.dumps(answers), encoding="utf-8")
    with serving("--script", str(script)) as served:
        found = run_node("hostile.mjs", served)

    names = ["DecodingFailureException", "DecodingFailureException", "InternalServerFailureException", [{"one": 1}]]
    assert [each for name in names for each in (name, 1)] == found


def pem_files(folder: Path, name: str) -> tuple[str, str]:
    """Write a key with its certificate for ``name``, and the certificate of its authority; return their paths."""
    authority, own, trusted = trustme.CA(), folder / f"{name}.pem", folder / f"authority-of-{name}.pem"
    authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(own))
    authority.cert_pem.write_to_path(str(trusted))
    return str(own), str(trusted)


@pytest.mark.hosts
def test_streams_end_with_their_cause(run_node: RunNode, tmp_path: Path) -> None:
    """Each end of a stream has its cause; without trust or with another name TLS fails, whatever the environment."""
    found = run_node("streams.mjs", *pem_files(tmp_path, "127.0.0.1"))

    lost = {"handedOver": 0, "losses": 1}
    refused = {"received": "", "cause": "TLS", **lost}
    assert [
        ["end", {"received": "bye", "cause": "END_OF_STREAM", **lost}],
        ["close_notify", {"received": "bye", "cause": "TRUNCATED", **lost}],
        *([name, refused] for name in ("untrusted", "name", "not TLS", "environment")),
        [[1, "NAME_NOT_RESOLVED"], [2, "NAME_NOT_RESOLVED"]],
        [[["node.example", 11210]], ""],
        [[], ""],
        [[], "timed out"],
        ["far alarm", 0],
        ["near alarm", [["TimePassed", [], []]]],
    ] == found


async def failure_in_trio(served: Mapping[str, str]) -> str:
    """Return the class of the trio client's error for a get with the system's trust store."""
    authenticator = triclinium.PasswordAuthenticator(served["username"], served["password"])
    timeouts = triclinium.TimeoutOptions(kv=60.0)
    async with triclinium.open_cluster(served["connection_string"], authenticator, timeouts=timeouts) as cluster:
        with pytest.raises(errors.CouchbaseException) as raised:
            await cluster.bucket("default").default_collection().get("ada")
    return type(raised.value).__name__


@pytest.mark.hosts
async def test_certificates_are_verified_as_in_trio(run_node: RunNode, tmp_path: Path) -> None:
    """A certificate of an unknown authority, or for another host, fails with the class of the trio client."""
    (own, trusted), (other, other_trusted) = (pem_files(tmp_path, name) for name in ("127.0.0.1", "elsewhere.example"))
    with serving("--tls-cert", own) as served, serving("--tls-cert", other) as misnamed:
        servers = [{**served, "ca": trusted}, {**misnamed, "ca": other_trusted}]
        found = run_node("tls.mjs", servers)
        expected = await failure_in_trio({**served, "connection_string": served["tls_connection_string"]})

    assert [["stored", False], [expected, False], [expected, False], ["stored", True]] == found


@pytest.mark.hosts
def test_closed_clusters_leave_nothing(run_node: RunNode) -> None:
    """After 200 clusters, there are as many proxies, objects and sockets as after 50, and hardly more memory."""
    with serving() as served:
        first, last = run_node("leak.mjs", served, "200", options=("--expose-gc",))

    # WebAssembly memory grows in large steps and never shrinks.
    grown = {name: last.pop(name) / first.pop(name) for name in ("heap", "memory")}
    assert {**first, "hosts": 0, "proxies": 0, "handles": 0} == last
    assert grown["heap"] < 1.1
    assert grown["memory"] < 1.5


@pytest.mark.hosts_full
def test_large_and_hostile_input_is_survived(run_node: RunNode) -> None:
    """Large documents are exact, and nonsense from servers ends in timeouts; a crash of Python closes its clusters."""
    with serving("--nodes", "3") as served:
        found: list[Any] = run_node("large.mjs", served)

    assert [
        0,
        True,
        True,
        2000,
        [{"value": 2**53}],
        ["ClosedError", "ClosedError"],
        *([name, True] for name in ("random", "flood", "huge", "silent", "closing")),
    ] == found
