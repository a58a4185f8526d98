"""Kinds of objects that decide about retries.

Two of the three interfaces are named RetryStrategy, so a refusal names the kind that it received. A user's class
needs no base class: a method that no other kind has declares its kind. Only ``kind_of`` looks for that method. The
three traditions are independent of each other and need no more than this.
"""

from __future__ import annotations

from enum import Enum, unique


@unique
class DeciderKind(Enum):
    """Kind of an object, with the method that declares it and a description."""

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

    An object with the methods of several kinds is of the first of these kinds (decision T8).

    Args:
        other_than: kind to skip.
    """
    for kind, method in _KINDS:
        if kind is not other_than and callable(getattr(value, method, None)):
            return kind
    return None


def other_kind(value: object, wanted: DeciderKind) -> str | None:
    """Return a description of ``value`` if it is of another kind than ``wanted``; otherwise None."""
    kind = kind_of(value, other_than=wanted)
    return kind.words if kind is not None else None
