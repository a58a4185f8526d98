"""Slowest operations of an interval by service, and their total number.

Source: SDK-RFC 0067 "JSON Output Format & Logging", in two places: for slow operations and for orphans.
"""

from __future__ import annotations

import json
from heapq import heappush, heappushpop

from triclinium_core.telemetry.facts import OperationFacts


class TopOperations:
    """The slowest operations of each service.

    Args:
        sample_size: number of operations to keep for each service.
    """

    def __init__(self, sample_size: int) -> None:
        self._sample_size = sample_size
        self._counts: dict[str, int] = {}
        self._slowest: dict[str, list[tuple[int, int, OperationFacts]]] = {}
        """Heaps by service, the fastest operation first. Of two with the same time, the later one counts as faster."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, operation: OperationFacts) -> None:
        """Count an operation. Keep it if it is one of the slowest."""
        service = operation.service.value
        count = self._counts[service] = self._counts.get(service, 0) + 1
        heap = self._slowest.setdefault(service, [])
        entry = (operation.total_duration_us, -count, operation)
        if len(heap) < self._sample_size:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def take(self) -> str:
        """Return the kept operations as one line of JSON, the slowest first, and clear them."""
        report = {
            service: {
                "total_count": count,
                "top_requests": [_entry(kept) for _, _, kept in sorted(self._slowest[service], reverse=True)],
            }
            for service, count in self._counts.items()
        }
        self._counts, self._slowest = {}, {}
        return json.dumps(report, separators=(",", ":"))


def _entry(operation: OperationFacts) -> dict[str, int | str]:
    """Return the known facts of an operation, without the service, which is the key of its group."""
    names = (name for name in OperationFacts.__struct_fields__ if name != "service")
    return {name: value for name in names if (value := getattr(operation, name)) is not None}
