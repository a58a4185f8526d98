"""Completions of the arguments of ``triclinium explain``."""

from __future__ import annotations

from click.shell_completion import ShellComplete

from tests.rows import rows
from triclinium._cli import main
from triclinium._cli.explain.couchbase import NAMED_OPERATIONS, OPERATIONS
from triclinium_core.retry.couchbase import Service


@rows(
    ("words", "expected"),
    [
        ([], [*map(str, Service), "cassandra", "smithy"]),
        (["kv"], OPERATIONS),
        (["management"], NAMED_OPERATIONS[Service.MANAGEMENT]),
        (["query"], []),
        (["unknown"], []),
        (
            ["cassandra"],
            ["read-timeout", "write-timeout", "unavailable", "request-aborted", "error-response"],
        ),
        (["smithy"], []),
    ],
)
def test_arguments_complete_by_what_precedes_them(words: list[str], expected: list[str]) -> None:
    """An argument completes to the names that are possible after the words before it."""
    completion = ShellComplete(main, {}, "triclinium", "_TRICLINIUM_COMPLETE")
    found = completion.get_completions(["explain", *words], "")

    assert list(expected) == [item.value for item in found]


def test_a_beginning_limits_the_completions() -> None:
    """Only names that begin with the incomplete word are completions."""
    completion = ShellComplete(main, {}, "triclinium", "_TRICLINIUM_COMPLETE")

    assert ["search", "smithy"] == [item.value for item in completion.get_completions(["explain"], "s")]
