"""Summary of a tape: numbers of results, exceptions, ended connections and other events of the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from triclinium_core.decision_tape import lines
from triclinium_core.timeline.timelines import had_trouble

ENDED_EARLY: Mapping[str, str] = {
    "full": "The tape ends before the client did: its file was full.",
    "disk": "The tape ends before the client did: the disk failed.",
}
"""Sentence for each reason why a tape ends before its client does."""

CLASSES_MAX = 100
"""Maximum number of exception classes that are counted separately."""


class Summary:
    """Counts of the facts of a tape, by kind."""

    def __init__(self) -> None:
        kinds = ("operations and requests", "exceptions", "network", "ended connections")
        self.counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
        self.end: lines.End | None = None
        """Last line; None for a tape that was cut off."""

    def counted(self, facts: Iterable[lines.Fact]) -> Iterator[lines.Fact]:
        """Yield the facts, and count them."""
        operations, exceptions, network, ended = self.counts.values()
        for fact in facts:
            match fact:
                case lines.Operation(error=error):
                    operations[fact.result] += 1
                    operations["with a failed attempt"] += had_trouble(fact)
                    if error is not None:
                        exceptions[error if error in exceptions or len(exceptions) < CLASSES_MAX else "others"] += 1
                case lines.Connection(cause=cause):
                    network["connections opened"] += fact.event == "opening"
                    if cause is not None:
                        ended[cause.value] += 1
                case lines.Breaker(state=state):
                    network[f"circuit breakers {state.value}"] += 1
                case lines.ClusterMap():
                    network["maps accepted"] += 1
                case lines.End():
                    self.end = fact
            yield fact

    @property
    def missing(self) -> str:
        """Facts that are not on the tape, in words; empty if it is complete."""
        if self.end is None:
            return "The tape was cut off: its last line and the facts before it are missing."
        sentences = [ENDED_EARLY[self.end.reason]] if self.end.reason in ENDED_EARLY else []
        if self.end.lost:
            replaced = ": newer ones replaced them, or the disk was too slow" if not sentences else ""
            sentences.append(f"{self.end.lost:,} facts until then are not on the tape{replaced}.")
        return " ".join(sentences)

    def sentences(self) -> list[str]:
        """Return the counts in words, a line for each kind."""
        return [
            f"{kind}: {', '.join(f'{number:,} {name}' for name, number in counted.most_common() if number)}"
            for kind, counted in self.counts.items()
            if counted.total()
        ]

    def to_json(self) -> dict[str, object]:
        """Return the summary as JSON values. ``lost`` has the value None without a last line."""
        counts = {kind.replace(" ", "_"): dict(counted) for kind, counted in self.counts.items()}
        return {"summary": {**counts, "lost": None if self.end is None else self.end.lost}}
