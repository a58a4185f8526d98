"""Parameters and raw options: they are encoded when they are created."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.rows import rows
from triclinium_core.errors import CouchbaseException, EncodingFailureException, InvalidArgumentException
from triclinium_core.services.statement.parameters import Parameters, RawOptions, check_keywords


def test_members() -> None:
    """Positional parameters are sent in ``args`` and named ones with a dollar sign; a query may have both."""
    parameters = Parameters([1, "é", None], {"age": [30], "$name": {"first": "ada"}})

    assert {
        "args": [1, "é", None],
        "$age": [30],
        "$name": {"first": "ada"},
    } == msgspec.json.decode(msgspec.json.encode(parameters.members()))
    assert ("$1", "$2", "$3", "$age", "$name") == parameters.names
    assert {} == Parameters().members()


def test_values_are_copied() -> None:
    """If the caller changes a value after creating the parameters, the parameters do not change."""
    value = [1]
    parameters = Parameters(value, {"of": value})
    value.append(2)

    assert Parameters([1], {"of": [1]}) == parameters


def test_repr_shows_names_only() -> None:
    """The ``repr`` of parameters and raw options shows their names but no value."""
    parameters = Parameters(["s3cret"], {"password": "s3cret"})

    assert "Parameters($1, $password)" == repr(parameters)
    assert "RawOptions(controls)" == repr(RawOptions({"controls": "s3cret"}))


@rows(
    ("make", "error", "named"),
    [
        (lambda: Parameters([1, object()]), EncodingFailureException, r"\$2"),
        (lambda: Parameters([], {"$age": float("nan")}), EncodingFailureException, r"\$age"),
        (lambda: Parameters([], {"photo": b"\x00"}), EncodingFailureException, r"\$photo"),
        (lambda: RawOptions({"controls": {1j}}), EncodingFailureException, r"raw\['controls'\]"),
        (lambda: Parameters("text"), InvalidArgumentException, "positional"),
        (lambda: Parameters({1: 2}), InvalidArgumentException, "positional"),  # type: ignore[arg-type]
        (lambda: Parameters([], [("a", 1)]), InvalidArgumentException, "named_parameters"),  # type: ignore[arg-type]
        (lambda: Parameters([], {5: 1}), InvalidArgumentException, "named_parameters"),  # type: ignore[dict-item]
        (lambda: Parameters([], {"": 1}), InvalidArgumentException, "named_parameters"),
        (lambda: Parameters([], {"$": 1}), InvalidArgumentException, "no name"),
        (lambda: Parameters([], {"\ud800": 1}), InvalidArgumentException, "named_parameters"),
        (lambda: Parameters([], {"a": 1, "$a": 2}), InvalidArgumentException, r"\$a is given twice"),
        (lambda: Parameters([], {"a": 1}, {"a": 2}), InvalidArgumentException, r"\$a is given twice"),
        (lambda: RawOptions({"": 1}), InvalidArgumentException, "raw"),
        (lambda: RawOptions(["a"]), InvalidArgumentException, "raw"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments(make: Callable[[], object], error: type[CouchbaseException], named: str) -> None:
    """An invalid parameter or raw option raises an error that names the parameter or option."""
    with pytest.raises(error, match=named):
        make()


OPTIONS = ("readonly", "metrics")


@rows(
    ("statement", "keyword"),
    [
        ("SELECT $age", "age"),
        ("SELECT @age", "age"),
        ("SELECT $age+1", "age"),
        ("SELECT $größe", "größe"),
        (5, "age"),
    ],
)
def test_keywords_that_are_parameters(statement: object, keyword: str) -> None:
    """A keyword is accepted if the statement uses it as a parameter, or if the statement is not a string."""
    check_keywords(statement, [keyword], OPTIONS)


@rows(
    ("statement", "keyword", "hint"),
    [
        ("SELECT 1", "read_only", "readonly"),
        ("SELECT 1", "metric", "metrics"),
        ("SELECT $ages", "age", "named_parameters"),
        ("SELECT age", "age", "named_parameters"),
        ("SELECT $a.b", "axb", "named_parameters"),
    ],
)
def test_keywords_that_are_slips(statement: str, keyword: str, hint: str) -> None:
    """A keyword that the statement does not use is refused, with a hint to a similar option or to named parameters."""
    with pytest.raises(InvalidArgumentException, match=hint) as caught:
        check_keywords(statement, [keyword], OPTIONS)

    assert keyword == caught.value.parameter
