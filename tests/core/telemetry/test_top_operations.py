"""The slowest operations of an interval, in the JSON of the RFC."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.facts import OperationFacts
from triclinium_core.telemetry.top_operations import TopOperations

WHOLE = OperationFacts(
    service=Service.KV,
    operation_name="upsert",
    total_duration_us=1200,
    encode_duration_us=100,
    last_dispatch_duration_us=40,
    total_dispatch_duration_us=40,
    last_server_duration_us=2,
    total_server_duration_us=2,
    last_local_id="66388CF5BFCF7522/18CC8791579B567C",
    operation_id="0x23",
    last_local_socket="10.211.55.3:52450",
    last_remote_socket="10.112.180.101:11210",
    timeout_ms=75000,
)
"""The example of RFC 0067 "JSON Output Format & Logging"."""


def took(microseconds: int, service: Service = Service.KV, name: str = "get") -> OperationFacts:
    """Return an operation of which nothing else is known."""
    return OperationFacts(service=service, operation_name=name, total_duration_us=microseconds)


def report_of(sample_size: int, *operations: OperationFacts) -> dict[str, dict[str, object]]:
    """Return what is told of the operations."""
    top = TopOperations(sample_size)
    for operation in operations:
        top.add(operation)
    report: dict[str, dict[str, object]] = json.loads(top.take())
    return report


def test_an_entry_has_all_that_is_known() -> None:
    """The RFC's example, field by field."""
    assert {
        "kv": {
            "total_count": 1,
            "top_requests": [
                {
                    "total_duration_us": 1200,
                    "encode_duration_us": 100,
                    "last_dispatch_duration_us": 40,
                    "total_dispatch_duration_us": 40,
                    "last_server_duration_us": 2,
                    "total_server_duration_us": 2,
                    "operation_name": "upsert",
                    "last_local_id": "66388CF5BFCF7522/18CC8791579B567C",
                    "operation_id": "0x23",
                    "last_local_socket": "10.211.55.3:52450",
                    "last_remote_socket": "10.112.180.101:11210",
                    "timeout_ms": 75000,
                }
            ],
        }
    } == report_of(10, WHOLE)


def test_what_is_not_known_is_not_there() -> None:
    """RFC 0067: a field that is not present must not be included; a duration of nothing is present."""
    entry = OperationFacts(
        service=Service.QUERY, operation_name="query", total_duration_us=5, last_server_duration_us=0
    )

    assert {
        "query": {
            "total_count": 1,
            "top_requests": [{"total_duration_us": 5, "operation_name": "query", "last_server_duration_us": 0}],
        }
    } == report_of(10, entry)


def test_the_report_is_one_terse_line() -> None:
    """RFC 0067: non-pretty JSON, for whoever reads logs line by line."""
    top = TopOperations(1)
    top.add(took(7))

    assert '{"kv":{"total_count":1,"top_requests":[{"operation_name":"get","total_duration_us":7}]}}' == top.take()


def test_each_service_has_its_own() -> None:
    """Count and sample are those of one service."""
    report = report_of(1, took(3), took(9, Service.QUERY), took(4), took(5, Service.QUERY))

    assert [("kv", 2, 4), ("query", 2, 9)] == [
        (service, told["total_count"], told["top_requests"][0]["total_duration_us"])  # type: ignore[index]
        for service, told in report.items()
    ]


@given(durations=st.lists(st.integers(0, 50), min_size=1), sample_size=st.integers(1, 5))
def test_the_slowest_are_told_and_all_are_counted(durations: list[int], sample_size: int) -> None:
    """The slowest come first; of those that took the same time, the earlier ones."""
    operations = [took(duration, name=str(place)) for place, duration in enumerate(durations)]
    slowest = sorted(operations, key=lambda operation: -operation.total_duration_us)[:sample_size]

    told = report_of(sample_size, *operations)["kv"]

    assert len(durations) == told["total_count"]
    assert [operation.operation_name for operation in slowest] == [
        entry["operation_name"]
        for entry in told["top_requests"]  # type: ignore[attr-defined]
    ]


def test_what_is_told_is_forgotten() -> None:
    """Each interval begins with nothing."""
    top = TopOperations(10)
    top.add(WHOLE)
    top.take()
    top.add(took(1))

    assert 1 == json.loads(top.take())["kv"]["total_count"]
    assert not top
