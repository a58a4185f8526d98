"""Whatever the documentation shows as a program runs, and prints what the page says it prints."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from tests.docs.pages import DOCS, EXAMPLES, PAGES, ROOT, blocks_of
from tests.docs.serving import SERVE, served
from tests.environment import CACHE
from triclinium import PasswordAuthenticator, open_cluster
from triclinium._cli import main
from triclinium_core.tools.vectors.questions import FAMILIES

pytestmark = pytest.mark.native

SECONDS_MAX = 60
"""A program that takes longer hangs."""

TUTORIAL = DOCS / "tutorial.md"
TUTORIAL_NODE = "couchbase://127.0.0.1:11210"
"""What the programs of the tutorial connect to; the tests put another port in its place."""
README = ROOT / "README.md"
INDEX = DOCS / "index.md"
BATCH = DOCS / "howto" / "explain_many.md"
TESTING = DOCS / "howto" / "test_your_application.md"
README_NODE = '"couchbase://127.0.0.1"'

PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if not path.name.startswith("test_"))
TEST_PROGRAMS = sorted(EXAMPLES.glob("test_*.py"))
NEEDS_A_NODE = {"asyncio_driver"}
"""Programs that are told on the command line which node to talk to."""
SETS_UP_THE_LOG = {"read_the_story"}
"""Programs that change what all of a process share."""


READMES = sorted(ROOT.glob("*/README.md"))
"""Those of the distributions, and of the tests."""


def run(*arguments: str | Path, text: str | None = None) -> str:
    """Return what a program prints; it must not warn of anything, and succeed."""
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)

    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout


@pytest.fixture
def node() -> Iterator[str]:
    """Serve a node for the length of a test, and return its connection string."""
    with served() as connection_string:
        yield connection_string


@pytest.mark.parametrize(
    "program",
    [path for path in PROGRAMS if path.stem not in NEEDS_A_NODE | SETS_UP_THE_LOG],
    ids=lambda path: path.stem,
)
def test_prints_what_its_page_shows(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file beside the program, which the page quotes, is what it prints; it warns of nothing."""
    runpy.run_path(str(program), run_name="__main__")

    assert (program.with_suffix(".txt").read_text(encoding="utf-8"), "") == capsys.readouterr()


@pytest.mark.parametrize("name", sorted(SETS_UP_THE_LOG))
def test_prints_what_its_page_shows_in_a_process_of_its_own(name: str) -> None:
    """The same for a program that would change what others log."""
    program = EXAMPLES / f"{name}.py"

    assert program.with_suffix(".txt").read_text(encoding="utf-8") == run(program)


@pytest.mark.parametrize("name", sorted(NEEDS_A_NODE))
def test_prints_what_its_page_shows_when_there_is_a_node(name: str, node: str) -> None:
    """The same for a program that talks to a node over TCP."""
    program = EXAMPLES / f"{name}.py"

    assert program.with_suffix(".txt").read_text(encoding="utf-8") == run(program, node)


@pytest.mark.parametrize("name", sorted(NEEDS_A_NODE))
def test_says_what_it_needs(name: str) -> None:
    """Such a program tells how to call it where it is called without a node."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )

    assert ("", 1) == (done.stdout, done.returncode)
    assert re.fullmatch(rf"usage: python {name}\.py CONNECTION_STRING, such as couchbase://\S+\n", done.stderr)


def test_tests_that_are_shown_pass() -> None:
    """Files of tests pass under pytest."""
    printed = run("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *TEST_PROGRAMS)

    assert TEST_PROGRAMS
    assert " passed" in printed


def test_the_tutorial_does_what_it_says(node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From top to bottom, every program of the tutorial prints the block that follows it."""
    blocks = [block for block in blocks_of(TUTORIAL) if block.language in {"python", "text"}]
    programs, outputs = blocks[::2], blocks[1::2]

    assert [("python", "text")] * len(programs) == [
        (program.language, output.language) for program, output in zip(programs, outputs, strict=True)
    ]
    assert len(programs) > 5
    for program, output in zip(programs, outputs, strict=True):
        assert TUTORIAL_NODE in program.text
        copied = tmp_path / "copied.py"
        copied.write_text(program.text.replace(TUTORIAL_NODE, node), encoding="utf-8")
        runpy.run_path(str(copied), run_name="__main__")
        assert (output.text, "") == capsys.readouterr()


@pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.stem)
def test_the_first_page_works(page: Path) -> None:
    """Its program runs as it stands, where there is such a user and such a bucket."""
    (program,) = [block.text for block in blocks_of(page) if block.language == "python"]
    with served("--username", "app", "--password", "secret", "--bucket", "travel") as node:
        output = run("-", text=program.replace(README_NODE, f'"{node}"'))

    assert README_NODE in program
    assert re.fullmatch(r"\{'born': 1815\} \d+\n", output)


def test_programs_on_pages_are_typed(tmp_path: Path) -> None:
    """A type checker at its strictest has nothing to say to those who copy them."""
    pages = [TUTORIAL, README, INDEX, *READMES]
    programs = [block.text for page in pages for block in blocks_of(page) if block.language == "python"]
    paths = [tmp_path / f"program_{number}.py" for number in range(len(programs))]
    for path, text in zip(paths, programs, strict=True):
        path.write_text(text, encoding="utf-8")

    assert len(programs) > 8
    assert "Success" in run(
        "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={CACHE / 'mypy_of_pages'}", *paths
    )


def explanations_shown() -> list[str]:
    """Return the arguments of every ``triclinium explain`` that a page, or the README, tells its readers to run."""
    texts = [page.read_text(encoding="utf-8") for page in [*PAGES, README]]
    found = [re.findall(r"triclinium explain ([a-z]+ [^`\n#]*)", text) for text in texts]
    return sorted({arguments.strip() for page in found for arguments in page})


@pytest.mark.parametrize("arguments", explanations_shown())
def test_explanations_that_are_shown_explain(arguments: str) -> None:
    """The command accepts them, and says something."""
    result = CliRunner().invoke(main, ["explain", *shlex.split(arguments)])

    assert 0 == result.exit_code, result.output
    assert len(result.output.splitlines()) > 3


async def write_ada(said: Mapping[str, str]) -> None:
    """Write a document to the cluster that says this of itself."""
    authenticator = PasswordAuthenticator(said["username"], said["password"])
    async with open_cluster(said["connection_string"], authenticator) as cluster:
        await cluster.bucket(said["bucket"]).default_collection().upsert("ada", 1)


def test_the_cluster_with_faults_logs_what_its_page_shows() -> None:
    """The command of the page begins, and the first write to it is logged as below, at its own time and connection."""
    serve, *_ = [block.text for block in blocks_of(TESTING) if block.text.startswith("triclinium serve")]
    (shown,) = [json.loads(block.text) for block in blocks_of(TESTING) if block.language == "json"]
    command = [sys.executable, "-c", SERVE, *shlex.split(serve.replace("\\\n", " "))[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            trio.run(write_ada, json.loads(server.stdout.readline()))
        finally:
            server.terminate()
        events = [json.loads(line) for line in server.stdout]

    logged, *_ = [event for event in events if event.get("command") == shown["command"]]
    differs = {"seconds", "connection"}
    assert shown.keys() == logged.keys()
    assert {key: shown[key] for key in shown.keys() - differs} == {key: logged[key] for key in logged.keys() - differs}


def test_many_explanations_are_what_the_page_shows() -> None:
    """The questions of the page on ``--batch`` have the answers beneath them; the last is one that nobody understands."""
    questions, answers = [block.text for block in blocks_of(BATCH) if block.language == "json"]
    result = CliRunner().invoke(main, ["explain", "--batch", "-"], input=questions)

    assert (2, answers) == (result.exit_code, result.output)
    assert {(family, ask) for family, asks in FAMILIES.items() for ask in asks} == {
        (question["family"], question["ask"]) for question in map(json.loads, questions.splitlines())
    }


def test_nothing_else_looks_like_a_program() -> None:
    """Other pages quote files; a Python block of their own would be run by nobody."""
    found = [
        (page.name, block.text)
        for page in PAGES
        if page not in {TUTORIAL, INDEX}
        for block in blocks_of(page)
        if block.language == "python"
    ]

    assert [] == found


def test_every_program_is_quoted() -> None:
    """Each example, and what it prints, stands on a page."""
    quoted = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.txt")]

    assert [] == [path.name for path in shown if f"examples/{path.name}" not in quoted]
