"""Result of ``explain`` for Couchbase, Cassandra and Smithy: the decision and its reasons, as data and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Outcome(StrEnum):
    """Outcome of a request."""

    RETRY = "retry"
    """The request is sent again after a delay. If the delay is cut to a limit, the request fails after the delay."""
    SAME_NODE = "same_node"
    """The request is sent to the same node again."""
    NEXT_NODE = "next_node"
    """The request is sent to the next node of its plan."""
    PREPARE = "prepare"
    """The statement is prepared on the same node and executed there again."""
    COMPLETE = "complete"
    """The request succeeds."""
    EMPTY = "empty"
    """The request succeeds without rows."""
    CONSULT = "consult"
    """The client awaits an asynchronous strategy, which decides."""
    OPEN = "open"
    """Another attempt is permitted, but the case contains no response to it."""
    FAIL = "fail"
    """The caller gets an error."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One step of an explanation, with its clauses, if any, in brackets."""

    text: str
    outcome: Outcome | None = None
    """Outcome of a request, if the sentence states one; otherwise None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Explanation of the decision on a request, or on several requests that share a strategy."""

    facts: Mapping[str, object]
    """Facts as JSON values. Each of Couchbase, Cassandra and Smithy has a fixed set of keys."""
    steps: tuple[Sentence, ...]
    """Sentences that state the facts. The first describes the event."""
    clauses: tuple[str, ...]
    """Clauses that the sentences name."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Outcome of each request."""
        return tuple(sentence.outcome for sentence in self.steps if sentence.outcome is not None)

    def to_json(self) -> dict[str, object]:
        """Return the facts and the clauses as JSON values."""
        return {**self.facts, "clauses": list(self.clauses)}

    def sentences(self) -> list[str]:
        """Return the texts of the sentences."""
        return [sentence.text for sentence in self.steps]


def milliseconds(seconds: float) -> int | float:
    """Return ``seconds`` as milliseconds, without noise from binary fractions. A whole number is an int."""
    return _plain(seconds * 1000, 6)


def plain_seconds(seconds: float) -> int | float:
    """Return ``seconds`` without noise from binary fractions. A whole number is an int."""
    return _plain(seconds, 9)


def _plain(number: float, digits: int) -> int | float:
    rounded = round(float(number), digits)
    return int(rounded) if rounded.is_integer() else rounded
