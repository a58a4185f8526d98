"""Questions about each kind of retry rules, as decoded JSON, alone and line by line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given, strategies as st

from tests.core.tools.vectors import sample_questions
from tests.rows import rows
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import answer, answer_lines


@rows("question", sample_questions.QUESTIONS)
def test_every_field_is_required(question: dict[str, object]) -> None:
    """A question without one of its fields is refused, and the error names the field."""
    for name in question:
        with pytest.raises(MalformedQuestion, match=f"^{name} is missing$"):
            answer({key: value for key, value in question.items() if key != name})


def test_refuses_a_question_that_is_not_an_object() -> None:
    """A question that is an array is refused."""
    with pytest.raises(MalformedQuestion, match="^a question is an object, not an array$"):
        answer(cast(dict[str, object], ["couchbase"]))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encode", [str, str.encode], ids=["text", "bytes"])
def test_byte_order_mark_is_ignored(mark: str, encode: Callable[[str], str | bytes]) -> None:
    """A byte order mark is ignored at the start of the first line, which may be blank, but not in later lines."""
    question = json.dumps(sample_questions.IDEMPOTENT)
    first = [understood for _, understood in answer_lines([encode(mark + question), encode(mark + question)])]
    blank = list(answer_lines([encode(f"{mark}\n")]))

    assert [True, not mark] == first
    assert [] == blank


def test_lines_are_answered_in_order() -> None:
    """Each line gets its own answer or error, with its id and its line number; blank lines count but get no answer."""
    lines: list[str | bytes] = [
        json.dumps({"id": "first"} | sample_questions.CAP),
        "",
        json.dumps({"id": 2} | sample_questions.IDEMPOTENT).encode() + b"\n",
        json.dumps(sample_questions.TERMINAL),
        b" \t\r\n",
        json.dumps({"id": "bad", "expect": None} | sample_questions.CAP | {"elapsed_ms": "1"}),
    ]

    answers = [(json.loads(text), understood) for text, understood in answer_lines(lines)]

    assert [
        ({"id": "first", "delay_ms": 10, "dispatches": True}, True),
        ({"id": 2, "idempotent": True}, True),
        ({"id": None, "reason": "AUTHENTICATION_ERROR"}, True),
        ({"id": "bad", "error": "line 6: elapsed_ms is a string, expected a number"}, False),
    ] == answers


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON: "),
        (b"\xff", "line 1: not JSON: "),
        ('{"id": ' * 100_000, "line 1: not JSON: "),
        ('{"id": ' + "9" * 5_000 + "}", "line 1: not JSON: "),
        ('{"id": NaN}', "line 1: not JSON: JSON has no NaN"),
        ("[1]", "line 1: a question is an object, not an array"),
        (json.dumps({"id": [1]} | sample_questions.CAP), "line 1: id is an array, expected a string or a whole number"),
        (
            json.dumps({"id": True} | sample_questions.CAP),
            "line 1: id is a boolean, expected a string or a whole number",
        ),
        (json.dumps({"id": 0.5} | sample_questions.CAP), "line 1: id is a number, expected a string or a whole number"),
    ],
    ids=range(9),
)
def test_lines_without_a_usable_id(line: str | bytes, message: str) -> None:
    """The error has the line number and a null id."""
    ((text, understood),) = answer_lines([line])
    found = json.loads(text)

    assert not understood
    assert {"id": None, "error": message} == found | {"error": found["error"][: len(message)]}


def test_lines_are_read_one_at_a_time() -> None:
    """An endless stream of questions is answered line by line."""
    lines = itertools.repeat(json.dumps({"id": 7} | sample_questions.CAP))

    answers = list(itertools.islice(answer_lines(lines), 3))

    assert [('{"id": 7, "delay_ms": 10, "dispatches": true}', True)] * 3 == answers


@st.composite
def nearly_questions(draw: st.DrawFn) -> dict[str, object]:
    """Return a question with some fields replaced, added or dropped."""
    question = dict(draw(st.sampled_from(sample_questions.QUESTIONS)))
    for name in draw(st.lists(st.sampled_from([*question, "id", "error_map_entry", "readonly", "events"]), max_size=3)):
        value = draw(
            sample_questions.JSON_VALUES | sample_questions.HUGE | sample_questions.ENTRIES | sample_questions.EVENTS
        )
        question[name] = value
    for name in draw(st.lists(st.sampled_from(list(question)), max_size=1)):
        del question[name]
    return question


LINES = st.text() | st.binary() | sample_questions.JSON_VALUES.map(json.dumps) | nearly_questions().map(json.dumps)


def refuse_constant(name: str) -> object:
    """Refuse constants that Python accepts in JSON but the standard does not."""
    raise AssertionError(name)


@given(lines=st.lists(LINES, max_size=5))
def test_every_line_gets_one_json_line(lines: list[str | bytes]) -> None:
    """Any line gets one line of valid JSON, with an error if and only if the question was not understood."""
    answers = list(answer_lines(lines))

    assert len([line for line in lines if line.strip()]) == len(answers)
    for text, understood in answers:
        found = json.loads(text, parse_constant=refuse_constant)
        assert "\n" not in text
        assert "id" in found
        assert understood == (found.get("error", "").partition(" ")[0] != "line")
