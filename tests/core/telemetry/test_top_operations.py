"""The slowest operations of an interval, in the JSON format of the RFC."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.facts import OperationFacts
from triclinium_core.telemetry.top_operations import TopOperations

ENTRY: dict[str, object] = {
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
"""The entry of RFC 0067 "JSON Output Format & Logging"."""
WHOLE = OperationFacts(service=Service.KV, **ENTRY)  # type: ignore[arg-type]


def took(microseconds: int, service: Service = Service.KV, name: str = "get") -> OperationFacts:
    """Return an operation with only a service, a name and a duration."""
    return OperationFacts(service=service, operation_name=name, total_duration_us=microseconds)


def report_of(sample_size: int, *operations: OperationFacts) -> dict[str, dict[str, object]]:
    """Return the report on the operations as decoded JSON."""
    top = TopOperations(sample_size)
    for operation in operations:
        top.add(operation)
    report: dict[str, dict[str, object]] = json.loads(top.take())
    return report


def test_entry_has_all_known_fields() -> None:
    """An operation with the values of the RFC's example has the entry of that example."""
    assert {"kv": {"total_count": 1, "top_requests": [ENTRY]}} == report_of(10, WHOLE)


def test_unknown_fields_are_omitted() -> None:
    """An entry omits unknown fields, but not a duration of 0 (RFC 0067)."""
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
    """The report is compact JSON on one line, for log readers that read line by line (RFC 0067: non-pretty JSON)."""
    top = TopOperations(1)
    top.add(took(7))

    assert '{"kv":{"total_count":1,"top_requests":[{"operation_name":"get","total_duration_us":7}]}}' == top.take()


def test_each_service_has_its_own_sample() -> None:
    """Each service has its own count and its own sample of operations."""
    report = report_of(1, took(3), took(9, Service.QUERY), took(4), took(5, Service.QUERY))

    assert [("kv", 2, 4), ("query", 2, 9)] == [
        (service, reported["total_count"], reported["top_requests"][0]["total_duration_us"])  # type: ignore[index]
        for service, reported in report.items()
    ]


@given(durations=st.lists(st.integers(0, 50), min_size=1), sample_size=st.integers(1, 5))
def test_slowest_are_listed_and_all_counted(durations: list[int], sample_size: int) -> None:
    """The slowest operations are listed first, equal ones in their order, and the count includes all operations."""
    operations = [took(duration, name=str(place)) for place, duration in enumerate(durations)]
    slowest = sorted(operations, key=lambda operation: -operation.total_duration_us)[:sample_size]

    reported = report_of(sample_size, *operations)["kv"]

    assert len(durations) == reported["total_count"]
    assert [operation.operation_name for operation in slowest] == [
        entry["operation_name"]
        for entry in reported["top_requests"]  # type: ignore[attr-defined]
    ]


def test_a_report_starts_a_new_interval() -> None:
    """After a report, the count and the sample are empty."""
    top = TopOperations(10)
    top.add(WHOLE)
    top.take()
    top.add(took(1))

    assert 1 == json.loads(top.take())["kv"]["total_count"]
    assert not top
