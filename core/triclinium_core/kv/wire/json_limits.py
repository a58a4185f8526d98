"""Limits of JSON from a server, counted before it is parsed.

A limit in bytes alone does not bound that work: the same megabyte may hold one text, or half a million lists. Brackets
and commas within texts count as well, so a count is never too small.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """The most that a document may have.

    Args:
        size_bytes_max: bytes.
        objects_max: objects, the most costly of all parts.
        parts_max: objects, lists, and the values that commas part.
    """

    size_bytes_max: int
    objects_max: int
    parts_max: int

    def excess(self, document: bytes) -> str | None:
        """Return what a document has too much of, in words; None where it is within the limits."""
        objects = document.count(b"{")
        counts = (
            (len(document), self.size_bytes_max, "bytes"),
            (objects, self.objects_max, "objects"),
            (objects + document.count(b"[") + document.count(b","), self.parts_max, "parts"),
        )
        return next(
            (f"{count} {what}; at most {most} make sense" for count, most, what in counts if count > most), None
        )
