"""Story of one request as HTML: the result, the deciding clause, and a picture of the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from triclinium_core.explain.explanation import milliseconds

STEPS_MAX = 150
"""Maximum number of steps in a picture."""
CALLER, CLIENT, NETWORK, NODE = 8, 44, 62, 80
"""Distances of the lanes, and of the network between client and node, from the left edge of a picture."""


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: object) -> Html:
    """Return an element. ``class_`` is its class, and ``aria_label`` its ``aria-label``."""
    inside = "".join(each if isinstance(each, Html) else escape(each) for each in content)
    given = [f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()]
    return Html(f"<{name}{''.join(given)}>{inside}</{name}>")


class Step(NamedTuple):
    """Message between two lanes, or event on one lane, ``at`` seconds after the call, and the decision about it."""

    at: float
    start: int
    end: int
    text: str
    decided: str = ""
    clause: str = ""


def picture(steps: Sequence[Step], outcome: str, error: str = "") -> Html:
    """Return a story. ``error`` is the name of the exception, or empty; ``outcome`` its text, or the result."""
    clause = next((step.clause for step in reversed(steps) if step.clause), "none, because no attempt failed")
    caption = "Messages between caller, client and node"
    if len(steps) > STEPS_MAX:
        caption += f": the first {STEPS_MAX} of {len(steps)} events"
    parts = (
        tag("p", tag("strong", error or "Success"), f" {outcome}", class_="outcome bad" if error else "outcome good"),
        tag("p", tag("strong", "Deciding clause"), f": {clause}"),
        tag("table", tag("caption", caption), tag("tbody", *_rows(steps[:STEPS_MAX]))),
    )
    return tag("div", *parts, class_="story")


def _rows(steps: Sequence[Step]) -> Iterator[Html]:
    shown = ""
    for step in steps:
        kind = "bad" if step.decided.startswith("fail") else "good"
        parts = [tag("span", f"→ {step.decided}", class_=kind)] if step.decided else []
        parts += [tag("span", step.clause, class_="clause")] if step.clause not in ("", shown) else []
        shown = step.clause or shown
        ahead = 1 if step.end > step.start else -1
        arrow = f"M{step.start} 8H{step.end}m{-8 * ahead} -4l{8 * ahead} 4l{-8 * ahead} 4"
        shape = tag("circle", cx=step.start, cy=8, r=4) if step.start == step.end else tag("path", d=arrow)
        lane = tag("svg", shape, viewBox="0 0 88 16", width=88, height=16, aria_hidden="true")
        time = tag("td", f"{milliseconds(round(step.at, 6))} ms")
        yield tag("tr", time, tag("td", lane, class_="lanes"), tag("td", tag("span", step.text), *parts))
