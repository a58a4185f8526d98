"""Known ids of collections.

An id is asked for once, however many operations wait for it; an answer that the collection does not exist is kept until
the next one, for the terminal reasons (decision C8).

Source: kv_engine ``docs/Collections.md``; SDK-RFC 0049 reason KV_COLLECTION_OUTDATED.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from triclinium_core.kv.wire.leb128 import encode_unsigned

QUESTION_SECONDS = 0.5
"""Seconds after which an unanswered question is asked again, for it may have got lost."""

REVIEW_MIN = 64
"""Number of known ids of one bucket that is compared with a manifest, which drops those of dropped collections. The next
comparison is due at twice the number that is left, so that it costs little per new collection."""

KNOWN_MAX = 16_384
"""Maximum number of known ids of one bucket, about 110 bytes each: ten times as many collections as a cluster can have. It
counts if no node sends a manifest. A full table drops the id that was used least recently."""

DEFAULT_COLLECTION_PREFIX = b"\x00"
"""The default collection has the id 0, always."""


@dataclass(slots=True)
class _Question:
    """One id that was asked for and is not known yet."""

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
        self._known: OrderedDict[str, bytes] = OrderedDict()
        """Key prefixes, the one used last at the end."""
        self._review_at = REVIEW_MIN
        """Number of known ids at which a manifest is to be fetched."""
        self._asked: dict[str, _Question] = {}

    def __len__(self) -> int:
        """Return how many ids are known, or asked for."""
        return len(self._known) + len(self._asked)

    def prefix(self, path: str) -> bytes | None:
        """Return the key prefix of a collection, or None where its id is not known."""
        prefix = self._known.get(path)
        if prefix is not None:
            self._known.move_to_end(path)
        return prefix

    def waiting(self, path: str) -> int:
        """Return how many wait for an id."""
        question = self._asked.get(path)
        return len(question.waiting) if question is not None else 0

    def wait(self, path: str, waiter: int, now: float, source: object = None) -> bool:
        """Let ``waiter`` wait for an id, and return whether it has to be asked for now.

        Args:
            source: who is asked then, such as a connection.
        """
        self._known.pop(path, None)
        question = self._asked.setdefault(path, _Question())
        question.waiting[waiter] = None
        if now < question.overdue_at:
            return False
        question.asked_at, question.source = now, source
        return True

    def ask_again(self, path: str, now: float, source: object = None) -> bool:
        """Return whether ``source`` has to be asked for an id, since the question has got lost and has waiters.

        A lost question without waiters is dropped.
        """
        question = self._asked.get(path)
        if question is None or now < question.overdue_at:
            return False
        if not question.waiting:
            del self._asked[path]
            return False
        question.asked_at, question.source = now, source
        return True

    def found(self, path: str, collection_id: int) -> list[int]:
        """Keep an id, and return who waited for it."""
        self._known[path] = encode_unsigned(collection_id)
        self._known.move_to_end(path)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return self._release(path)

    def missing(self, path: str) -> list[int]:
        """Record that the bucket has no such collection, and return who waited for its id."""
        self._known.pop(path, None)
        return self._release(path)

    def outdated(self, path: str) -> None:
        """Drop an id that a node did not know, so that the next operation asks for it again."""
        self._known.pop(path, None)

    def has_to_be_reviewed(self) -> bool:
        """Return, once for each number of ids, whether so many are known that a manifest is to be fetched."""
        if len(self._known) < self._review_at:
            return False
        self._review_at = 2 * len(self._known)
        return True

    def agree(self, ids: Mapping[str, int]) -> None:
        """Drop the ids that are not those of a manifest: of collections that were dropped, or made anew.

        Args:
            ids: those of all collections that there are.
        """
        for path, prefix in tuple(self._known.items()):
            if path not in ids or prefix != encode_unsigned(ids[path]):
                del self._known[path]
        self._review_at = max(REVIEW_MIN, 2 * len(self._known))

    def stop_waiting(self, path: str, waiter: int) -> None:
        """Let ``waiter`` wait no longer."""
        question = self._asked.get(path)
        if question is not None:
            question.waiting.pop(waiter, None)

    def connection_lost(self, source: object = None) -> list[int]:
        """Give up all questions that ``source`` was asked and has not answered, and return who waited for them."""
        waiting: list[int] = []
        for path in [path for path, question in self._asked.items() if question.source is source]:
            waiting += self.missing(path)
        return waiting

    def _release(self, path: str) -> list[int]:
        question = self._asked.pop(path, None)
        return list(question.waiting) if question is not None else []
