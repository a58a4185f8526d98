"""Output of the demo on terminals of different widths and in a pipe."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

from rich.console import Console

from tests.rows import rows
from tests.trio_client._cli.plays import PLAY, SCENARIO, decided, frame, request
from triclinium._cli.demo.checks import check
from triclinium._cli.demo.recorder import ClientDecided, ConnectionReported, NodeTook, Play
from triclinium._cli.demo.scenarios import QUERY, SCENARIOS
from triclinium._cli.demo.show import REASON_WIDTH, Judged, Screen
from triclinium._cli.demo.timeline import ClientDecision, TimelineRow, rows_of
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing import LoggedCommand
from triclinium_core.testing.fakes import faults
from triclinium_core.timeline import Source

GOOD: Judged = (PLAY, check(PLAY))
WORSE = replace(PLAY, answer="undone")
BAD: Judged = (WORSE, check(WORSE))


def shown(judged: Judged, *, width: int | None = None, seconds: float = 0.25, missing: int = 0) -> str:
    """Return the output with a terminal of ``width`` columns, or with a pipe if no width is given."""
    file = StringIO()
    terminal = Console(file=file, force_terminal=True, width=width, color_system=None, legacy_windows=False)
    screen = Screen(Console(file=file) if width is None else terminal)
    screen.opening()
    screen.scenario(1, *judged)
    screen.summary([judged], seconds, missing)
    return file.getvalue()


# -- The timeline.


def test_events_precede_the_decision_they_caused() -> None:
    """An event that was recorded after the moment of the decision is still listed before the decision."""
    entries = (
        ConnectionReported(100.003, "closed by the server"),
        ClientDecided(100.004, "ada", 0.002, "UNKNOWN", None),
    )

    _, news, decision, _ = rows_of(replace(PLAY, entries=entries))

    assert [2.0, 2.0] == [news.at_ms, decision.at_ms]
    assert (Source.NETWORK, ClientDecision.NO_RETRY) == (news.source, decision.decision)


def test_events_of_both_connections_appear_once() -> None:
    """An event that occurs on two connections is one row, without the text in brackets."""
    entries = (
        ConnectionReported(100.001, "connection refused (errno 111)"),
        ConnectionReported(100.002, "connection refused (errno 111)"),
    )

    _, *between, _ = rows_of(replace(PLAY, entries=entries))

    assert [TimelineRow(1.0, Source.NETWORK, "connection refused")] == between


def test_refused_credentials_are_one_row() -> None:
    """Credentials that the node refuses on both connections appear as one row."""
    refused = frame(0.0, Status.AUTH_ERROR, opcode=Opcode.SASL_STEP, key="SCRAM-SHA512")
    entries = (
        NodeTook(100.001, refused),
        NodeTook(100.002, refused),
        NodeTook(100.003, frame(0.0, opcode=Opcode.NOOP)),
    )

    _, *between, _ = rows_of(replace(PLAY, entries=entries))

    (row,) = between
    assert (1.0, Source.NODE) == (row.at_ms, row.source)
    assert "SASL_STEP" in row.event
    assert "AUTH_ERROR [0x20]" in row.event


@rows(
    ("command", "expected"),
    [
        (frame(0.0, Status.SUCCESS), " SUCCESS"),
        (frame(0.0, 0x7FF0), " RETRY_CONSTANT [0x7ff0]"),
        (frame(0.0, 0x7FFF), " [0x7fff]"),
        (frame(0.0, Status.SUCCESS, applied=True, fault=faults.Delay(1.0)), " SUCCESS"),
        (frame(0.0, None, fault=faults.HangUpBeforeApplying()), " hangs up"),
        (
            frame(0.0, None, applied=True, fault=faults.HangUpAfterApplying()),
            " hangs up without a response",
        ),
        (frame(0.0, None, fault=faults.HangUpMidReply()), " hangs up in the middle of its response"),
        (frame(0.0, None, applied=True, fault=faults.DropResponse()), " does not respond"),
    ],
)
def test_an_answered_command_is_described_in_words(command: LoggedCommand, expected: str) -> None:
    """The row of a command describes how the node responded, for each kind of fault."""
    row = rows_of(replace(PLAY, entries=(NodeTook(100.001, command),)))[1]

    assert "REPLACE" in row.event
    assert command.applied == (", applies it" in row.event)
    assert row.event.endswith(expected)


def test_a_query_lists_requests_and_decisions() -> None:
    """The rows of a query are its requests and the client's decisions, without other services' requests or commands."""
    query = replace(PLAY, scenario=replace(SCENARIO, operation=QUERY, key="SELECT 1"), answer=None)
    entries = (
        NodeTook(100.001, frame(0.0)),
        NodeTook(100.001, request(b"", 200, service=Service.SEARCH)),
        NodeTook(100.001, request(b'{"prepared":"p1"}', 400)),
        decided(100.002, 0.001, "QUERY_PREPARED_STATEMENT_FAILURE", key=None),
        NodeTook(100.003, request(b'{"statement":"PREPARE SELECT 1"}', 200, applied=True)),
    )

    first, executed, reason, prepared, last = [row.event for row in rows_of(replace(query, entries=entries))]
    assert ["query 'SELECT 1'", "QUERY_PREPARED_STATEMENT_FAILURE", "success"] == [first, reason, last]
    assert all(fact in executed for fact in ("the name of a plan", "400"))
    assert all(fact in prepared for fact in ("a statement to prepare, executes it", "200"))


@rows(
    ("play", "expected"),
    [
        (replace(PLAY, answer=None), "success"),
        (replace(PLAY, outcome="InternalError", message="it broke"), "InternalError: it broke"),
    ],
)
def test_the_last_row_is_the_outcome(play: Play, expected: str) -> None:
    """The last row gives the outcome, followed by the result or the message if there is one."""
    assert expected == rows_of(play)[-1].event


# -- The output.


@rows("width", [60, 300])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    """Every line fits into the width of the terminal and into 110 columns."""
    assert max(map(len, shown(BAD, width=width).splitlines())) <= min(width, 110)


def test_a_pipe_gets_plain_text() -> None:
    """The output to a pipe has neither colours nor trailing blanks."""
    _, _, *lines = shown(GOOD).splitlines()

    assert """
