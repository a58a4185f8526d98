"""Two writes in trouble, played when the documentation is built, and drawn: one gets through, one must not be sent again.

What is drawn is what the client reports of a run on a fake cluster; only the places on the page are chosen here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import NamedTuple

import trio
import trio.testing

from triclinium.errors import CouchbaseException
from triclinium.testing import Opcode, hang_up, open_fake_cluster, temporary_failure
from triclinium_core.retry.couchbase.failures import HINTS
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.testing import Fault

KEY = "ada"
LOGGER = logging.getLogger("triclinium")
RETRY_LOGGER = logging.getLogger("triclinium.retry")


class Attempt(NamedTuple):
    """One attempt that failed: when, of what, and how long the client waits before it tries again; None: not again."""

    at_ms: float
    reason: RetryReason
    delay_ms: float | None


class Story(NamedTuple):
    """One write, from the call to its end."""

    trouble: str
    attempts: Sequence[Attempt]
    ended_ms: float
    error: str | None
    """The name of the exception that the caller got, if any."""


TROUBLES: Mapping[str, Sequence[Fault]] = {
    "the node is out of resources for a moment": (temporary_failure(),) * 3,
    "the connection is lost once the write is on its way": (temporary_failure(), hang_up()),
}
"""What the node does to each of the writes, one command after the other; then it works."""


class _Reports(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[Attempt] = []

    def emit(self, record: logging.LogRecord) -> None:
        told = vars(record)
        delay = told.get("delay")
        self.attempts.append(
            Attempt(told["age"] * 1000, RetryReason[told["reason"]], None if delay is None else delay * 1000)
        )


@contextmanager
def _reports() -> Iterator[list[Attempt]]:
    """Give the block what the client reports of retries in it, and nobody else."""
    reports = _Reports()
    level, propagates = RETRY_LOGGER.level, LOGGER.propagate
    RETRY_LOGGER.addHandler(reports)
    RETRY_LOGGER.setLevel(logging.DEBUG)
    LOGGER.propagate = False
    try:
        yield reports.attempts
    finally:
        RETRY_LOGGER.removeHandler(reports)
        RETRY_LOGGER.setLevel(level)
        LOGGER.propagate = propagates


async def _play(trouble: str) -> Story:
    with _reports() as attempts:
        return await _write(trouble, attempts)


async def _write(trouble: str, attempts: Sequence[Attempt]) -> Story:
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await people.exists(KEY)
        for fault in TROUBLES[trouble]:
            fake.node.faults.next(Opcode.SET, fault)
        began, error = trio.current_time(), None
        try:
            await people.upsert(KEY, {"born": 1815})
        except CouchbaseException as raised:
            error = type(raised).__name__
        return Story(trouble, attempts, (trio.current_time() - began) * 1000, error)


def play() -> list[Story]:
    """Return what became of each write, in virtual time."""
    return [trio.run(_play, trouble, clock=trio.testing.MockClock(autojump_threshold=0)) for trouble in TROUBLES]


# -- The drawing.

WIDTH = 860
LEFT, STEP, ROW_HEIGHT = 95, 220, 180
LINE_Y = 82
"""Of the line on which the attempts of a story stand, from the top of its row."""
RADIUS = 9

STYLE = """
.rw-title{fill:var(--color-foreground-primary,#111);font:600 14px sans-serif}
.rw-line{stroke:var(--color-foreground-secondary,#555);stroke-width:2}
.rw-wait{stroke:var(--color-foreground-muted,#888);stroke-width:2;stroke-dasharray:3 5}
.rw-text{fill:var(--color-foreground-primary,#111);font:13px sans-serif;text-anchor:middle}
.rw-small{fill:var(--color-foreground-secondary,#555);font:12px sans-serif;text-anchor:middle}
.rw-why{fill:var(--color-foreground-secondary,#555);font:13px sans-serif}
.rw-again{fill:var(--drawn-again,#b26a00)}
.rw-good{fill:var(--drawn-good,#1a7f37)}
.rw-bad{fill:var(--drawn-bad,#cf222e)}
""".strip().replace("\n", "")
"""Colours are the theme's and those of ``_static/pages.css``, so that the drawing follows its light and dark modes."""


def draw_stories(stories: Sequence[Story]) -> str:
    """Return the stories as an SVG element, one below the other."""
    rows = [_row(story, ROW_HEIGHT * number) for number, story in enumerate(stories)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW_HEIGHT * len(stories)}" role="img"'
        f' style="max-width:{WIDTH}px;width:100%;height:auto"><title>{escape(alternative(stories))}</title>'
        f"<style>{STYLE}</style>{''.join(rows)}</svg>"
    )


def alternative(stories: Sequence[Story]) -> str:
    """Return in words what is drawn, for those who cannot see it."""
    return " ".join(
        f"A write while {story.trouble}: it is sent {len(story.attempts) + (story.error is None)} times"
        f"{' and succeeds' if story.error is None else f', not again, and raises {story.error}'}."
        for story in stories
    )


def _row(story: Story, top: float) -> str:
    parts = [_text("rw-title", 20, top + 30, f'await people.upsert("{KEY}", …)')]
    parts.append(_text("rw-why", 245, top + 30, f"and {story.trouble}"))
    y = top + LINE_Y
    for place, attempt in enumerate(story.attempts):
        x = LEFT + STEP * place
        if attempt.delay_ms is not None:
            parts += [
                f'<line class="rw-wait" x1="{x}" y1="{y}" x2="{x + STEP}" y2="{y}"/>',
                _text("rw-small", x + STEP / 2, y - 8, f"waits {attempt.delay_ms:g} ms"),
            ]
        kind = "rw-again" if attempt.delay_ms is not None else "rw-bad"
        parts += [
            _mark(kind, x, y),
            _text("rw-small", x, y - 18, f"{attempt.at_ms:g} ms"),
            _text("rw-text", x, y + 30, attempt.reason.name.removeprefix("KV_")),
        ]
    if story.error is None:
        x = LEFT + STEP * len(story.attempts)
        parts += [
            _mark("rw-good", x, y),
            _text("rw-small", x, y - 18, f"{story.ended_ms:g} ms"),
            _text("rw-text", x, y + 30, "SUCCESS"),
        ]
    else:
        x = LEFT + STEP * (len(story.attempts) - 1)
        parts += [
            f'<line class="rw-line" x1="{x + RADIUS}" y1="{y}" x2="{x + STEP / 2}" y2="{y}"/>',
            _text("rw-title rw-bad", x + STEP / 2 + 8, y + 5, story.error),
        ]
    last = story.attempts[-1]
    why = f"{last.reason.meaning}: nothing was changed, so even a write may be sent again"
    if story.error is not None:
        why = f"{last.reason.meaning}: {HINTS[last.reason]}"
    parts.append(_text("rw-why", 20, y + 62, why))
    return "".join(parts)


def _mark(kind: str, x: float, y: float) -> str:
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{RADIUS}"/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
