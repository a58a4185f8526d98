"""The durations of an interval, in the JSON of the RFC."""

from __future__ import annotations

import json

from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.telemetry.durations import OperationDurations


def test_the_report_is_that_of_the_rfc() -> None:
    """Count and five percentiles for each operation of each service, and the interval to divide the counts by."""
    durations = OperationDurations(600.0, lambda now: None)
    for service, name, microseconds in (
        (Service.KV, "get", range(1, 101)),
        (Service.KV, "upsert", [7]),
        (Service.QUERY, "query", [90_000, 100]),
    ):
        histogram = durations.begin(service, name, 0.0)
        for duration in microseconds:
            histogram.add(duration)

    text = durations.take()

    assert {
        "meta": {"emit_interval_s": 600},
        "operations": {
            "kv": {
                "get": {
                    "total_count": 100,
                    "percentiles_us": {"50.0": 50, "90.0": 90, "99.0": 99, "99.9": 100, "100.0": 100},
                },
                "upsert": {
                    "total_count": 1,
                    "percentiles_us": {"50.0": 7, "90.0": 7, "99.0": 7, "99.9": 7, "100.0": 7},
                },
            },
            "query": {
                "query": {
                    "total_count": 2,
                    "percentiles_us": {"50.0": 100, "90.0": 90000, "99.0": 90000, "99.9": 90000, "100.0": 90000},
                }
            },
        },
    } == json.loads(text)
    assert " " not in text
    assert "\n" not in text


def test_the_first_operation_of_an_interval_is_told() -> None:
    """And no other one; after a report the next interval begins with the next operation."""
    begun = list[float]()
    durations = OperationDurations(0.5, begun.append)
    durations.begin(Service.KV, "get", 1.0).add(5)
    durations.begin(Service.KV, "upsert", 2.0).add(5)

    assert durations
    assert 0.5 == json.loads(durations.take())["meta"]["emit_interval_s"]
    assert not durations

    durations.begin(Service.KV, "get", 3.0)

    assert [1.0, 3.0] == begun
