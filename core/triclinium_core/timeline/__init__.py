"""Timelines of operations, requests and connections from the facts of a decision tape."""

from triclinium_core.timeline.rows import Row, Source, decision_words
from triclinium_core.timeline.summary import Summary
from triclinium_core.timeline.timelines import Selection, Timeline, connection_timeline, timelines

__all__ = ["Row", "Selection", "Source", "Summary", "Timeline", "connection_timeline", "decision_words", "timelines"]
