"""Drawings of transition tables, whose arrows represent exactly the transitions in the table.

Two elements replace several arrows with one. An arrow from a *frame* represents an arrow from each state in the frame. An
arrow to a *choice* represents an arrow to each target of the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from typing import NamedTuple

Point = tuple[float, float]
Table = Mapping[str, Mapping[str, AbstractSet[str]]]
"""State, event, and possible next states, all by name."""


class Transition(NamedTuple):
    """One cell of the table with one of its next states. A transition to the same state is not drawn."""

    source: str
    event: str
    target: str


class Arrow(NamedTuple):
    """Arrow of the drawing; ``source`` and ``target`` are names of states, frames or choices."""

    source: str
    target: str
    events: tuple[str, ...]


class StateFrame(NamedTuple):
    """Rectangle around states, ``(left, top, right, bottom)``.

    If an arrow inside the frame represents only ``event``, the frame shows the label instead of the arrow.
    """

    states: frozenset[str]
    box: tuple[float, float, float, float]
    event: str = ""


class Choice(NamedTuple):
    """Diamond with an arrow to every target."""

    targets: Mapping[str, str]
    """Label of the arrow to each target."""
    at: Point


class Layout(NamedTuple):
    """Positions in pixels. A state of the table without a position is an error."""

    title: str
    size: tuple[int, int]
    states: Mapping[str, Point]
    final: frozenset[str] = frozenset()
    frames: Mapping[str, StateFrame] = {}
    choices: Mapping[str, Choice] = {}
    bends: Mapping[tuple[str, str], float] = {}
    """Distance in pixels by which the middle of an arrow bends to its left."""
    labels: Mapping[tuple[str, str], float] = {}
    """Position of the label on the arrow, from 0 at its start to 1 at its end; by default the middle."""
    starts: Mapping[tuple[str, str], Point] = {}
    """Start of an arrow that does not start at the middle of its source."""


def transitions_of(table: Table) -> set[Transition]:
    """Return all transitions of the table that change the state."""
    return {
        Transition(source, event, target)
        for source, events in table.items()
        for event, targets in events.items()
        for target in targets
        if target != source
    }


def arrows_of(table: Table, frames: Mapping[str, StateFrame], choices: Mapping[str, Choice]) -> list[Arrow]:
    """Return the arrows that represent the table, in its order."""
    left = transitions_of(table)
    events = list(dict.fromkeys(event for row in table.values() for event in row))
    drawn: dict[tuple[str, str], list[str]] = {}

    def draw(source: str, target: str, label: str, stands_for: Iterable[Transition]) -> None:
        left.difference_update(stands_for)
        labels = drawn.setdefault((source, target), [])
        if label not in labels:
            labels.append(label)

    for name, frame in sorted(frames.items(), key=lambda item: -len(item[1].states)):
        for event in events:
            for target in sorted(table.keys() - frame.states):
                whole = {Transition(state, event, target) for state in frame.states}
                if whole <= left:
                    draw(name, target, event, whole)
    for name, choice in choices.items():
        for source in table:
            for event in events:
                whole = {Transition(source, event, target) for target in choice.targets}
                if whole <= left:
                    draw(source, name, event, whole)
        if any(target == name for _, target in drawn):
            for target, label in choice.targets.items():
                draw(name, target, label, ())
    for source in table:
        for event in events:
            for target in table:
                if (single := Transition(source, event, target)) in left:
                    draw(source, target, event, {single})
    return [Arrow(source, target, tuple(labels)) for (source, target), labels in drawn.items()]


def expand(arrows: Iterable[Arrow], frames: Mapping[str, StateFrame], choices: Mapping[str, Choice]) -> set[Transition]:
    """Return the transitions that the arrows represent: the inverse of ``arrows_of``."""
    found: set[Transition] = set()
    for source, target, events in arrows:
        if source in choices:
            continue
        sources = frames[source].states if source in frames else {source}
        targets = choices[target].targets if target in choices else {target}
        found |= {Transition(begin, event, end) for begin in sources for event in events for end in targets}
    return found


# -- The drawing.

STATE_HEIGHT = 36.0
CHARACTER_WIDTH = 8.2
CHOICE_RADIUS = 11.0
LINE_HEIGHT = 15.0
HEAD_LENGTH = 9.0

STYLE = """
.sd-line{fill:none;stroke:var(--color-foreground-secondary,#555);stroke-width:1.3}
.sd-head{fill:var(--color-foreground-secondary,#555)}
.sd-state{fill:var(--color-background-secondary,#f4f4f6);stroke:var(--color-foreground-primary,#111);stroke-width:1.3}
.sd-frame{fill:none;stroke:var(--color-foreground-muted,#888);stroke-dasharray:5 4}
.sd-name{fill:var(--color-foreground-primary,#111);font-family:sans-serif;font-size:13px;font-weight:600;text-anchor:middle}
.sd-event,.sd-halo{font-family:sans-serif;font-size:12px;text-anchor:middle;fill:var(--color-foreground-primary,#111)}
.sd-halo{stroke:var(--color-background-primary,#fff);stroke-width:5px;stroke-linejoin:round}
""".strip().replace("\n", "")
"""Styles with the colours of the theme, so that the drawing follows its light and dark modes."""


def draw_svg(table: Table, layout: Layout) -> str:
    """Return the diagram as a self-contained SVG element.

    Raises:
        ValueError: layout and table do not have the same states.
    """
    if table.keys() != layout.states.keys():
        raise ValueError(
            f"the states of layout {layout.title!r} and its table differ in "
            f"{sorted(table.keys() ^ layout.states.keys())}"
        )
    arrows = arrows_of(table, layout.frames, layout.choices)
    width, height = layout.size
    lines, labels = zip(*(_arrow(arrow, layout) for arrow in arrows), strict=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
        f' style="max-width:{width}px;width:100%;height:auto"><title>{layout.title}</title><style>{STYLE}</style>',
        *(_frame(frame) for frame in layout.frames.values()),
        *lines,
        *(_choice(choice.at) for choice in layout.choices.values()),
        *(_state(name, at, is_final=name in layout.final) for name, at in layout.states.items()),
        *labels,
        "</svg>",
    ]
    return "".join(parts)


def _frame(frame: StateFrame) -> str:
    left, top, right, bottom = frame.box
    caption = _text(f"inside: {frame.event}", right - 100, bottom - 12)
    return (
        f'<rect class="sd-frame" x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" rx="10"/>'
        f"{caption if frame.event else ''}"
    )


def _choice(at: Point) -> str:
    x, y = at
    r = CHOICE_RADIUS
    return f'<path class="sd-state" d="M{x - r} {y}L{x} {y - r}L{x + r} {y}L{x} {y + r}z"/>'


def _state(name: str, at: Point, *, is_final: bool) -> str:
    x, y = at
    width = _width(name)
    shapes = [(width, STATE_HEIGHT)] if not is_final else [(width, STATE_HEIGHT), (width - 6, STATE_HEIGHT - 6)]
    boxes = "".join(
        f'<rect class="sd-state" x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="8"/>'
        for w, h in shapes
    )
    return f'{boxes}<text class="sd-name" x="{x}" y="{y + 4.5}">{name}</text>'


def _width(name: str) -> float:
    return len(name) * CHARACTER_WIDTH + 26


def _arrow(arrow: Arrow, layout: Layout) -> tuple[str, str]:
    """Return the SVG of the arrow's line and of its label."""
    ends = (arrow.source, arrow.target)
    end = _middle(arrow.target, layout)
    start = layout.starts.get(ends) or _middle(arrow.source, layout)
    bend = layout.bends.get(ends, 0.0)
    (x1, y1), (x2, y2) = start, end
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    control = (x1 + x2) / 2 + (y2 - y1) / length * bend * 2, (y1 + y2) / 2 - (x2 - x1) / length * bend * 2
    if ends not in layout.starts:
        start = _clip(start, control, _half_size(arrow.source, layout))
    end = _clip(end, control, _half_size(arrow.target, layout))
    line = (
        f'<path class="sd-line" d="M{start[0]:.1f} {start[1]:.1f}'
        f'Q{control[0]:.1f} {control[1]:.1f} {end[0]:.1f} {end[1]:.1f}"/>'
    )
    events = () if _is_shown_by_frame(arrow, layout) else arrow.events
    return line + _head(control, end), _label(events, _on_curve(start, control, end, layout.labels.get(ends, 0.5)))


def _is_shown_by_frame(arrow: Arrow, layout: Layout) -> bool:
    return any(
        arrow.events == (frame.event,) and {arrow.source, arrow.target} <= frame.states
        for frame in layout.frames.values()
    )


def _head(control: Point, end: Point) -> str:
    (x1, y1), (x2, y2) = control, end
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length * HEAD_LENGTH, (y2 - y1) / length * HEAD_LENGTH
    left, right = (x2 - dx - dy / 2, y2 - dy + dx / 2), (x2 - dx + dy / 2, y2 - dy - dx / 2)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (end, left, right))
    return f'<polygon class="sd-head" points="{points}"/>'


def _label(events: Sequence[str], at: Point) -> str:
    x, y = at
    first = y + 4 - LINE_HEIGHT * (len(events) - 1) / 2
    return "".join(_text(event, x, first + LINE_HEIGHT * row) for row, event in enumerate(events))


def _text(text: str, x: float, y: float) -> str:
    """Return a label that is readable on top of lines."""
    at = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="sd-halo" aria-hidden="true" {at}>{text}</text><text class="sd-event" {at}>{text}</text>'


def _on_curve(start: Point, control: Point, end: Point, t: float) -> Point:
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
    return a * start[0] + b * control[0] + c * end[0], a * start[1] + b * control[1] + c * end[1]


def _middle(name: str, layout: Layout) -> Point:
    if name in layout.frames:
        left, top, right, bottom = layout.frames[name].box
        return (left + right) / 2, (top + bottom) / 2
    if name in layout.choices:
        return layout.choices[name].at
    return layout.states[name]


def _half_size(name: str, layout: Layout) -> Point:
    if name in layout.frames:
        left, top, right, bottom = layout.frames[name].box
        return (right - left) / 2, (bottom - top) / 2
    if name in layout.choices:
        return CHOICE_RADIUS * 0.6, CHOICE_RADIUS * 0.6
    return _width(name) / 2, STATE_HEIGHT / 2


def _clip(middle: Point, towards: Point, half_size: Point) -> Point:
    """Return the point where the ray from the middle of a box leaves the box."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    scale = min(half_size[0] / abs(dx) if dx else float("inf"), half_size[1] / abs(dy) if dy else float("inf"))
    return middle[0] + dx * scale, middle[1] + dy * scale
