"""Timelines of operations and connections, and the summary of a tape."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Literal

import msgspec
from hypothesis import given

from tests.core.timeline.tapes import NODE, OTHER, lost, opening, operation, read, retried_steps, tape_of, tapes
from tests.rows import rows
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import LossCause
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.retry.couchbase import BreakerState, RetryReason, Service
from triclinium_core.timeline import Selection, Source, Summary, Timeline, connection_timeline, timelines
from triclinium_core.timeline.summary import CLASSES_MAX
from triclinium_core.timeline.timelines import HELD_MAX, RECENT_MAX, ROWS_MAX

ALL = Selection()
RETRIED = operation(7, took=0.2, steps=retried_steps(10.0, [0.001, 0.05]))
FAILED = operation(
    8, 11.0, steps=(*operation(8, 11.0).steps, lost(11.5)), result="failed", error="RequestCanceledException"
)


def only(*facts: lines.Fact, selection: Selection = ALL) -> Timeline:
    """Return the only timeline of a tape with these facts."""
    (found,) = timelines(read(tape_of(*facts)), selection)
    return found


def token_of(timeline: Timeline) -> int:
    """Return the token of a timeline's operation."""
    return int(timeline.title.rpartition(" ")[2])


def events_of(timeline: Timeline) -> list[object]:
    """Return the facts about connections, breakers and maps in a timeline."""
    return [
        row.fact for row in timeline.rows if isinstance(row.fact, lines.Connection | lines.Breaker | lines.ClusterMap)
    ]


# -- Operations.


def test_retried_operation_shows_attempts_decisions_result() -> None:
    """A retried operation has a row for each attempt, response and delay, with the decision, between call and result."""
    found = only(RETRIED)

    client, node = Source.CLIENT, Source.NODE
    assert [Source.CALLER, client, node, client, client, node, client, client, Source.CALLER] == [
        row.source for row in found.rows
    ]
    assert [10.0, 10.2] == [found.rows[0].at, found.rows[-1].at]
    assert [] == [word for word in ("TEMPORARY_FAILURE [0x86]", NODE) if word not in found.rows[2].text]
    assert ["retry in 1 ms: KV_TEMPORARY_FAILURE", "retry in 50 ms: KV_TEMPORARY_FAILURE"] == [
        row.decided for row in found.rows if row.decided
    ]
    assert "stream 3, opaque 22" == found.rows[-2].numbers


REFRESHED = lines.Decision(kind="fail", refresh_collection=True, close_connection=True)
EXPIRING, RETRYING = lines.Decision(kind="expire", delay=0.5), lines.Decision(kind="retry", delay=0.1)
NOT_AVAILABLE = RetryReason.NODE_NOT_AVAILABLE


@rows(
    ("step", "words"),
    [
        (lost(11.0), (NODE, "part", "RequestCanceledException")),
        (
            lines.NotSent(at=11.0, decision=REFRESHED, answer=lines.Answer(), reason=NOT_AVAILABLE, node=OTHER),
            (OTHER, NOT_AVAILABLE.meaning, "collection id", "close", "BestEffortRetryStrategy refuses"),
        ),
        (
            lines.ServiceResponded(
                at=11.0, decision=EXPIRING, answer=lines.Answer(raised="KeyError"), http_status=503, code=1080
            ),
            (NODE, "503", "1080", "fail in 500 ms", "raises KeyError"),
        ),
        (lines.Woken(at=11.0, decision=lines.Decision(kind="fail", error="X")), ("deadline", "fail with X")),
        (
            lines.StrategyResponded(at=11.0, decision=RETRYING, answer=lines.Answer(delay=0.9)),
            ("BestEffortRetryStrategy has responded", "retry in 100 ms", "permits a delay of 900 ms"),
        ),
        (
            lines.Responded(at=11.0, decision=lines.Decision(kind="consult"), status=0x7FF0),
            (NODE, "unknown status", "0x7ff0", "await BestEffortRetryStrategy"),
        ),
    ],
)
def test_rows_have_the_facts_in_words(step: lines.Step, words: tuple[str, ...]) -> None:
    """Each kind of step names the node, the failure, the decision and an answer that differs from the decision."""
    *_, row, _ = only(operation(took=2.0, steps=(*operation().steps, step))).rows

    assert [] == [word for word in words if word not in f"{row.text} {row.decided}"]


