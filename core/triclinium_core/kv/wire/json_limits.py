"""Limits of JSON from a server, which the client checks before it parses the JSON.

A limit on the size alone does not bound the work of parsing: a megabyte may contain one string or half a million lists.
Brackets and commas within strings count too, so a count may be too high, but is never too low.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of a JSON document.

    Args:
        size_bytes_max: maximum number of bytes.
        objects_max: maximum number of objects, which are the most expensive parts.
        parts_max: maximum number of objects, lists and commas together.
    """

    size_bytes_max: int
    objects_max: int
    parts_max: int

    def excess(self, document: bytes) -> str | None:
        """Return a description of the exceeded limit; None if the document is within the limits."""
        objects = document.count(b"{")
        counts = (
            (len(document), self.size_bytes_max, "bytes"),
            (objects, self.objects_max, "objects"),
            (objects + document.count(b"[") + document.count(b","), self.parts_max, "parts"),
        )
        return next((f"{count} {what}; the maximum is {most}" for count, most, what in counts if count > most), None)
