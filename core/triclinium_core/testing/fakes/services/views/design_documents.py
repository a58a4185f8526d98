"""The design documents of a fake cluster: they are kept, and no view is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class FakeDesignDocuments:
    """Design documents, by bucket and name."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Mapping[str, object]] = {}

    def rows_of(self, bucket: str) -> Sequence[Mapping[str, object]]:
        """Return what the cluster manager lists of a bucket."""
        return [
            {"doc": {"meta": {"id": f"_design/{name}"}, "json": document}}
            for (of, name), document in self.documents.items()
            if of == bucket
        ]
