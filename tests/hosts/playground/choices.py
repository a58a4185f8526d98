"""Choices of a reader, as the page sends them, and their answers from the native core."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import unescape

from docs._static.playground.answers import answer
from docs._static.playground.cluster import STRATEGIES

DEFAULT = next(iter(STRATEGIES))
FLEETS = ("none", "best_effort", "best_effort_jittered", "simple", "standard")


def story(operation: str, *faults: str, strategy: str = DEFAULT, more: str = "", code: str = "") -> str:
    """Return the native answer to a request."""
    choice = {"operation": operation, "strategy": strategy, "fault": faults, "more": more, "code": code}
    return answer(json.dumps({"form": "story", **choice}))


def outage(fleet: Sequence[str] = FLEETS, code: str = "", **fields: object) -> str:
    """Return the native answer of the simulator."""
    usual = {"clients": 500, "capacity": 75, "start": 20, "end": 30, "seed": 1, "kind": "refuses"}
    choice = {**usual, "overload": "throttles", "fleet": fleet, "code": code, **fields}
    return answer(json.dumps({"form": "outage", **choice}))


def text_of(html: str) -> str:
    """Return the text of an answer, with one space between elements."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html))).strip()
