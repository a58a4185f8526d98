"""Diagrams of two writes with a fault, played in virtual time and drawn for the first page.

``uv run python -m tests.docs.retried_write`` writes the picture for light and dark mode.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

import trio
import trio.testing

from tests.docs.pages import DOCS
from triclinium import errors
from triclinium._cli.demo.recorder import ClientDecided, Recorder
from triclinium._cli.demo.scenarios import SCENARIOS, SUCCESS, DemoScenario
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status, status_name
from triclinium_core.testing import LoggedCommand

PICTURES = {
    theme: DOCS / "pictures" / f"retried_write{suffix}.svg" for theme, suffix in (("light", ""), ("dark", "-dark"))
}
PLAYED: Mapping[str, str] = {
    "temporary failure": "Certainly not applied: sent again",
    "in flight, a write": "May have been applied: not sent again",
}
"""Scenarios of the demo, and their titles."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a diagram.

    It is an arrow between two lanes, or an internal action if ``start`` and ``end`` are equal.
    """

    start: int
    end: int
    text: str
    kind: str = "line"
    """Colour, by its name in ``COLOURS``."""
    at_ms: float | None = None
    """Time in milliseconds; None if it is the time of the line above."""


CALLER, CLIENT, NODE = range(3)


async def steps_of(scenario: DemoScenario) -> list[Step]:
    """Play a scenario of the demo in memory, and return its steps."""
    assert isinstance(scenario.operation.travels_as, Opcode)
    assert scenario.fault is not None
    recorder = Recorder()
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        scope = cluster.bucket("default").default_scope()
        await cluster.wait_until_ready()
        fake.node.faults.next(scenario.operation.travels_as, scenario.fault, scenario.times)
        outcome, message, began = SUCCESS, "", trio.current_time()
        with recorder.listening():
            try:
                await scenario.operation.perform(scope, scenario.key)
            except errors.CouchbaseException as error:
                outcome, message = type(error).__name__, str(error)
        taken = [command for command in fake.node.command_log if command.key == scenario.key.encode()]
    # Of two steps with the same time, the node's step is first, because the client reacts to it.
    moments = [(command.now, 0, _exchange(command)) for command in taken]
    moments += [(entry.at, 1, _decision(entry)) for entry in recorder.entries if isinstance(entry, ClientDecided)]
    steps = [Step(CALLER, CLIENT, f"{scenario.operation.name} {scenario.key!r}", at_ms=0.0)]
    for at, _, found in sorted(moments, key=lambda moment: moment[:2]):
        at_ms = round((at - began) * 1000, 3)
        is_later = at_ms > max(step.at_ms or 0.0 for step in steps)
        steps += [replace(found[0], at_ms=at_ms if is_later else None), *found[1:]]
    steps.append(Step(CLIENT, CALLER, outcome, "good" if outcome == SUCCESS else "bad"))
    # Leave out the text in brackets, which is for a log.
    lines = textwrap.wrap(message.partition(" [")[0], MESSAGE_WIDTH)
    return [*steps, *(Step(CALLER, CALLER, line, "words") for line in lines)]


def _exchange(command: LoggedCommand) -> list[Step]:
    """Return the steps of a command to the node and its response."""
    assert isinstance(command.opcode, Opcode)
    steps = [Step(CLIENT, NODE, command.opcode.name)]
    if command.applied:
        steps.append(Step(NODE, NODE, "applied"))
    if command.status is None:
        return [*steps, Step(NODE, CLIENT, "connection lost", "bad")]
    code = "" if command.status == Status.SUCCESS else f" [0x{command.status:02x}]"
    kind = "good" if command.status == Status.SUCCESS else "bad"
    return [*steps, Step(NODE, CLIENT, f"{status_name(command.status)}{code}", kind)]


def _decision(entry: ClientDecided) -> list[Step]:
    """Return the decision of the client. The response before it, or the error after it, shows the reason."""
    return [
        Step(CLIENT, CLIENT, "no retry" if entry.delay is None else f"again in {entry.delay * 1000:g} ms", "decision")
    ]


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours of a picture, taken from GitHub's pages."""

    paper: str
    ink: str
    grey: str
    line: str
    box: str
    good: str
    bad: str
    decision: str


COLOURS: Mapping[str, Colours] = {
    "light": Colours("#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#f6f8fa", "#1a7f37", "#bc4c00", "#0969da"),
    "dark": Colours("#0d1117", "#f0f6fc", "#9198a1", "#3d444d", "#151b23", "#3fb950", "#f0883e", "#4493f8"),
}
WIDTH, PANEL, GAP = 900, 442, 16
LANES = (76, 241, 402)
"""Distances of caller, client and node from the left edge of the panel."""
MESSAGE_WIDTH = 46
TOP, ROW, LEADING = 80, 25, 18
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"


