"""The slowest operations of an interval, service by service, and how many there were in all.

Source: SDK-RFC 0067 "JSON Output Format & Logging", twice: of slow operations and of orphans.
"""

from __future__ import annotations

import json
from heapq import heappush, heappushpop

from triclinium_core.telemetry.facts import OperationFacts


class TopOperations:
    """Keeps the slowest operations of each service.

    Args:
        sample_size: how many.
    """

    def __init__(self, sample_size: int) -> None:
        self._sample_size = sample_size
        self._counts: dict[str, int] = {}
        self._slowest: dict[str, list[tuple[int, int, OperationFacts]]] = {}
        """Heaps with the fastest first. Of two that took the same time the later one counts as faster."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, operation: OperationFacts) -> None:
        """Count an operation, and keep it if it is one of the slowest."""
        service = operation.service.value
        count = self._counts[service] = self._counts.get(service, 0) + 1
        heap = self._slowest.setdefault(service, [])
        entry = (operation.total_duration_us, -count, operation)
        if len(heap) < self._sample_size:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def take(self) -> str:
        """Return what was kept as one line of JSON, the slowest first, and forget it."""
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
    """Return what is known of an operation. What did not happen is left out; the service stands above."""
    names = (name for name in OperationFacts.__struct_fields__ if name != "service")
    return {name: value for name in names if (value := getattr(operation, name)) is not None}
