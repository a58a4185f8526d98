"""Kinds of objects that decide about retries. Two of the three are called RetryStrategy; a refusal says which one it got.

A class of a user needs no base: its kind is declared by a method that no other kind has. ``kind_of`` is the only place
that looks for it. The three traditions do not know each other, and need no more than this of the others.
"""

from __future__ import annotations

from enum import Enum, unique


@unique
class DeciderKind(Enum):
    """The kinds, each with the method that declares it, and what it is in words."""

    COUCHBASE = (
        "retry_after",
        "it is a strategy for operations of a cluster, which retry_strategy= and retrying(...) take, as retry and its kin do",
    )
    SMITHY = (
        "refresh_retry_token_for_retry",
        "it is a token strategy, which retry, retried and attempts take, as retry_strategy= and retrying(...) do",
    )
    CASSANDRA = (
        "on_read_timeout",
        "it is a retry policy for requests to Cassandra, which execution profiles take",
    )

    def __init__(self, method: str, words: str) -> None:
        self.method: str = method
        self.words: str = words


_KINDS = tuple((kind, kind.method) for kind in DeciderKind)


def kind_of(value: object, *, other_than: DeciderKind | None = None) -> DeciderKind | None:
    """Return the kind of an object that decides about retries; None for any other object.

    An object with the methods of several kinds is of the first of them (decision T8).

    Args:
        other_than: kind that does not count.
    """
    for kind, method in _KINDS:
        if kind is not other_than and callable(getattr(value, method, None)):
            return kind
    return None


def other_kind(value: object, wanted: DeciderKind) -> str | None:
    """Return in words what ``value`` is if it is of another kind than ``wanted``; otherwise None."""
    kind = kind_of(value, other_than=wanted)
    return kind.words if kind is not None else None
