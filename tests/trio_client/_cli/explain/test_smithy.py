"""``triclinium explain smithy``: operations in words and as data, and errors for wrong input."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium_core.retry.smithy.quota import RetryQuota


def explain(arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["explain", "smithy", *arguments.split()])


@rows(
    ("arguments", "available", "operations"),
    [
        ("--responses E,T,ok", 486, [("complete", "ok", [0.025, 0.5 * 2])]),
        ("--responses E,T,ok --random 1", 486, [("complete", "ok", [0.05, 2])]),
        ("--responses e,to,OK --numbers 2020", 495, [("complete", "ok", [0.5, 1])]),
        ("--responses E,E,E,ok", 472, [("fail", "E", [0.025, 0.05])]),
        ("--responses E,E,E,ok --max-attempts 4", 472, [("complete", "ok", [0.025, 0.05, 0.1])]),
        ("--responses N,ok", 500, [("fail", "N", [])]),
        ("--responses E,ok --quota 0", 0, [("fail", "E", [])]),
        ("--responses E", 486, [("open", "E", [])]),
        ("--responses E,E --responses E --quota 20", 6, [("fail", "E", [0.025]), ("fail", "E", [])]),
        ("--responses T,ok --retry-after 60", 500, [("complete", "ok", [60])]),
        (
            "--responses T,ok --responses ok --strategy adaptive",
            500,
            [("complete", "ok", [2]), ("complete", "ok", [])],
        ),
        ("--responses E,ok --strategy simple", None, [("complete", "ok", [0.01875])]),
        ("--responses E,ok --strategy Simple --max-attempts 1", None, [("fail", "E", [])]),
    ],
)
def test_operations_as_data(
    arguments: str, available: int | None, operations: list[tuple[str, str, list[float]]]
) -> None:
    """``--json`` prints the outcome of each operation that the options describe."""
    result = explain(f"{arguments} --json")

    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    actual = json.loads(line)
    assert available == actual["available"]
    assert operations == [
        tuple(reported[key] for key in ("action", "result", "delays_s")) for reported in actual["operations"]
    ]


def test_operations_in_words() -> None:
    """Without colours, the command prints one line each for the responses, the settings, every attempt and the end."""
    responses, settings, first, second, end = explain("--responses E,ok").output.splitlines()

    assert "E,ok" in responses
    assert all(fact in settings for fact in ("StandardRetryStrategy", "3 attempts", "500", "0.5"))
    assert all(fact in first for fact in ("Attempt 1", "0.025 s", "486", "decision S4"))
    assert all(fact in second for fact in ("Attempt 2", "500"))
    assert all(fact in end for fact in ("the result", "2 attempts", "0.025 s"))
    assert "no quota" in explain("--responses ok --strategy simple --random 1").output


def test_explain_follows_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed quota changes the explanation, because the command itself contains no rules."""
    monkeypatch.setattr(RetryQuota, "acquire", lambda *_: False)

    actual = json.loads(explain("--responses E,ok --json").output)

    assert "fail" == actual["operations"][0]["action"]


@rows(
    ("arguments", "words"),
    [
        ("", "--responses"),
        ("--responses E,X", "E, T, TO, N, ok"),
        ("--responses E,,ok", "'E,,ok'"),
        ("--responses E --strategy none", "standard, adaptive, simple"),
        ("--responses E --numbers 1999", "2020, 2026"),
        ("--responses E --strategy simple --quota 5", "--quota "),
        ("--responses E --strategy simple --numbers 2020", "--numbers "),
        ("--responses E --quota -1", "'--quota': -1"),
        ("--responses E --max-attempts -1", "'--max-attempts': -1"),
        ("--responses E --random 1.5", "'--random': 1.5"),
        ("--responses E --random nan", "--random nan"),
        ("--responses E --retry-after inf", "'--retry-after': inf"),
        ("--responses T,T,ok --retry-after 1e308 --strategy adaptive", "'--retry-after': 1e+308"),
        ("E,T,ok", "unexpected extra argument (E,T,ok)"),
    ],
)
def test_wrong_input_is_refused(arguments: str, words: str) -> None:
    """Wrong input exits with status 2 and one line that names the mistake or the valid values."""
    assert_refused(explain(arguments), words)
