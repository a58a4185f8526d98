"""Hostile input gets an error and never a trap, after which the instance would be unusable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from tests.hosts.component import hostile
from tests.hosts.component.hostile import QUERY, REQUEST, RESPONSE
from tests.hosts.component.preparing import Arguments, replies
from triclinium_core.shown import json_text, printable
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import answer, clauses, decode

pytestmark = pytest.mark.hosts

MACHINES_MAX, ERROR_MAPS_MAX = 10_000, 256
Reply = Mapping[str, object]


def call(host: Arguments, calls: Sequence[object]) -> list[Reply]:
    """Return the replies of one instance."""
    return [json.loads(line) for line in replies(host, list(map(json.dumps, calls))).lines]


def native(question: str) -> Reply:
    """Return the reply that the core gives in this process."""
    try:
        fields = decode(question)
        return {"ok": {"answer": json_text(answer(fields)), "clauses": list(clauses(fields))}}
    except MalformedQuestion as error:
        return {"error": printable(str(error))}


def test_hostile_questions_get_errors(host: Arguments) -> None:
    """Questions that are invalid, too large, or nested too deeply get an error; extreme ones are answered."""
    refused, answered = hostile.REFUSED_QUESTIONS, hostile.ANSWERED_QUESTIONS
    got = call(host, [["decide", question] for question in (*refused, *answered)])

    assert [["error"]] * len(refused) == [list(reply) for reply in got[: len(refused)]]
    assert [native(question) for question in answered] == got[len(refused) :]


def test_mutated_questions_are_answered_as_natively(host: Arguments) -> None:
    """Recorded questions with changed, missing or hostile values get the native answer or error."""
    questions = list(hostile.mutated_questions(seed=30, count=1_500))
    got = call(host, [["decide", question] for question in questions])
    expected = [native(question) for question in questions]

    assert expected == got
    assert all(200 < sum(kind in reply for reply in expected) for kind in ("ok", "error"))


def test_refused_calls_change_nothing(host: Arguments) -> None:
    """Invalid ids, times, names, responses and error maps get an error, after which the requests go on."""
    before = [
        ["open", REQUEST | {"timeout": 60.0}, 0.0],
        ["open", QUERY | {"timeout": 60.0}, 0.0],
        ["handle", 1, {"tag": "time-passed"}, 10.0],
    ]
    after = [
        ["handle", 1, {"tag": "dispatched", "val": None}, 10.0],
        ["handle", 1, RESPONSE, 10.0],
        ["handle", 2, {"tag": "dispatched", "val": "n2"}, 0.0],
        ["handle", 2, hostile.served("[" * hostile.BODY_LENGTH_MAX, 404), 10.0],
        ["open", REQUEST, 1e300],
    ]
    got = call(host, [*before, *hostile.REFUSED_CALLS, *after])
    retry: list[Reply] = [
        {"tag": "report-retry", "val": "kv-temporary-failure"},
        {"tag": "retry-after", "val": {"seconds": 0.001, "dispatches": True}},
    ]

    assert [{"ok": 1}, {"ok": 2}, {"ok": []}] == got[: len(before)]
    assert [] == [
        (refused, reply)
        for refused, reply in zip(hostile.REFUSED_CALLS, got[len(before) :], strict=False)
        if "error" not in reply
    ]
    assert [{"ok": []}, {"ok": retry}, {"ok": []}] == got[-5:-2]
    assert "fail" in json.dumps(got[-2]["ok"])
    assert {"ok": 3} == got[-1]


def test_the_number_of_machines_is_bounded(node_host: Arguments) -> None:
    """A machine beyond the maximum is refused until another one is closed, and ids are never used again."""
    opened = [["open", REQUEST, 0.0]] * MACHINES_MAX
    *first, refused, closed, reopened, gone = call(
        node_host, [*opened, opened[0], ["close", 17], opened[0], ["wakeup", 17]]
    )

    assert [{"ok": number} for number in range(1, MACHINES_MAX + 1)] == first
    assert {"error": f"{MACHINES_MAX} machines are open, the maximum; close one first"} == refused
    assert [{"ok": None}, {"ok": MACHINES_MAX + 1}] == [closed, reopened]
    assert {"error": "machine 17 is not open; pass the id of an open machine"} == gone


def test_the_number_of_error_maps_is_bounded(node_host: Arguments) -> None:
    """Beyond the maximum, the oldest map is dropped, so its statuses are not retried; a map loaded again is new."""
    document = '{"version": 1, "revision": 1, "errors": {"7ff0": {"attrs": ["retry-now"]}}}'
    maps = [["load-error-map", f"n{number}", document] for number in (*range(ERROR_MAPS_MAX), 0, ERROR_MAPS_MAX)]
    machine = [
        [
            ["open", REQUEST, 0.0],
            ["handle", number, {"tag": "dispatched", "val": node}, 0.0],
            ["handle", number, {"tag": "kv-response-received", "val": {"status": 0x7FF0, "node": node}}, 0.0],
        ]
        for number, node in ((1, "n1"), (2, "n0"))
    ]
    got = call(node_host, [*maps, *machine[0], *machine[1]])

    assert [{"ok": None}] * len(maps) == got[: len(maps)]
    assert "fail" in json.dumps(got[-4])
    assert "retry-after" in json.dumps(got[-1])
