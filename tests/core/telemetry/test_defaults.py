"""Options of the three telemetry reports: the defaults of the RFC, and invalid values."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer


def test_the_defaults_are_those_of_the_rfc() -> None:
    """The options have the defaults of RFC 0067 "Configuration Properties", and every service has a threshold."""
    tracer, orphans = ThresholdLoggingTracer(), OrphanReporter()

    assert dict.fromkeys(Service, 1.0) | {Service.KV: 0.5} == tracer.thresholds
    assert (10.0, 10) == (tracer.emit_interval, tracer.sample_size)
    assert (10.0, 10) == (orphans.emit_interval, orphans.sample_size)
    assert 600.0 == LoggingMeter().emit_interval


def test_durations_are_kept_as_seconds() -> None:
    """A ``timedelta`` is converted to seconds, and a number is in seconds; a threshold may be 0 or infinite."""
    tracer = ThresholdLoggingTracer(
        kv_threshold=timedelta(milliseconds=20), query_threshold=0, search_threshold=math.inf, emit_interval=1
    )

    assert (0.02, 0, math.inf) == (tracer.kv_threshold, tracer.query_threshold, tracer.search_threshold)
    assert 1.0 == tracer.emit_interval
    assert LoggingMeter(emit_interval=60) == LoggingMeter(emit_interval=timedelta(minutes=1))


@rows(
    ("make", "parameter"),
    [
        (lambda: ThresholdLoggingTracer(kv_threshold=-0.1), "kv_threshold"),
        (lambda: ThresholdLoggingTracer(views_threshold=math.nan), "views_threshold"),
        (lambda: ThresholdLoggingTracer(sample_size=0), "sample_size"),
        (lambda: ThresholdLoggingTracer(emit_interval=0), "emit_interval"),
        (lambda: LoggingMeter(emit_interval=math.inf), "emit_interval"),
        (lambda: OrphanReporter(sample_size=True), "sample_size"),
        (lambda: OrphanReporter(emit_interval=-1), "emit_interval"),
    ],
)
def test_invalid_option_is_refused_by_name(make: Callable[[], object], parameter: str) -> None:
    """An invalid option raises InvalidArgumentException with its name when the options are created."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter
