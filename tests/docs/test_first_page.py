"""The README: its pictures show the client's actual behaviour, its links exist, and its commands work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks_of, words_of_svg
from tests.docs.retried_write import COLOURS, PICTURES, pictures

pytestmark = pytest.mark.native

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """Return the current pictures."""
    return pictures()


def test_the_picture_is_current(drawn: dict[str, str]) -> None:
    """Both pictures are byte-identical to new ones; ``uv run python -m tests.docs.retried_write`` draws them."""
    assert drawn == {theme: path.read_text(encoding="utf-8") for theme, path in PICTURES.items()}


def test_the_picture_shows_both_writes(drawn: dict[str, str]) -> None:
    """In the picture, one write succeeds after three retries with the RFC's delays; the other loses its response."""
    words = words_of_svg(drawn["light"])

    assert ["again in 1 ms", "again in 2 ms", "again in 4 ms"] == [each for each in words if each.startswith("again")]
    assert 4 == words.count("SET")
    assert 1 == words.count("INCREMENT")
    assert 2 == words.count("applied")
    assert "no retry" in words
    assert "RequestCanceledException" in words


def test_the_picture_has_two_modes(drawn: dict[str, str]) -> None:
    """The README has one picture for light mode and one for dark mode, with the same words in different colours."""
    readme = README.read_text(encoding="utf-8")
    sources = re.findall(r'prefers-color-scheme: (\w+)\)" srcset="([^"]+)"', readme)

    assert {(theme, path.relative_to(ROOT).as_posix()) for theme, path in PICTURES.items()} == set(sources)
    assert words_of_svg(drawn["light"]) == words_of_svg(drawn["dark"])
    assert all(colours.paper in drawn[theme] for theme, colours in COLOURS.items())


def test_links_of_the_readme_exist() -> None:
    """Files and folders that the README links to exist."""
    readme = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", readme)

    assert len(targets) > 5
    assert [] == [target for target in targets if not (ROOT / target).exists()]


@pytest.mark.long
def test_the_installation_commands_work(tmp_path: Path) -> None:
    """The commands with ``git+URL`` work in a new project with this repository as the URL, and the demo succeeds."""
    lines = [line for block in blocks_of(README) for line in block.text.splitlines() if "git+URL" in line]
    demo, add, install = (shlex.split(line.replace("URL", ROOT.as_uri()), comments=True) for line in lines)
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")

    assert ["uvx", "uv", "pip"] == [demo[0], add[0], install[0]]
    assert run_in(tmp_path, *demo).endswith(VERDICT)
    run_in(tmp_path, *add)
    assert run_in(tmp_path, "uv", "run", "triclinium", "demo").endswith(VERDICT)
    run_in(tmp_path, sys.executable, "-m", "venv", "empty")
    run_in(tmp_path, "empty/bin/python", "-m", *install)
    assert run_in(tmp_path, "empty/bin/python", "-m", "triclinium", "demo").endswith(VERDICT)


PROJECT = """\
[project]
name = "app"
version = "0"
requires-python = ">=3.11"
"""
VERDICT = "all as RFC 0049 demands"


def run_in(folder: Path, *words: str) -> str:
    """Return the output of a command, without the duration at its end."""
    # Remove the variables of the test run, which a reader's environment does not have.
    environment = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    run = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert 0 == run.returncode, run.stderr
    return run.stdout.rstrip().rpartition(" (")[0]
