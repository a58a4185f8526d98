"""The result of ``explain`` in all three traditions: the decision and its reasons, as data and as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Outcome(StrEnum):
    """What becomes of a request."""

    RETRY = "retry"
    """It is sent again after a delay, or waits until it fails where the delay was cut to a limit."""
    SAME_NODE = "same_node"
    """It is sent to the same node again."""
    NEXT_NODE = "next_node"
    """It is sent to the next node of its plan."""
    PREPARE = "prepare"
    """Its statement is prepared on the same node, and executed there again."""
    COMPLETE = "complete"
    """It succeeds."""
    EMPTY = "empty"
    """It succeeds with no rows."""
    CONSULT = "consult"
    """An asynchronous strategy has to be awaited first."""
    OPEN = "open"
    """A further attempt is permitted, and nobody said what it ends with."""
    FAIL = "fail"
    """The caller gets an error."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One step from what happened to what comes of it, with its clause in brackets."""

    text: str
    outcome: Outcome | None = None
    """What becomes of a request, where the sentence says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a request is retried, or not; or several that share a strategy."""

    facts: Mapping[str, object]
    """All that was found, as JSON values. Each tradition has keys of its own, and always the same."""
    told: tuple[Sentence, ...]
    """The same in plain words. The first says what happened."""
    clauses: tuple[str, ...]
    """Every clause that a sentence names."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What becomes of each request."""
        return tuple(sentence.outcome for sentence in self.told if sentence.outcome is not None)

    def to_json(self) -> dict[str, object]:
        """Return the facts and the clauses as JSON values."""
        return {**self.facts, "clauses": list(self.clauses)}

    def sentences(self) -> list[str]:
        """Return the explanation in plain words."""
        return [sentence.text for sentence in self.told]


def milliseconds(seconds: float) -> int | float:
    """Return ``seconds`` as milliseconds without the noise of binary fractions: an int where they are whole."""
    return _plain(seconds * 1000, 6)


def plain_seconds(seconds: float) -> int | float:
    """Return ``seconds`` without the noise of binary fractions: an int where they are whole."""
    return _plain(seconds, 9)


def _plain(number: float, digits: int) -> int | float:
    rounded = round(float(number), digits)
    return int(rounded) if rounded.is_integer() else rounded
