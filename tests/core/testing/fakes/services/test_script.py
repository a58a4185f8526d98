"""Table of scripted answers, and the validation of answers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeScript, hang_up_mid_request, locked

ONE, TWO, THREE = (FakeAnswer(rows=[number]) for number in (1, 2, 3))


def test_text_precedes_patterns() -> None:
    """An answer for the exact text precedes patterns of its service, which apply in order and must match completely."""
    script = FakeScript()
    script.answer(re.compile(".*"), TWO, service=Service.ANALYTICS)
    script.answer(re.compile("SELECT .*"), ONE)
    script.answer(re.compile("SELECT 2.*"), TWO)
    script.answer("SELECT 2", THREE)

    said = ["SELECT 2", " SELECT\n2 ; ", "SELECT 22", "EXPLAIN SELECT 2"]
    assert [THREE, THREE, ONE, None] == [script.take(Service.QUERY, each) for each in said]
    script.clear()
    assert script.take(Service.QUERY, "SELECT 2") is None


def test_answers_come_in_turn() -> None:
    """A script's answers are given in order, and the last one repeatedly. A new script for the text of the same service
    replaces the old one.
    """
    script = FakeScript()
    script.answer("a", ONE, TWO)
    first = [script.take(Service.QUERY, "a") for _ in range(3)]
    script.answer("a", THREE)
    script.answer("a", ONE, service=Service.ANALYTICS)

    assert [ONE, TWO, TWO] == first
    assert [THREE, ONE, None] == [
        script.take(service, "a") for service in (Service.QUERY, Service.ANALYTICS, Service.SEARCH)
    ]


@rows(
    "arguments",
    [
        {"said": b"a"},
        {"answers": ()},
        {"answers": ("rows",)},
        {"service": Service.KV},
        {"service": "sql"},
    ],
)
def test_wrong_scripts_are_refused(arguments: dict[str, Any]) -> None:
    """An invalid argument raises an error with the parameter's name."""
    (parameter,) = arguments
    given: dict[str, Any] = {"said": "a", "answers": (ONE,), **arguments}

    with pytest.raises(errors.InvalidArgumentException) as caught:
        FakeScript().answer(given.pop("said"), *given.pop("answers"), **given)

    assert parameter == caught.value.parameter


@rows(
    ("parameter", "value"),
    [
        ("rows", "rows"),
        ("rows", 1),
        ("rows", [object()]),
        ("rows", ["\ud800"]),
        ("errors", [1]),
        ("errors", [{"msg": object()}]),
        ("repeat", -1),
        ("metadata", []),
        ("metadata", {"a": object()}),
        ("body", b"{}"),
        ("body", "\ud800"),
        ("content_type", None),
        ("http_status", 100),
        ("seconds", -1),
        ("seconds_between_rows", float("nan")),
        ("headers", "a: b"),
        ("headers", {"": ""}),
        ("headers", {"a": 1}),
        ("fault", locked()),
        ("fault", hang_up_mid_request()),
    ],
)
def test_wrong_answers_are_refused(parameter: str, value: Any) -> None:
    """A field that is invalid, or that cannot be sent, raises an error with its name when the answer is made."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        FakeAnswer(**{parameter: value})

    assert parameter == caught.value.parameter
