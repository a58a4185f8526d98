"""The three kinds of object that decide about retries, so that a refusal can name the kind that it got.

The three traditions do not know each other; all that one needs of the others is how to recognise their deciders.
"""

from __future__ import annotations

from collections.abc import Mapping

COUCHBASE, SMITHY, CASSANDRA = "retry_after", "refresh_retry_token_for_retry", "on_read_timeout"

KINDS: Mapping[str, str] = {
    COUCHBASE: "it is a strategy for operations of a cluster, which retry_strategy= and retrying(...) take, as retry and its kin do",
    SMITHY: "it is a token strategy, which retry, retried and attempts take, as retry_strategy= and retrying(...) do",
    CASSANDRA: "it is a retry policy for requests to Cassandra, which execution profiles take",
}
"""By a method that no other kind has: what has it, and who takes that."""


def other_kind(value: object, wanted: str) -> str | None:
    """Return what ``value`` is where it is of another kind than ``wanted``, as half a sentence; else None."""
    return next((kind for name, kind in KINDS.items() if name != wanted and callable(getattr(value, name, None))), None)
