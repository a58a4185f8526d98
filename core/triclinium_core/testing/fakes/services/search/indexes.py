"""The search indexes of a fake cluster: their definitions are kept, and nothing is indexed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping


class FakeSearchIndexes:
    """Definitions of indexes by their names; that of an index in a scope is ``BUCKET.SCOPE.NAME``."""

    def __init__(self) -> None:
        self.definitions: dict[str, Mapping[str, object]] = {}
        self._changes = 0

    def put(self, name: str, definition: Mapping[str, object]) -> str:
        """Keep a definition, and return its new uuid."""
        self._changes += 1
        uuid = f"{zlib.crc32(f'{name} {self._changes}'.encode()):016x}"
        self.definitions[name] = {**definition, "name": name, "uuid": uuid}
        return uuid
