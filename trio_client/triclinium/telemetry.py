"""Interfaces for tracers and meters, and the default reporters, which write to the log."""

from __future__ import annotations

from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.metrics import Meter, ValueRecorder
from triclinium_core.telemetry.tracing import RequestSpan, RequestTracer, StatusCode

__all__ = [
    "LoggingMeter",
    "Meter",
    "OrphanReporter",
    "RequestSpan",
    "RequestTracer",
    "StatusCode",
    "ThresholdLoggingTracer",
    "ValueRecorder",
]