def test_events_on_its_nodes_are_included() -> None:
    """An operation shows events of its nodes, streams and bucket during its life, also of the instant of its end."""
    first, map_, breaker = (
        opening(10.1, 4),
        lines.ClusterMap(at=10.2, epoch=1, revision=9, nodes=3, moved=512, bucket="travel"),
        lines.Breaker(at=10.3, state=BreakerState.HALF_OPEN, node=NODE),
    )
    outside = opening(10.2, 5, OTHER), lines.ClusterMap(at=10.2, epoch=1, revision=9, nodes=3, moved=0, bucket="beer")
    ends = [
        lines.Connection(at=10.5, stream=stream, event="stream_lost", cause=LossCause.RESET, handed_over=24)
        for stream in (3, 4)
    ]
    before, after = opening(9.0, 3), opening(10.6, 6)

    found = only(before, first, *outside, map_, breaker, operation(bucket="travel"), *ends, after)

    assert [first, map_, breaker, *ends] == events_of(found)
    assert [] == [word for word in ("1.9", "512", "half open", "connection reset", NODE) if word not in str(found.rows)]
    assert NODE in found.rows[-2].text, "the row of a lost stream names the node of its opening"


def test_an_unsent_operation_has_all_events() -> None:
    """An operation that reached no node shows the events of all connections; an open one until the end of the tape."""
    waiting = operation(1, 10.0, None, steps=(), deadline=None)
    facts = [opening(10.1, 4), opening(10.2, 5, OTHER)]

    found = only(*facts, waiting)

    assert facts == events_of(found)
    assert 10.2 == found.rows[-1].at


def test_missing_events_are_noted() -> None:
    """A timeline notes dropped events of connections, and omitted steps; a shorter life has all of its events."""
    many = [opening(10.0 + number / 1e6, number) for number in range(RECENT_MAX + 1)]

    found = only(*many, operation(took=1.0, omitted=3))

    assert RECENT_MAX == len(events_of(found))
    assert [True, True] == ["3 later" in found.notes[1], str(RECENT_MAX) in found.notes[2]]
    assert 1 == len(only(*many, operation(began=10.01, took=1.0)).notes)


def test_many_simultaneous_ends_stay_bounded() -> None:
    """Of operations that end at the same instant, only a limited number is read before the first timeline."""
    facts = iter([operation(token, 10.0, 0.5) for token in range(HELD_MAX + 3)])

    first = next(timelines(facts, ALL))

    assert (0, 1) == (token_of(first), len(list(facts)))


# -- Selections and memory.


@rows(
    ("selection", "expected"),
    [
        (ALL, [7, 8, 9, 10, 11]),
        (Selection(token=9), [9]),
        (Selection(key="a" * 32), [9]),
        (Selection(failed=True), [8, 10]),
        (Selection(troubled=True), [7, 8, 10]),
        (Selection(slowest=2), [11, 10]),
        (Selection(slowest=1, failed=True), [10]),
        (Selection(token=9, failed=True), []),
    ],
)
def test_selections_include_operations(selection: Selection, expected: list[int]) -> None:
    """A selection includes the operations that fulfil its conditions, in the order of the tape or the slowest first."""
    succeeded = lines.ServiceResponded(at=14.0, decision=lines.Decision(kind="complete"), http_status=200)
    facts = [
        RETRIED,
        FAILED,
        operation(9, 12.0, key="a" * 32),
        operation(10, 12.0, 1.0, result="abandoned", abandoned=AbandonReason.TIMEOUT),
        operation(11, 13.0, 2.0, name="query", service=Service.QUERY, steps=(succeeded,)),
    ]

    assert expected == [token_of(found) for found in timelines(read(tape_of(*facts)), selection)]


def test_memory_does_not_grow_with_the_tape() -> None:
    """A tape of 25,000 operations and as many events needs little more memory than one of 5,000."""

    def peak(count: int) -> int:
        def tape() -> Iterator[bytes]:
            yield tape_of(is_cut_off=True)
            for number in range(count):
                at = 10.0 + number / 1000
                failed = msgspec.structs.replace(FAILED, token=number, submitted_at=at, ended_at=at)
                for fact in (lines.Connection(at=at, stream=number, event="opening", node=NODE), failed):
                    yield msgspec.json.encode(fact) + b"\n"

        tracemalloc.start()
        summary = Summary()
        facts = summary.counted(fact for _, fact in TapeReader(tape()))
        assert 10 == len([*timelines(facts, Selection(troubled=True, slowest=10))])
        assert count == summary.counts["operations and requests"]["failed"]
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(25_000) < 1.5 * peak(5_000)


# -- Connections.


@rows(("result", "shown"), [("completed", [9.0]), ("failed", [9.0, 10.1])])
def test_a_connection_omits_successes(result: Literal["completed", "failed"], shown: list[float]) -> None:
    """The response that completes a request is shown on its connection only if the request failed nevertheless."""
    success = lines.ServiceResponded(at=10.1, decision=lines.Decision(kind="complete"), http_status=200)
    query = operation(9, took=0.2, steps=(*operation(9).steps, success), result=result)

    found = connection_timeline(read(tape_of(opening(9.0, 3), query)), 3)

    assert found is not None
    assert (shown, True) == ([row.at for row in found.rows], found.notes[0].startswith("1 attempt "))


