"""Timeline of a recording: event, decision, delay and outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, unique

from triclinium._cli.demo.recorder import ClientDecided, ConnectionReported, NodeTook, Play
from triclinium._cli.demo.scenarios import SUCCESS
from triclinium_core.explain.explanation import milliseconds
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status, status_name
from triclinium_core.testing import ERROR_MAP, LoggedCommand, LoggedRequest
from triclinium_core.testing.fakes.faults import HangUpAfterApplying, HangUpBeforeApplying, HangUpMidReply
from triclinium_core.timeline import Source


@unique
class ClientDecision(StrEnum):
    """Decision of the client about a failure."""

    RETRY = "retry"
    NO_RETRY = "no retry"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Row of the timeline. ``at_ms`` is the time since the call, in milliseconds."""

    at_ms: float
    source: Source
    event: str
    decision: ClientDecision | None = None
    delay_ms: float | None = None


def rows_of(play: Play) -> list[TimelineRow]:
    """Return the timeline of a scenario's run, oldest row first."""
    scenario = play.scenario
    strategy = "" if scenario.strategy is None else f", with {type(scenario.strategy).__name__}"
    rows = [TimelineRow(_ms(play.ended - play.began), Source.CALLER, _outcome(play))]
    for row in reversed([*_rows_between(play)]):
        # An event may be recorded later than the decision that it caused. Limit its time to that of the next row.
        rows.append(replace(row, at_ms=min(row.at_ms, rows[-1].at_ms)))
    rows.append(TimelineRow(0.0, Source.CALLER, f"{scenario.operation.name} {scenario.key!r}{strategy}"))
    return rows[::-1]


def _rows_between(play: Play) -> Iterator[TimelineRow]:
    reported: set[object] = set()
    for entry in play.entries:
        at_ms = _ms(entry.at - play.began)
        match entry:
            case NodeTook(_, command) if play.is_about(command):
                yield TimelineRow(at_ms, Source.NODE, _deed(command))
            case NodeTook(_, command) if command.status == Status.AUTH_ERROR and command.status not in reported:
                # The node refuses the credentials on each connection of the client. Show this once.
                reported.add(command.status)
                yield TimelineRow(at_ms, Source.NODE, _deed(command))
            case ConnectionReported(_, text) if text not in reported:
                reported.add(text)
                # Leave out the system's error text, which is in parentheses.
                yield TimelineRow(at_ms, Source.NETWORK, text.partition(" (")[0])
            case ClientDecided(_, key, age, reason, delay) if key == play.scenario.logged_key:
                if delay is None:
                    yield TimelineRow(_ms(age), Source.CLIENT, reason, ClientDecision.NO_RETRY)
                else:
                    yield TimelineRow(_ms(age), Source.CLIENT, reason, ClientDecision.RETRY, milliseconds(delay))
            case _:
                pass


def _outcome(play: Play) -> str:
    if play.outcome != SUCCESS:
        return f"{play.outcome}: {play.message}"
    return SUCCESS if play.answer is None else f"{SUCCESS}: {play.answer}"


_ENDINGS: Mapping[type, str] = {
    HangUpBeforeApplying: "hangs up",
    HangUpAfterApplying: "hangs up without a response",
    HangUpMidReply: "hangs up in the middle of its response",
}
_NAMES_IN_THE_MAP: Mapping[int, str] = {row.code: row.name for row in ERROR_MAP.rows}


def _deed(command: LoggedCommand | LoggedRequest) -> str:
    """Return in words how the node handled a command or a request."""
    if isinstance(command, LoggedRequest):
        return _deed_of_service(command)
    if command.status is None:
        ending = _ENDINGS.get(type(command.fault), "does not respond")
    else:
        name = status_name(command.status) or _NAMES_IN_THE_MAP.get(command.status, "an unknown status")
        ending = f"returns {name}" + ("" if command.status == Status.SUCCESS else f" [0x{command.status:02x}]")
    applied = ", applies it" if command.applied else ""
    return f"receives {_opcode_name(command.opcode)}{applied} and {ending}"


def _deed_of_service(request: LoggedRequest) -> str:
    taken = "the name of a plan" if b'"prepared":' in request.body else "a statement to prepare"
    return f"receives {taken}{', executes it' if request.applied else ''} and returns HTTP status {request.status}"


def _opcode_name(opcode: int) -> str:
    return opcode.name if isinstance(opcode, Opcode) else f"0x{opcode:02x}"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
