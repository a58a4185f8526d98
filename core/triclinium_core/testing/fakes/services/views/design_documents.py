"""Design documents of a fake cluster: it stores them and runs no view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class FakeDesignDocuments:
    """Design documents, by bucket and name."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Mapping[str, object]] = {}

    def rows_of(self, bucket: str) -> Sequence[Mapping[str, object]]:
        """Return the design documents of a bucket as the cluster manager lists them."""
        return [
            {"doc": {"meta": {"id": f"_design/{name}"}, "json": document}}
            for (of, name), document in self.documents.items()
            if of == bucket
        ]
