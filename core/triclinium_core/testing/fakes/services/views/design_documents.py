"""Design documents of a fake cluster: it stores them and runs no view."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec


class FakeDesignDocuments:
    """Design documents, by bucket and name."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Mapping[str, object]] = {}
        self._revisions: dict[tuple[str, str], int] = {}

    def put(self, bucket: str, name: str, document: Mapping[str, object]) -> None:
        """Store a design document; each one with the same name is a new revision."""
        self.documents[bucket, name] = document
        self._revisions[bucket, name] = self._revisions.get((bucket, name), 0) + 1

    def forget_bucket(self, bucket: str) -> None:
        """Remove the design documents of a bucket."""
        self.documents = {key: document for key, document in self.documents.items() if key[0] != bucket}
        self._revisions = {key: count for key, count in self._revisions.items() if key[0] != bucket}

    def rows_of(self, bucket: str) -> Sequence[Mapping[str, object]]:
        """Return the design documents of a bucket as the cluster manager lists them, by name."""
        return [
            self._row(bucket, name, document) for (of, name), document in sorted(self.documents.items()) if of == bucket
        ]

    def _row(self, bucket: str, name: str, document: Mapping[str, object]) -> Mapping[str, object]:
        revision = f"{self._revisions[bucket, name]}-{zlib.crc32(msgspec.json.encode(document)):08x}"
        path = f"/pools/default/buckets/{quote(bucket, safe='')}/ddocs/{quote(f'_design/{name}', safe='')}/controller"
        return {
            "doc": {"meta": {"id": f"_design/{name}", "rev": revision}, "json": document},
            "controllers": {"compact": f"{path}/compactView"},
        }
