"""Kinds of objects that decide about retries: Couchbase strategies, Smithy strategies and Cassandra policies.

Both the Couchbase and the Smithy interface are named RetryStrategy, so an error about the wrong kind of object names
the kind that was passed. A user's class needs no base class: ``kind_of`` recognises it by a method that no other kind
has.
"""

from __future__ import annotations

from enum import Enum, unique


@unique
class DeciderKind(Enum):
    """Kind of an object, with the method by which it is recognised and a description for errors."""

    COUCHBASE = (
        "retry_after",
        "it is a strategy for cluster operations: pass it as retry_strategy=, or to retrying, retry, retried or attempts",
    )
    SMITHY = (
        "refresh_retry_token_for_retry",
        "it is a token strategy: pass it to retry, retried, attempts or retrying, or as retry_strategy=",
    )
    CASSANDRA = (
        "on_read_timeout",
        "it is a retry policy for Cassandra requests: pass it in an execution profile",
    )

    def __init__(self, method: str, words: str) -> None:
        self.method: str = method
        self.words: str = words


_KINDS = tuple((kind, kind.method) for kind in DeciderKind)


def kind_of(value: object, *, other_than: DeciderKind | None = None) -> DeciderKind | None:
    """Return the kind of an object that decides about retries; None for any other object.

    An object with the methods of several kinds has the kind that ``DeciderKind`` lists first (decision T8).

    Args:
        other_than: kind to skip; None to skip no kind.
    """
    for kind, method in _KINDS:
        if kind is not other_than and callable(getattr(value, method, None)):
            return kind
    return None


def other_kind(value: object, wanted: DeciderKind) -> str | None:
    """Return a description of ``value`` if it is of another kind than ``wanted``; otherwise None."""
    kind = kind_of(value, other_than=wanted)
    return kind.words if kind is not None else None