def test_a_connection_shows_bootstrap_failures_loss() -> None:
    """A connection has its milestones, its breaker's changes, the attempts that failed on it, and its loss."""
    facts: list[lines.Fact] = [
        opening(9.0, 3),
        opening(9.1, 4),
        lines.Connection(at=9.2, stream=3, event="ready", node=NODE),
        RETRIED,
        lines.Breaker(at=11.2, state=BreakerState.OPEN, node=NODE),
        lines.Breaker(at=11.2, state=BreakerState.OPEN, node=OTHER),
        lines.Connection(at=11.5, stream=3, event="stream_lost", cause=LossCause.END_OF_STREAM, handed_over=24),
        FAILED,
    ]

    found = connection_timeline(read(tape_of(*facts)), 3)

    assert found is not None
    assert [9.0, 9.2, 10.0, 10.001, 11.2, 11.5, 11.5] == [round(row.at, 6) for row in found.rows]
    assert {"stream": 3, "node": NODE, "attempts": 4} == found.subject["connection"]
    assert ("token 7" in found.rows[2].text, "token 8" in found.rows[-1].text) == (True, True)
    assert not found.succeeded
    assert connection_timeline(read(tape_of(*facts)), 5) is None


def test_a_connection_has_a_maximum_of_rows() -> None:
    """A connection keeps a limited number of rows, and notes it."""
    found = connection_timeline([opening(10.0 + number, 3) for number in range(ROWS_MAX + 2)], 3)

    assert found is not None
    assert (ROWS_MAX, 12.0, 2) == (len(found.rows), found.began_at, len(found.notes))


# -- Summary.


def test_summary_counts_the_facts() -> None:
    """The summary has the results, exceptions, connections, causes and maps of the tape, and what it lacks."""
    ended = lines.Connection(at=11.5, stream=3, event="stream_lost", cause=LossCause.RESET)
    changes: list[lines.Fact] = [lines.Breaker(at=12.0, state=BreakerState.OPEN), lines.ClusterMap(12.0, 1, 2, 3, 4)]
    summary = Summary()
    facts: list[lines.Fact] = [opening(9.0, 3), RETRIED, FAILED, ended, *changes]

    assert facts == [*summary.counted(facts)]
    expected = {
        "operations_and_requests": {"completed": 1, "failed": 1, "with a failed attempt": 2},
        "exceptions": {"RequestCanceledException": 1},
        "network": {"connections opened": 1, "circuit breakers open": 1, "maps accepted": 1},
        "ended_connections": {"connection reset": 1},
        "lost": None,
    }
    assert {"summary": expected} == summary.to_json()
    assert ("cut off" in summary.missing, 4) == (True, len(summary.sentences()))


def test_summary_limits_the_exception_classes() -> None:
    """Exception classes beyond the limit are counted together. Lost facts are in the summary."""
    summary = Summary()
    facts = [operation(error=f"E{number}", result="failed") for number in range(CLASSES_MAX + 50)]

    assert len(facts) + 1 == len([*summary.counted([*facts, lines.End(at=99.0, reason="saved", lost=3)])])
    assert (50, True) == (summary.counts["exceptions"]["others"], summary.missing.startswith("3 facts"))


# -- Arbitrary tapes.


@given(tapes())
def test_timelines_have_exactly_the_facts(tape: bytes) -> None:
    """Of any tape, each operation has a timeline with its steps in order, and each stream has one with its events."""
    facts = read(tape)
    operations = [fact for fact in facts if isinstance(fact, lines.Operation)]

    for found, each in zip(timelines(facts, ALL), operations, strict=True):
        subject = msgspec.convert(found.subject["operation"], lines.Operation)
        steps = tuple(row.fact for row in found.rows if isinstance(row.fact, lines.Step))
        assert each == msgspec.structs.replace(subject, steps=steps)
        assert [] == [fact for fact in events_of(found) if fact not in facts]
        assert len(found.rows) == len(found.to_json()["rows"])  # type: ignore[arg-type]
    for stream in {fact.stream for fact in facts if isinstance(fact, lines.Connection)}:
        connection = connection_timeline(facts, stream)
        assert connection is not None
        events = [row.fact for row in connection.rows if isinstance(row.fact, lines.Connection)]
        assert events == [fact for fact in facts if isinstance(fact, lines.Connection) and fact.stream == stream]
