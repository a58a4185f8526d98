"""Cost of events that reach each limit, in calls and in the machine's units of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests import full_events
from tests.core.runtime.kv.counting import counted
from triclinium_core.contract.couchbase import Action, CompleteRequest, FailOperation, OperationAbandoned
from triclinium_core.contract.neutral import CloseStream, TimePassed, Token
from triclinium_core.errors import DecodingFailureException
from triclinium_core.json_depth import LEVELS_MAX
from triclinium_core.retry.couchbase import Service
from triclinium_core.retry.couchbase.tables import service_answers
from triclinium_core.services.answer.incoming_answer import BODY_LIMITS, IncomingAnswer
from triclinium_core.services.answer.rows import MEMBERS_MAX, REST_LIMITS, MalformedRows, RowSplitter
from triclinium_core.work import (
    HTTP_BYTES_PER_UNIT,
    PIECE_SIZE_BYTES_MAX,
    PIECE_WORK,
    READ_AT_ONCE_MAX,
    STEPPED_BYTES_PER_UNIT,
    WORK_BEFORE_TIME_MAX,
)

CALLS_MAX = 150_000
"""Maximum number of calls for one event, which take about fifty milliseconds."""

FLOODS = {
    "chunks of one byte",
    "rows of one digit",
    "rows of an empty object",
    "brackets, 8 deep",
    "brackets that never close",
    "brackets that close soon",
    "objects of an error",
    "escapes in a string",
    "extensions of chunks",
    "strings in brackets that never close",
    "members",
    "NOOPs of the server",
    "announced configs",
    "second answers",
    "config",
}
"""Events that a node can cause as often as it likes."""

CALLS_PER_UNIT_MAX = 8
"""Maximum number of calls per unit of work, so that WORK_BEFORE_TIME_MAX limits the calls too."""


@pytest.mark.parametrize("name", sorted(full_events.FULL_EVENTS))
def test_one_event_has_a_bound(name: str) -> None:
    """An event that reaches a limit makes at most ``CALLS_MAX`` calls."""
    full = full_events.FULL_EVENTS[name]()
    with counted() as calls:
        full.handle()

    assert CALLS_MAX > calls.total()


@pytest.mark.parametrize("name", sorted(FLOODS))
def test_floods_are_counted(name: str) -> None:
    """If a node can repeat an event, the work that the machine counts for it grows with its calls."""
    full = full_events.FULL_EVENTS[name]()
    before = full.machine.work
    with counted() as calls:
        full.handle()
    work = full.machine.work - before

    assert PIECE_WORK <= work
    assert calls.total() <= CALLS_PER_UNIT_MAX * work
    # After a few of these events the limit is reached, and the driver feeds TimePassed.
    assert work < 4 * WORK_BEFORE_TIME_MAX


@pytest.mark.parametrize(
    ("name", "bytes_per_unit_max"),
    [
        ("brackets that close soon", STEPPED_BYTES_PER_UNIT),
        ("objects of an error", STEPPED_BYTES_PER_UNIT),
        ("escapes in a string", STEPPED_BYTES_PER_UNIT),
        ("extensions of chunks", HTTP_BYTES_PER_UNIT),
    ],
)
def test_bytes_that_patterns_step_over_are_counted(name: str, bytes_per_unit_max: int) -> None:
    """If patterns scan a piece without calls, the work that the machine counts still grows with the bytes."""
    full = full_events.FULL_EVENTS[name]()
    before = full.machine.work
    full.handle()

    assert full.machine.work - before >= 0.99 * PIECE_SIZE_BYTES_MAX / bytes_per_unit_max


def whole(splitter: RowSplitter, body: bytes) -> bytes:
    """Feed a body to the splitter, and return the document around its rows."""
    splitter.feed(body)
    return splitter.finish()


@pytest.mark.parametrize(
    ("members", "fits"),
    [
        (full_events.listed(b"warnings", b"{}", REST_LIMITS.objects_max - 1), True),
        (full_events.listed(b"warnings", b"{}", REST_LIMITS.objects_max), False),
        (full_events.listed(b"signature", b"1", REST_LIMITS.parts_max - 10), True),
        (full_events.listed(b"signature", b"1", REST_LIMITS.parts_max + 1), False),
        (b'{"status":"success","profile":%b}' % full_events.keys(REST_LIMITS.parts_max + 1), False),
        (b'{"status":"success","signature":"%b"}' % (b"x" * REST_LIMITS.size_bytes_max), False),
        (b'{"status":"success",%b"z":1}' % (b'"a":1,' * (MEMBERS_MAX - 2)), True),
        (b'{"status":"success",%b"z":1}' % (b'"a":1,' * (MEMBERS_MAX - 1)), False),
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else None,
)
def test_documents_around_rows(members: bytes, fits: bool) -> None:
    """A request fails if and only if the JSON around its rows exceeds a limit of bytes, members, objects or parts."""
    ordered = full_events.document(full_events.HEAD, members).handle()
    last = ordered[-1] if ordered else None
    splitter = RowSplitter("results")

    if fits:
        assert isinstance(last, CompleteRequest)
        assert whole(splitter, members) == members
        return
    assert last is None or (isinstance(last, FailOperation) and isinstance(last.error, DecodingFailureException))
    with pytest.raises(MalformedRows):
        whole(splitter, members)


@pytest.mark.parametrize("excess", [0, 1])
def test_bodies_that_are_read_whole(excess: int) -> None:
    """A list of as many objects as the limit is read whole, and one with more is rejected."""
    body = b"[%b]" % b",".join([b"{}"] * (BODY_LIMITS.objects_max + excess))
    answer = IncomingAnswer()
    answer.begin(200, rows_of=None)
    answer.receive(body)

    if not excess:
        assert body == answer.whole()
        return
    with pytest.raises(MalformedRows, match="objects"):
        answer.whole()


@pytest.mark.parametrize(
    ("code", "errors"),
    [
        (1, b'{"code":1,"msg":"x"}'),
        (None, b",".join([b'{"code":1}'] * (service_answers.DECODED_OBJECTS_MAX + 1))),
        (None, b'{"code":1},' + b",".join([b"1"] * (service_answers.DECODED_PARTS_MAX + 1))),
        (None, b'{"code":1,"msg":"%b"}' % (b"x" * service_answers.DECODED_SIZE_BYTES_MAX)),
    ],
    ids=["small", "objects", "parts", "size"],
)
def test_failures_that_are_decoded(code: int | None, errors: bytes) -> None:
    """The body of a failure counts as foreign text only if it exceeds the limits; no more than its start is kept."""
    body = b'{"errors":[%b]}' % errors
    for form in (body, body.decode()):
        answer = service_answers.read_answer(Service.QUERY, 400, form)

        assert code == answer.code
        assert (code is None) == answer.is_foreign
        assert len(answer.raw) <= service_answers.TEXT_SIZE_BYTES_MAX


def test_white_space_that_fills_the_beginning() -> None:
    """If the kept start of a body is only white space, the body still counts as foreign text."""
    assert service_answers.read_answer(
        Service.QUERY, 200, b" " * service_answers.TEXT_SIZE_BYTES_MAX + b"<html>"
    ).is_foreign


@pytest.mark.parametrize("depth", [4, 15, 16, 17, 18, 40, LEVELS_MAX - 2, pytest.param(900, marks=pytest.mark.native)])
def test_deep_rows_end_where_they_end(depth: int) -> None:
    """The splitter counts several brackets at a time, and finds the same rows in pieces of any size."""
    nested = b"[" * depth + b'"]]{"' + b"]" * depth
    expected = [nested, b'{"a":%b}' % nested, b"[%b,%b]" % (nested, nested), b"1"]
    body = full_events.ROWS + b",".join(expected) + b"]}"
    for size in (1, 7, 100, len(body)):
        splitter, found = RowSplitter("results"), list[bytes]()
        for start in range(0, len(body), size):
            found += splitter.feed(body[start : start + size])

        assert expected == found


def test_rows_behind_a_large_one() -> None:
    """If a row is larger than the searched bytes, the rows after it are still found."""
    large = b'{"a":"%b","b":[[{}]]}' % (b"x" * 100_000)
    body = full_events.ROWS + b",".join([large] * 5) + b"]}"
    splitter = RowSplitter("results")
    found = [row for start in range(0, len(body), 10_000) for row in splitter.feed(body[start : start + 10_000])]

    assert [large] * 5 == found


def parts_of(full: full_events.FullEvent) -> Iterator[tuple[int, list[Action]]]:
    """Handle an event that receives a list, and its continuations; yield the work and the actions of each."""
    machine, before = full.machine, full.machine.work
    actions = full.handle()
    yield machine.work - before, actions
    while machine.wakeup <= full.simulation.now:
        before = machine.work
        actions = list(machine.handle(TimePassed(), full.simulation.now))
        yield machine.work - before, actions


@pytest.mark.parametrize("make", [full_events.users, full_events.buckets, full_events.roles_of_a_user])
def test_lists_are_read_in_parts(make: Callable[[], full_events.FullEvent]) -> None:
    """A list up to its limits is read completely; each event does a limited part of the work."""
    *parts, (_, last) = parts_of(make())

    assert parts
    assert all(READ_AT_ONCE_MAX * 2 > work for work, _ in parts)
    assert [CompleteRequest] == [type(action) for action in last if isinstance(action, CompleteRequest)]


def test_a_list_in_parts_has_no_deadline() -> None:
    """If the deadline passes while a received list is read in parts, the request does not fail."""
    full = full_events.users()
    full.handle()
    actions = list(full.machine.handle(TimePassed(), full.simulation.now + 1_000))

    assert not any(isinstance(action, FailOperation) for action in actions)
    assert full.machine.wakeup <= full.simulation.now + 1_000


def test_a_list_abandoned_between_parts() -> None:
    """If a request is abandoned between two parts of its list, the connection stays open for the next request."""
    full = full_events.users()
    full.handle()
    token = next(iter(full.machine._lifecycle.open))
    actions = list(full.machine.handle(OperationAbandoned(Token(token)), full.simulation.now))

    assert not any(isinstance(action, CloseStream) for action in actions)
    assert full.machine.wakeup > full.simulation.now
