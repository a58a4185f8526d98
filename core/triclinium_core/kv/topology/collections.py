"""Collection ids, as far as they are known.

An id is asked for once, however many operations wait for it; an answer that the collection does not exist is kept until
the next one, for the terminal reasons (decision C8).

Source: kv_engine ``docs/Collections.md``; SDK-RFC 0049 reason KV_COLLECTION_OUTDATED.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from triclinium_core.kv.wire.leb128 import encode_unsigned

QUESTION_SECONDS = 0.5
"""Seconds after which an unanswered question is asked again, for it may have got lost."""

DEFAULT_COLLECTION_PREFIX = b"\x00"
"""The default collection has the id 0, always."""


@unique
class CollectionState(Enum):
    """What is known of an id that anybody has asked for."""

    ASKED = "asked"
    KNOWN = "known"


@dataclass(slots=True)
class _Collection:
    state: CollectionState = CollectionState.ASKED
    prefix: bytes = b""
    asked_at: float = -math.inf
    source: object = None
    """Who was asked last."""
    waiting: dict[int, None] = field(default_factory=dict)

    @property
    def overdue_at(self) -> float:
        """When the question has been unanswered for too long: the very sum of which the timer is made."""
        return self.asked_at + QUESTION_SECONDS


class CollectionIds:
    """The ids of one bucket's collections, by ``scope.collection``. Of one that is not there nothing is kept."""

    def __init__(self) -> None:
        self._collections: dict[str, _Collection] = {}
        self._asked: dict[str, _Collection] = {}
        """Those whose question has no answer: of all that are known, the few that a lost connection concerns."""

    def __len__(self) -> int:
        """Return how many ids are known, or asked for."""
        return len(self._collections)

    def prefix(self, path: str) -> bytes | None:
        """Return the key prefix of a collection, or None where its id is not known."""
        collection = self._collections.get(path)
        return collection.prefix if collection is not None and collection.state is CollectionState.KNOWN else None

    def waiting(self, path: str) -> int:
        """Return how many wait for an id."""
        collection = self._collections.get(path)
        return len(collection.waiting) if collection is not None else 0

    def wait(self, path: str, waiter: int, now: float, source: object = None) -> bool:
        """Let ``waiter`` wait for an id, and return whether it has to be asked for now.

        Args:
            source: who is asked then, such as a connection.
        """
        collection = self._collections.setdefault(path, _Collection())
        collection.waiting[waiter] = None
        if collection.state is CollectionState.ASKED and now < collection.overdue_at:
            return False
        collection.state, collection.asked_at, collection.source = CollectionState.ASKED, now, source
        self._asked[path] = collection
        return True

    def ask_again(self, path: str, now: float, source: object = None) -> bool:
        """Return whether ``source`` has to be asked for an id, since somebody waits and the question has got lost."""
        collection = self._collections.get(path)
        if collection is None or collection.state is not CollectionState.ASKED or not collection.waiting:
            return False
        if now < collection.overdue_at:
            return False
        collection.asked_at, collection.source = now, source
        return True

    def found(self, path: str, collection_id: int) -> list[int]:
        """Keep an id, and return who waited for it."""
        collection = self._collections.setdefault(path, _Collection())
        collection.state, collection.prefix = CollectionState.KNOWN, encode_unsigned(collection_id)
        self._asked.pop(path, None)
        return _release(collection)

    def missing(self, path: str) -> list[int]:
        """Record that the bucket has no such collection, and return who waited for its id."""
        collection = self._collections.pop(path, None)
        self._asked.pop(path, None)
        return _release(collection) if collection is not None else []

    def outdated(self, path: str) -> None:
        """Drop an id that a node did not know, so that the next operation asks for it again."""
        collection = self._collections.get(path)
        if collection is not None and collection.state is CollectionState.KNOWN:
            del self._collections[path]

    def agree(self, ids: Mapping[str, int]) -> None:
        """Drop the ids that are not those of a manifest: of collections that were dropped, or made anew.

        Args:
            ids: those of all collections that there are.
        """
        for path, collection in tuple(self._collections.items()):
            if path not in ids or collection.prefix != encode_unsigned(ids[path]):
                self.outdated(path)

    def stop_waiting(self, path: str, waiter: int) -> None:
        """Let ``waiter`` wait no longer."""
        collection = self._collections.get(path)
        if collection is not None:
            collection.waiting.pop(waiter, None)

    def connection_lost(self, source: object = None) -> list[int]:
        """Give up all questions that ``source`` was asked and has not answered, and return who waited for them."""
        waiting: list[int] = []
        for path in [path for path, collection in self._asked.items() if collection.source is source]:
            waiting += self.missing(path)
        return waiting


def _release(collection: _Collection) -> list[int]:
    waiting, collection.waiting = collection.waiting, {}
    return list(waiting)