\N{CHECK MARK} 1. Somebody holds a lock
    RFC 0049
    0.0 ms  caller   replace 'ada'
    0.5 ms  node     receives REPLACE and returns LOCKED [0x09]
    1.0 ms  network  ready
    1.0 ms  client   KV_LOCKED                        \N{RIGHTWARDS ARROW} again in 1 ms
    2.5 ms  node     receives REPLACE and returns LOCKED [0x09]
    3.0 ms  client   KV_LOCKED                        \N{RIGHTWARDS ARROW} again in 2 ms
    5.5 ms  node     receives REPLACE, applies it and returns SUCCESS
    6.0 ms  caller   success: done

            client:            node:
  scenario  outcome  retries  frames  applied
\N{CHECK MARK} locked    success        2       3        1

1 scenario, 9 checks: all as RFC 0049 demands (0.25 s).""" == "\n".join(lines)


def test_all_timelines_line_up() -> None:
    """Decisions start in the same column in all timelines, independent of duration and rows."""
    slow = replace(PLAY, ended=112.3456, entries=(decided(100.002, 0.001, "SOCKET_CLOSED_WHILE_IN_FLIGHT"),))
    output = "".join(shown((play, []), width=80) for play in (PLAY, replace(PLAY, entries=()), slow))
    rows = [line for line in output.splitlines() if re.match(r" +[0-9.]+ ms ", line)]

    assert {10} == {line.index(" ms ") + 3 for line in rows}
    assert {"  "} == {line[10:12] for line in rows}
    assert {"caller   ", "client   ", "network  ", "node     "} == {line[12:21] for line in rows}
    assert {line.index("\N{RIGHTWARDS ARROW}") for line in rows if "again" in line} == {21 + REASON_WIDTH}
    assert "  12346 ms  caller   success: done" in [line.rstrip() for line in rows]


def test_no_line_of_the_summary_is_broken() -> None:
    """Each scenario is one line of the summary, even with the longest names and outcomes of the demo."""
    outcomes = ("AuthenticationFailureException", "RequestCanceledException", "success")
    judged: list[Judged] = [
        (replace(PLAY, scenario=scenario, outcome=outcome), []) for scenario in SCENARIOS for outcome in outcomes
    ]
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=80, color_system=None, legacy_windows=False)

    Screen(console).summary(judged, 0.25, 0)

    rows = [line.split() for line in file.getvalue().splitlines() if line.startswith("\N{CHECK MARK}")]
    assert len(judged) == len(rows)
    assert [play.outcome for play, _ in judged] == [row[-4] for row in rows]


def test_failures_are_marked() -> None:
    """A failed check is marked in its scenario, in the summary and in the last line."""
    lines = shown(BAD).splitlines()

    assert "\N{BALLOT X} 1. Somebody holds a lock" in lines
    assert "    \N{BALLOT X} answer: demanded done; observed undone" in lines
    assert any(line.split()[:2] == ["\N{BALLOT X}", "locked"] for line in lines)
    assert "1 of 1 scenario not as RFC 0049 demands (0.25 s)." == lines[-1]


def test_scenarios_not_played_are_counted() -> None:
    """The last line counts the scenarios that were not played, next to those that failed."""
    assert "1 not played, because time ran out (0.25 s)." == shown(GOOD, missing=1).splitlines()[-1]
    assert (
        "1 of 1 scenario not as RFC 0049 demands; 2 not played, because time ran out (0.25 s)."
        == (shown(BAD, missing=2).splitlines()[-1])
    )


@rows(
    ("reason", "delays", "expected"),
    [
        ("SOCKET_NOT_AVAILABLE", (0.001, 0.002, 0.004), "1, 2, 4 ms"),
        ("SOCKET_CLOSED_WHILE_IN_FLIGHT", (0.032, 0.064, 0.128, 0.256, 0.5, 0.5), "32 ... 500 ms"),
    ],
)
def test_repeated_decisions_are_one_line(reason: str, delays: tuple[float, ...], expected: str) -> None:
    """A decision that repeats is one line with all its delays, or with the first and the last of many."""
    entries = tuple(ClientDecided(100.001, "ada", 0.001, reason, delay) for delay in delays)

    output = shown((replace(PLAY, entries=entries), []), width=80)

    assert 1 == output.count(reason)
    assert f"{reason:<{REASON_WIDTH}}\N{RIGHTWARDS ARROW} again in {expected}" in output
