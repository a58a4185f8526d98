"""Decisions as data: one question, as decoded JSON, and its answer.

A question has a ``family`` and an ``ask``. The other fields depend on these; the module of the family documents them.
Every answer comes from the tables and objects that decide on requests, and so do the clauses that decide the answer.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping

from triclinium_core.json_depth import shallow_text
from triclinium_core.shown import in_json, json_text, printable
from triclinium_core.tools.vectors import (
    cassandra as cassandra_questions,
    couchbase as couchbase_questions,
    smithy as smithy_questions,
)
from triclinium_core.tools.vectors.fields import AnswerFields, Ask, Clauses, MalformedQuestion, Question

FAMILIES: Mapping[str, Mapping[str, Ask]] = {
    "couchbase": couchbase_questions.ASKS,
    "cassandra": cassandra_questions.ASKS,
    "smithy": smithy_questions.ASKS,
}
"""Functions that answer each kind of question, by ``family``."""

CLAUSES: Mapping[str, Mapping[str, Clauses]] = {
    "couchbase": couchbase_questions.CLAUSES,
    "cassandra": cassandra_questions.CLAUSES,
    "smithy": smithy_questions.CLAUSES,
}
"""Functions that return the clauses on each kind of question, by ``family``."""


def answer(question: Mapping[str, object]) -> AnswerFields:
    """Return the answer to one question, as JSON values.

    Raises:
        MalformedQuestion: the question is invalid. The message names the field and its fault.
    """
    fields = _fields(question)
    return fields.choice("ask", fields.choice("family", FAMILIES))(fields)


def clauses(question: Mapping[str, object]) -> tuple[str, ...]:
    """Return the clauses that decide the answer to a question: of an RFC or another source, or of this project.

    Raises:
        MalformedQuestion: a field on which the clauses depend is invalid. The message names it and its fault.
    """
    fields = _fields(question)
    return fields.choice("ask", fields.choice("family", CLAUSES))(fields)


def _fields(question: Mapping[str, object]) -> Question:
    if not isinstance(question, Mapping):
        raise MalformedQuestion(f"a question is an object, not {in_json(question)}")
    return Question(question)


def answer_lines(lines: Iterable[str | bytes]) -> Iterator[tuple[str, bool]]:
    """Yield, for every question in ``lines`` in order, one line of JSON, and whether the question was valid.

    Layout: ``{"id": ..., <answer>}``, or ``{"id": ..., "error": "line 7: fault"}``. The id is the question's id, which
    is a string or a whole number, or null without a valid one. Blank lines and a byte order mark are skipped. Only one
    line at a time is in memory.
    """
    for number, line in enumerate(lines, start=1):
        question = _without_mark(line) if number == 1 else line
        if question.strip():
            yield _answer_line(question, number)


def _without_mark(line: str | bytes) -> str | bytes:
    return line.removeprefix("\ufeff") if isinstance(line, str) else line.removeprefix(BOM_UTF8)


def _answer_line(line: str | bytes, number: int) -> tuple[str, bool]:
    identity: object = None
    try:
        question = decode(line)
        if isinstance(question, Mapping):
            identity = _identity(question)
        return json_text({"id": identity, **answer(question)}), True
    except MalformedQuestion as error:
        return json_text({"id": identity, "error": f"line {number}: {printable(str(error))}"}), False


def decode(line: str | bytes) -> Mapping[str, object]:
    """Return the question in a line of JSON.

    Raises:
        MalformedQuestion: the line is not JSON. The message contains the parser's.
    """
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
        question: Mapping[str, object] = json.loads(shallow_text(text), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedQuestion(f"not JSON: {error}") from error
    return question


def _refuse_constant(name: str) -> object:
    raise ValueError(f"JSON has no {name}")


def _identity(question: Mapping[str, object]) -> str | int | None:
    identity = question.get("id")
    if identity is None or isinstance(identity, str) or (isinstance(identity, int) and not isinstance(identity, bool)):
        return identity
    raise MalformedQuestion(f"id is {in_json(identity)}, expected a string or a whole number")
