"""Known and requested ids of collections.

The client sends one request for an id, however many operations wait for it, and repeats only an unanswered request.
This module does not record that a collection does not exist: the terminal states do so until a response shows that it
exists (decision C8).

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
"""Seconds after which the client repeats an unanswered request, because the node may never respond."""

REVIEW_MIN = 64
"""Number of known ids of one bucket at which the client compares them with a manifest, and drops the ids of dropped
collections. The next comparison is due at twice the remaining number, but not below ``REVIEW_MIN``, so that a new
collection costs little."""

KNOWN_MAX = 16_384
"""Maximum number of known ids of one bucket, about 110 bytes each: over ten times the number that a cluster can have.
The table reaches it only if no node sends a manifest. A full table drops its oldest id."""

DEFAULT_COLLECTION_PREFIX = b"\x00"
"""Prefix of the default collection, whose id is always 0."""


@dataclass(slots=True)
class _Question:
    """Pending request for the id of one collection."""

    requested_at: float = -math.inf
    source: object = None
    """Connection that carried the last request."""
    waiting: dict[int, None] = field(default_factory=dict)

    @property
    def overdue_at(self) -> float:
        """Time at which the request is overdue, computed exactly as the time of its timer, so that both are equal."""
        return self.requested_at + QUESTION_SECONDS


class CollectionIds:
    """Ids of the collections of one bucket. A collection that a node reports as missing loses its id."""

    def __init__(self, bucket: str | None) -> None:
        self._default = Keyspace(bucket)
        self._known = OrderedDict({self._default: DEFAULT_COLLECTION_PREFIX})
        """Key prefixes in the order of the responses. The prefix of the default collection stays at the end."""
        self.prefixes: Mapping[Keyspace, bytes] = self._known
        """Key prefixes of the collections whose ids are known."""
        self.no_prefixes: Mapping[Keyspace, bytes] = {self._default: b""}
        """Key prefixes on a connection without collections: only the default collection exists."""
        self._review_at = REVIEW_MIN
        """Number of known ids at which the client fetches a manifest."""
        self._pending: dict[Keyspace, _Question] = {}

    def __len__(self) -> int:
        """Return the number of ids that are known or requested."""
        return self._known_count + len(self._pending)

    def waiting(self, keyspace: Keyspace) -> int:
        """Return the number of waiters for an id."""
        question = self._pending.get(keyspace)
        return len(question.waiting) if question is not None else 0

    def wait(self, keyspace: Keyspace, waiter: int, now: float, source: object = None) -> bool:
        """Add ``waiter`` to the waiters for an id. Return whether the id must be requested now.

        Args:
            source: connection on which the caller sends the request.
        """
        self._drop(keyspace)
        question = self._pending.setdefault(keyspace, _Question())
        question.waiting[waiter] = None
        if now < question.overdue_at:
            return False
        question.requested_at, question.source = now, source
        return True

    def request_again(self, keyspace: Keyspace, now: float, source: object = None) -> bool:
        """Return whether to request an id from ``source``: the last request is overdue, and operations wait for the id.

        Drop an overdue request without waiters.
        """
        question = self._pending.get(keyspace)
        if question is None or now < question.overdue_at:
            return False
        if not question.waiting:
            del self._pending[keyspace]
            return False
        question.requested_at, question.source = now, source
        return True

    def found(self, keyspace: Keyspace, collection_id: int) -> list[int]:
        """Store an id, and return its waiters."""
        self._known[keyspace] = encode_unsigned(collection_id)
        self._known.move_to_end(keyspace)
        self._known.move_to_end(self._default)
        if self._known_count > KNOWN_MAX:
            self._known.popitem(last=False)
        return self._release(keyspace)

    def missing(self, keyspace: Keyspace) -> list[int]:
        """Drop the id and the pending request of a collection, and return the waiters for the id."""
        self._drop(keyspace)
        return self._release(keyspace)

    def outdated(self, keyspace: Keyspace) -> None:
        """Drop an id that a node did not recognise, so that the next operation requests it again."""
        self._drop(keyspace)

    def has_to_be_reviewed(self) -> bool:
        """Return whether the number of known ids has reached the threshold for a manifest.

        If so, raise the threshold.
        """
        if self._known_count < self._review_at:
            return False
        self._review_at = 2 * self._known_count
        return True

    def agree(self, ids: Mapping[tuple[str, str], int]) -> None:
        """Drop the ids that differ from a manifest: their collections may have been dropped or recreated.

        Args:
            ids: id of each existing collection, by scope name and collection name.
        """
        for keyspace, prefix in tuple(self._known.items()):
            found = ids.get((keyspace.scope, keyspace.collection))
            if keyspace != self._default and (found is None or prefix != encode_unsigned(found)):
                del self._known[keyspace]
        self._review_at = max(REVIEW_MIN, 2 * self._known_count)

    def stop_waiting(self, keyspace: Keyspace, waiter: int) -> None:
        """Remove ``waiter`` from the waiters for an id."""
        question = self._pending.get(keyspace)
        if question is not None:
            question.waiting.pop(waiter, None)

    def connection_lost(self, source: object = None) -> list[int]:
        """Drop the requests to which ``source`` has not responded, and return their waiters."""
        waiting: list[int] = []
        for keyspace in [keyspace for keyspace, question in self._pending.items() if question.source is source]:
            waiting += self.missing(keyspace)
        return waiting

    def _drop(self, keyspace: Keyspace) -> None:
        """Forget an id. Keep the id of the default collection, which never changes."""
        if keyspace != self._default:
            self._known.pop(keyspace, None)

    @property
    def _known_count(self) -> int:
        """Number of ids that nodes have sent: all known ids except that of the default collection."""
        return len(self._known) - 1

    def _release(self, keyspace: Keyspace) -> list[int]:
        question = self._pending.pop(keyspace, None)
        return list(question.waiting) if question is not None else []
