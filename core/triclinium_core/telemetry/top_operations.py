"""Slowest operations of each service in an interval, and the number of all added operations.

Source: the two sections "JSON Output Format & Logging" of SDK-RFC 0067, for slow operations and for orphans.
"""

from __future__ import annotations

import json
from heapq import heappush, heappushpop

from triclinium_core.telemetry.facts import OperationFacts


class TopOperations:
    """The slowest operations of each service.

    Args:
        sample_size: maximum number of operations to keep for each service.
    """

    def __init__(self, sample_size: int) -> None:
        self._sample_size = sample_size
        self._counts: dict[str, int] = {}
        self._slowest: dict[str, list[tuple[int, int, OperationFacts]]] = {}
        """Heap of each service, the fastest operation first. Of two equally slow operations, the later one is first."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, operation: OperationFacts) -> None:
        """Count an operation. Keep it if it is one of the slowest operations of its service."""
        service = operation.service.value
        count = self._counts[service] = self._counts.get(service, 0) + 1
        heap = self._slowest.setdefault(service, [])
        entry = (operation.total_duration_us, -count, operation)
        if len(heap) < self._sample_size:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def take(self) -> str:
        """Return counts and kept operations, the slowest first, as one line of JSON. Clear operations and counts."""
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
    """Return the known facts about an operation except its service, which is the key of the group in the JSON."""
    names = (name for name in OperationFacts.__struct_fields__ if name != "service")
    return {name: value for name in names if (value := getattr(operation, name)) is not None}
