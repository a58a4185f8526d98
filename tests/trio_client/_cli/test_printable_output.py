"""Output of every command for hostile arguments and files, which has no terminal controls."""

from __future__ import annotations

import json
from pathlib import Path

import click
from click.testing import CliRunner
from msgspec.structs import replace

from tests.rows import rows
from tests.trio_client._cli.serve.test_log import COMMAND, REQUEST
from triclinium._cli import main
from triclinium._cli._output import plain
from triclinium._cli.group import COMMANDS
from triclinium._cli.serve.log import Logged, json_line, line

EVIL = "\x1b[31m[red]\x9b\x7f\u202e\u2028\n"


def is_plain(text: str) -> bool:
    """Return whether each line of output is printable."""
    return all(each.isprintable() for each in text.split("\n"))


def cases() -> list[list[str]]:
    """Return command lines with hostile commands, arguments and option names, and with hostile values of options."""
    found = [
        [EVIL],
        [f"--{EVIL}"],
        *[["explain", "query", "--code", "5000", "--message", EVIL, *as_json] for as_json in ([], ["--json"])],
    ]
    for name in COMMANDS:
        defined = main.get_command(click.Context(main), name)
        assert defined is not None
        found += [[name, EVIL], [name, EVIL, EVIL], [name, f"--{EVIL}"]]
        # Leave out options of type STRING, because serve would accept any text for them and start.
        options = [each for each in defined.params if isinstance(each, click.Option) and each.type is not click.STRING]
        options = [each for each in options if not each.is_flag]
        arguments = [EVIL for each in defined.params if isinstance(each, click.Argument) and each.required]
        found += [[name, *arguments, f"{each.opts[-1]}={EVIL}"] for each in options]
    return found


@rows("arguments", cases())
def test_hostile_arguments(arguments: list[str]) -> None:
    """A command that refuses or quotes a hostile argument prints no control characters."""
    result = CliRunner().invoke(main, arguments, env={"TRICLINIUM_USERNAME": "app", "TRICLINIUM_PASSWORD": EVIL})

    assert result.exit_code in (0, 1, 2)
    assert is_plain(result.output)


def test_questions_with_hostile_names(tmp_path: Path) -> None:
    """Answers to a batch are printable for hostile questions and ids."""
    path = tmp_path / "questions"
    path.write_text(json.dumps({"id": EVIL, "family": EVIL}, ensure_ascii=False) + f"\n{EVIL}", encoding="utf-8")
    result = CliRunner().invoke(main, ["explain", "--batch", str(path)])

    assert is_plain(result.output)


def test_lines_of_a_server_with_hostile_requests() -> None:
    """The log of ``serve`` is printable for hostile requests, as text and as JSON."""
    logged: list[Logged] = [
        replace(COMMAND, key=EVIL.encode(errors="replace")),
        replace(REQUEST, target=EVIL, statement=EVIL),
    ]

    assert all(each(0, one).isprintable() for one in logged for each in (line, json_line))


def test_text_for_a_console() -> None:
    """Foreign text for a console is not parsed as markup, and has no control characters."""
    assert r"\x1b[31m[red]" in plain(EVIL).plain
    assert plain(EVIL).plain.isprintable()
