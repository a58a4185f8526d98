"""Protocol of meters, which receive the durations of operations.

A meter belongs to a user. Its methods must not block; what one of them raises is logged and passed over.

Source: SDK-RFC 0067 "Observability Metrics".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

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
