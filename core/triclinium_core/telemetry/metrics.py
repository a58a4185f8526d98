"""Durations of operations: what a meter is asked for.

A meter belongs to a user. Its methods must not block; what one of them raises is logged and passed over.

Source: SDK-RFC 0067 "Observability Metrics".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from triclinium_core.retry.couchbase.tables.service import Service

OPERATION_DURATION = "db.client.operation.duration"
"""The metric of whole operations, with encoding, retries and pauses (SDK-RFC 0067 "Operations Value Recorder")."""


class ValueRecorder(Protocol):
    """Takes the values of one metric with one set of tags."""

    def record_value(self, microseconds: int) -> None:
        """Record that an operation took so long."""
        ...


@runtime_checkable
class Meter(Protocol):
    """Makes recorders."""

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> ValueRecorder:
        """Return what records the values of a metric.

        It is asked for at the end of every operation, so a meter should remember its recorders.

        Args:
            name: such as ``db.client.operation.duration``.
            tags: what the values have in common; those that do not apply are left out.
        """
        ...


class OperationDurations(Protocol):
    """What the machine tells of each operation: it is called on the hot path, so it does as little as it can."""

    def record(self, service: Service, operation: str, seconds: float) -> None:
        """Count an operation that is over.

        Args:
            operation: as the outer span is named.
            seconds: since it was submitted.
        """
        ...
