"""The slowest operations of an interval, in the RFC's JSON format."""

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
    """Return an operation for which only the service, the name and the duration are known."""
    return OperationFacts(service=service, operation_name=name, total_duration_us=microseconds)


def report_of(sample_size: int, *operations: OperationFacts) -> dict[str, dict[str, object]]:
    """Return the report on the operations."""
    top = TopOperations(sample_size)
    for operation in operations:
        top.add(operation)
    report: dict[str, dict[str, object]] = json.loads(top.take())
    return report


def test_entry_has_all_known_fields() -> None:
    """An entry has the fields of the RFC's example, with the same values."""
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


def test_unknown_fields_are_omitted() -> None:
    """RFC 0067: an entry omits absent fields; a duration of 0 is present."""
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
    """The report is compact JSON on one line, for log readers that work line by line (RFC 0067: non-pretty JSON)."""
    top = TopOperations(1)
    top.add(took(7))

    assert '{"kv":{"total_count":1,"top_requests":[{"operation_name":"get","total_duration_us":7}]}}' == top.take()


def test_each_service_has_its_own_sample() -> None:
    """Each service has its own count and its own sample."""
    report = report_of(1, took(3), took(9, Service.QUERY), took(4), took(5, Service.QUERY))

    assert [("kv", 2, 4), ("query", 2, 9)] == [
        (service, reported["total_count"], reported["top_requests"][0]["total_duration_us"])  # type: ignore[index]
        for service, reported in report.items()
    ]


@given(durations=st.lists(st.integers(0, 50), min_size=1), sample_size=st.integers(1, 5))
def test_slowest_are_listed_and_all_counted(durations: list[int], sample_size: int) -> None:
    """The slowest operations come first, the earlier one of equals; the count includes all operations."""
    operations = [took(duration, name=str(place)) for place, duration in enumerate(durations)]
    slowest = sorted(operations, key=lambda operation: -operation.total_duration_us)[:sample_size]

    reported = report_of(sample_size, *operations)["kv"]

    assert len(durations) == reported["total_count"]
    assert [operation.operation_name for operation in slowest] == [
        entry["operation_name"]
        for entry in reported["top_requests"]  # type: ignore[attr-defined]
    ]


def test_a_report_starts_a_new_interval() -> None:
    """A report clears the count and the sample."""
    top = TopOperations(10)
    top.add(WHOLE)
    top.take()
    top.add(took(1))

    assert 1 == json.loads(top.take())["kv"]["total_count"]
    assert not top
