"""Protocols of meters and recorders, which receive the durations of operations.

The user supplies the meter. The methods of meters and recorders must not block. The client logs and suppresses their
exceptions.

Source: SDK-RFC 0067 "Observability Metrics".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

OPERATION_DURATION = "db.client.operation.duration"
"""Name of the metric for durations of operations, including encoding, retries and delays (SDK-RFC 0067 "Operations
Value Recorder")."""


class ValueRecorder(Protocol):
    """Recorder for one metric with one set of tags."""

    def record_value(self, microseconds: int) -> None:
        """Record the duration of an operation."""
        ...


@runtime_checkable
class Meter(Protocol):
    """Factory of recorders."""

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> ValueRecorder:
        """Return the recorder of a metric with these tags.

        The client calls this method at the end of every operation, so a meter should cache its recorders.

        Args:
            name: name of the metric, such as ``db.client.operation.duration``.
            tags: tags of the recorded values. Tags that do not apply to the operation are absent.
        """
        ...
