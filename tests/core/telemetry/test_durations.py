"""Operation durations of one interval, in the RFC's JSON format."""

from __future__ import annotations

import json

import pytest

from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.durations import OperationDurations


def entry(count: int, *percentiles: int) -> dict[str, object]:
    """Return the entry of an operation in a report."""
    percents = ("50.0", "90.0", "99.0", "99.9", "100.0")
    return {"total_count": count, "percentiles_us": dict(zip(percents, percentiles, strict=True))}


def test_the_report_is_that_of_the_rfc() -> None:
    """The report has the interval's length, and for each operation of each service a count and five percentiles."""
    durations = OperationDurations(lambda now: None)
    for service, name, microseconds in (
        (Service.KV, "get", range(1, 101)),
        (Service.KV, "upsert", [7]),
        (Service.QUERY, "query", [90_000, 100]),
    ):
        histogram = durations.begin(service, name, 0.0)
        for duration in microseconds:
            histogram.add(duration)

    text = durations.take(600.0)

    assert {
        "meta": {"emit_interval_s": 600},
        "operations": {
            "kv": {"get": entry(100, 50, 90, 99, 100, 100), "upsert": entry(1, 7, 7, 7, 7, 7)},
            "query": {"query": entry(2, 100, 90_000, 90_000, 90_000, 90_000)},
        },
    } == json.loads(text)
    assert " " not in text
    assert "\n" not in text


def test_first_operation_of_an_interval_is_reported() -> None:
    """The first operation of an interval calls back, and later ones do not; a report ends the interval."""
    begun = list[float]()
    durations = OperationDurations(begun.append)
    durations.begin(Service.KV, "get", 1.0).add(5)
    durations.begin(Service.KV, "upsert", 2.0).add(5)

    assert durations
    assert 0.5 == json.loads(durations.take(1.5))["meta"]["emit_interval_s"]
    assert not durations

    durations.begin(Service.KV, "get", 3.0)

    assert [1.0, 3.0] == begun


@pytest.mark.parametrize(("now", "interval"), [(5.0, 4), (601.0, 600), (601.25, 600.25), (1.0, 0.001), (1.0001, 0.001)])
def test_report_has_the_true_interval_length(now: float, interval: float) -> None:
    """If a report is early or late, its interval is the time since the first operation began, and never 0."""
    durations = OperationDurations(lambda _: None)
    durations.begin(Service.KV, "get", 1.0).add(5)

    text = durations.take(now)

    assert interval == json.loads(text)["meta"]["emit_interval_s"]
    assert f'"emit_interval_s":{interval}' in text


def test_interval_starts_with_its_first_operation() -> None:
    """If an interval has one operation and ends with it, the interval is as long as the operation."""
    begun = list[float]()
    durations = OperationDurations(begun.append)
    durations.count(Service.QUERY, "query", 30.0, 40.0)

    assert [10.0] == begun
    assert 30 == json.loads(durations.take(40.0))["meta"]["emit_interval_s"]
