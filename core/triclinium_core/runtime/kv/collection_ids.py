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

from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.wire.leb128 import encode_unsigned

QUESTION_SECONDS = 0.5
"""Seconds after which an unanswered question is asked again, for it may have got lost."""

REVIEW_MIN = 64
"""Number of known ids of one bucket that is compared with a manifest, which drops those of dropped collections. The next
comparison is due at twice the number that is left, so that it costs little per new collection."""

KNOWN_MAX = 16_384
"""Maximum number of known ids of one bucket, about 110 bytes each: ten times as many collections as a cluster can have. It
counts if no node sends a manifest. A full table drops the id that it has had for longest."""

DEFAULT_COLLECTION_PREFIX = b"\x00"
"""The default collection has the id 0, always."""


@dataclass(slots=True)
class _Question:
    """One id that was asked for and is not known yet."""

    asked_at: float = -math.inf
    source: object = None
    """The connection that carried the last question."""
    waiting: dict[int, None] = field(default_factory=dict)

    @property
    def overdue_at(self) -> float:
        """When the question has been unanswered for too long: the very sum of which the timer is made."""
        return self.asked_at + QUESTION_SECONDS


class CollectionIds:
    """The ids of one bucket's collections. Nothing is kept of a collection that does not exist."""

    def __init__(self, bucket: str | None) -> None:
        self._default = Keyspace(bucket)
        self._known = OrderedDict({self._default: DEFAULT_COLLECTION_PREFIX})
        """Key prefixes in the order of their answers, but for that of the default collection, which stays at the end."""
        self.prefixes: Mapping[Keyspace, bytes] = self._known
        """Prefixes of the keys of each collection whose id is known."""
        self.no_prefixes: Mapping[Keyspace, bytes] = {self._default: b""}
        """The same for a connection that was not granted collections: only the default collection exists."""
        self._review_at = REVIEW_MIN
        """Number of known ids at which a manifest is to be fetched."""
        self._asked: dict[Keyspace, _Question] = {}

    def __len__(self) -> int:
        """Return how many ids are known, or asked for."""
        return self._known_count + len(self._asked)

    def waiting(self, keyspace: Keyspace) -> int:
        """Return how many wait for an id."""
        question = self._asked.get(keyspace)
        return len(question.waiting) if question is not None else 0

    def wait(self, keyspace: Keyspace, waiter: int, now: float, source: object = None) -> bool:
        """Let ``waiter`` wait for an id, and return whether it has to be asked for now.

        Args:
            source: who is asked then, such as a connection.
        """
        self._drop(keyspace)
        question = self._asked.setdefault(keyspace, _Question())
        question.waiting[waiter] = None
        if now < question.overdue_at:
            return False
        question.asked_at, question.source = now, source
        return True

    def ask_again(self, keyspace: Keyspace, now: float, source: object = None) -> bool:
        """Return whether ``source`` has to be asked for an id, since the question has got lost and has waiters.

        A lost question without waiters is dropped.
        """
        question = self._asked.get(keyspace)
        if question is None or now < question.overdue_at:
            return False
        if not question.waiting:
            del self._asked[keyspace]
            return False
        question.asked_at, question.source = now, source
        return True

    def found(self, keyspace: Keyspace, collection_id: int) -> list[int]:
        """Keep an id, and return who waited for it."""
        self._known[keyspace] = encode_unsigned(collection_id)
        self._known.move_to_end(keyspace)
        self._known.move_to_end(self._default)
        if self._known_count > KNOWN_MAX:
            self._known.popitem(last=False)
        return self._release(keyspace)

    def missing(self, keyspace: Keyspace) -> list[int]:
        """Record that the bucket has no such collection, and return who waited for its id."""
        self._drop(keyspace)
        return self._release(keyspace)

    def outdated(self, keyspace: Keyspace) -> None:
        """Drop an id that a node did not know, so that the next operation asks for it again."""
        self._drop(keyspace)

    def has_to_be_reviewed(self) -> bool:
        """Return, once for each number of ids, whether so many are known that a manifest is to be fetched."""
        if self._known_count < self._review_at:
            return False
        self._review_at = 2 * self._known_count
        return True

    def agree(self, ids: Mapping[tuple[str, str], int]) -> None:
        """Drop the ids that are not those of a manifest: of collections that were dropped, or made anew.

        Args:
            ids: those of all collections that there are, by the names of scope and collection.
        """
        for keyspace, prefix in tuple(self._known.items()):
            found = ids.get((keyspace.scope, keyspace.collection))
            if keyspace != self._default and (found is None or prefix != encode_unsigned(found)):
                del self._known[keyspace]
        self._review_at = max(REVIEW_MIN, 2 * self._known_count)

    def stop_waiting(self, keyspace: Keyspace, waiter: int) -> None:
        """Let ``waiter`` wait no longer."""
        question = self._asked.get(keyspace)
        if question is not None:
            question.waiting.pop(waiter, None)

    def connection_lost(self, source: object = None) -> list[int]:
        """Give up all questions that ``source`` was asked and has not answered, and return who waited for them."""
        waiting: list[int] = []
        for keyspace in [keyspace for keyspace, question in self._asked.items() if question.source is source]:
            waiting += self.missing(keyspace)
        return waiting

    def _drop(self, keyspace: Keyspace) -> None:
        """Forget an id, unless it is that of the default collection, which never changes."""
        if keyspace != self._default:
            self._known.pop(keyspace, None)

    @property
    def _known_count(self) -> int:
        """Number of ids that nodes have sent."""
        return len(self._known) - 1

    def _release(self, keyspace: Keyspace) -> list[int]:
        question = self._asked.pop(keyspace, None)
        return list(question.waiting) if question is not None else []
