"""``triclinium explain smithy``: operations in words and as data, and what it says to nonsense."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.rows import rows
from triclinium._cli import _telling, main
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
    """What the options say is what is explained."""
    result = explain(f"{arguments} --json")

    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    actual = json.loads(line)
    assert available == actual["available"]
    assert operations == [tuple(told[key] for key in ("action", "result", "delays_s")) for told in actual["operations"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            "--responses E,ok",
            [
                "The attempts end with E,ok.",
                "StandardRetryStrategy: 3 attempts at most, a quota of 500; every draw gives 0.5.",
                (
                    "Attempt 1 ends with an error that is safe to retry. It is tried again in 0.025 s (design page, "
                    "Backoff Strategy; decisions S3 and S7). This takes 14 from the quota, which then has 486 "
                    "(decision S4)."
                ),
                "Attempt 2 succeeds. This gives back 14 to the quota, which then has 500 (decision S4).",
                "So the caller gets the result, after 2 attempts and 0.025 s of waiting.",
            ],
        ),
        (
            "--responses ok --strategy simple --random 1",
            [
                "The attempts end with ok.",
                "SimpleRetryStrategy: 5 attempts at most, no quota; every draw gives 1.",
                "Attempt 1 succeeds.",
                "So the caller gets the result, after 1 attempt and 0 s of waiting.",
            ],
        ),
    ],
)
def test_operations_in_words(arguments: str, expected: list[str]) -> None:
    """Where nobody sees colours, the sentences stand one to a line."""
    assert expected == explain(arguments).output.splitlines()


def test_each_end_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operation's own, in its own colour; clauses recede."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=400, color_system="standard", highlight=False)
    monkeypatch.setattr(_telling, "Console", lambda **_: console)
    monkeypatch.setattr(_telling, "READABLE_WIDTH", 400)

    explain("--responses N --responses ok --responses E")

    told = output.getvalue()
    assert "\x1b[1;31mSo the caller gets the error of the last attempt" in told
    assert "\x1b[1;32mSo the caller gets the result" in told
    assert "\x1b[1;33mSo there is a further attempt" in told
    assert "\x1b[2mdecision S4\x1b[0m" in told


def test_a_changed_quota_changes_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command holds no rule of its own."""
    monkeypatch.setattr(RetryQuota, "acquire", lambda *_: False)

    actual = json.loads(explain("--responses E,ok --json").output)

    assert "fail" == actual["operations"][0]["action"]


@rows(
    ("arguments", "expected"),
    [
        ("", "say with --responses what the attempts end with, such as E,T,ok; --help says what they are"),
        ("--responses E,X", "there is no response 'X'; there is E, T, TO, N, ok"),
        ("--responses E,,ok", "--responses 'E,,ok' has an empty place; write it like E,T,ok"),
        ("--responses E --strategy none", "there is no strategy 'none'; there is standard, adaptive, simple"),
        ("--responses E --strategy standart", "there is no strategy 'standart'; did you mean standard?"),
        ("--responses E --numbers 1999", "there is no year of numbers '1999'; there is 2020, 2026"),
        (
            "--responses E --strategy simple --quota 5",
            "--quota says nothing about the strategy simple, which has none; leave it out",
        ),
        (
            "--responses E --strategy simple --numbers 2020",
            "--numbers says nothing about the strategy simple, which has none; leave it out",
        ),
        ("--responses E --quota -1", "Invalid value for '--quota': -1 is not in the range x>=0."),
        ("--responses E --max-attempts -1", "Invalid value for '--max-attempts': -1 is not in the range x>=0."),
        ("--responses E --random 1.5", "Invalid value for '--random': 1.5 is not in the range 0<=x<=1."),
        ("--responses E --random nan", "--random nan is not a number from 0 to 1"),
        ("--responses E --retry-after inf", "Invalid value for '--retry-after': inf is not a finite number."),
        (
            "--responses T,T,ok --retry-after 1e308 --strategy adaptive",
            "Invalid value for '--retry-after': 1e+308 is more than 1e+09.",
        ),
        ("E,T,ok", "Got unexpected extra argument (E,T,ok)"),
    ],
)
def test_nonsense(arguments: str, expected: str) -> None:
    """One line says what is wrong, and what was probably meant; the status is 2."""
    result = explain(arguments)

    assert (2, f"Error: {expected}\n") == (result.exit_code, result.stderr)