def drawn(panels: Mapping[str, Sequence[Step]], colours: Colours) -> str:
    """Return the picture: one sequence diagram per title, side by side, in SVG."""
    rows = max(map(len, panels.values()))
    height = TOP + ROW * rows + 12
    style = (
        f"text {{ font: 12.5px {SANS}; fill: {colours.ink} }} .code {{ font: 11px {MONO} }} "
        f".title {{ font-weight: 600; font-size: 14.5px }} .grey {{ fill: {colours.grey} }} "
        f".good {{ fill: {colours.good} }} .bad {{ fill: {colours.bad} }} .decision {{ fill: {colours.decision} }}"
    )
    words = ". ".join(f"{title}: {', '.join(step.text for step in steps)}" for title, steps in panels.items())
    head = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} aria-label={quoteattr(words)}>',
        f"<style>{style}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{colours.paper}"/>',
    ]
    for number, (title, steps) in enumerate(panels.items()):
        lines.append(f'<g transform="translate({number * (PANEL + GAP)} 0)">')
        lines += _panel(title, steps, colours)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def _panel(title: str, steps: Sequence[Step], colours: Colours) -> Iterator[str]:
    yield f'<text x="12" y="24" class="title">{escape(title)}</text>'
    end = TOP + ROW * sum(step.kind != "words" for step in steps) - 4
    for x, name in zip(LANES, ("caller", "client", "node"), strict=True):
        yield f'<path d="M{x} {TOP - 14}V{end}" stroke="{colours.line}" stroke-width="1.5"/>'
        yield (
            f'<rect x="{x - 32}" y="{TOP - 36}" width="64" height="22" rx="5" fill="{colours.box}" '
            f'stroke="{colours.line}"/>'
        )
        yield f'<text x="{x}" y="{TOP - 21}" text-anchor="middle">{name}</text>'
    y = TOP + 12 - ROW
    for step in steps:
        y += LEADING if step.kind == "words" else ROW
        if step.at_ms is not None:
            yield f'<text x="40" y="{y + 4}" text-anchor="end" class="grey">{step.at_ms:g} ms</text>'
        yield from _line(step, y, colours)


def _line(step: Step, y: int, colours: Colours) -> Iterator[str]:
    colour = {"line": colours.grey, "good": colours.good, "bad": colours.bad, "decision": colours.decision}.get(
        step.kind, colours.grey
    )
    start, end = LANES[step.start], LANES[step.end]
    if step.kind == "words":
        yield f'<path d="M{start} {y + 4}v{LEADING + 0.5}" stroke="{colours.bad}" stroke-width="3"/>'
        yield f'<text x="{start + 12}" y="{y + 17}" class="grey">{escape(step.text)}</text>'
        return
    if start == end:
        # Draw an internal action as a dot on its lane, with the text next to it.
        yield f'<circle cx="{start}" cy="{y}" r="4" fill="{colour}"/>'
        anchor, x = ("end", start - 10) if step.start == NODE else ("start", start + 10)
        kind = "grey" if step.kind == "line" else step.kind
        yield f'<text x="{x}" y="{y + 4}" text-anchor="{anchor}" class="{kind}">{escape(step.text)}</text>'
        return
    ahead = 1 if end > start else -1
    yield f'<path d="M{start + 5 * ahead} {y}H{end - 7 * ahead}" stroke="{colour}" stroke-width="1.3"/>'
    yield f'<path d="M{end - 3 * ahead} {y}l{-8 * ahead} -4v8z" fill="{colour}"/>'
    yield (
        f'<text x="{(start + end) / 2:g}" y="{y - 5}" text-anchor="middle" '
        f'class="code {"" if step.kind == "line" else step.kind}">{escape(step.text)}</text>'
    )


def pictures() -> dict[str, str]:
    """Return the picture for light and dark mode."""
    named = {scenario.name: scenario for scenario in SCENARIOS}
    panels = {
        title: trio.run(steps_of, named[name], clock=trio.testing.MockClock(autojump_threshold=0))
        for name, title in PLAYED.items()
    }
    return {theme: drawn(panels, colours) for theme, colours in COLOURS.items()}


if __name__ == "__main__":
    for theme, picture in pictures().items():
        PICTURES[theme].parent.mkdir(exist_ok=True)
        PICTURES[theme].write_text(picture, encoding="utf-8")
