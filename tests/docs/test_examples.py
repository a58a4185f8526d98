"""Programs in the documentation run and print the output on their pages."""

from __future__ import annotations

import json
import os
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

from tests.docs.pages import DOCS, EXAMPLES, PAGES, ROOT, blocks_of, exit_statuses
from tests.docs.serving import SERVE, served
from tests.environment import CACHE
from triclinium import PasswordAuthenticator, open_cluster
from triclinium._cli import main
from triclinium_core.tools.vectors.questions import FAMILIES

pytestmark = pytest.mark.native

SECONDS_MAX = 500
"""Seconds after which a program counts as hanging."""

TUTORIAL = DOCS / "tutorial.md"
TUTORIAL_NODE = "couchbase://127.0.0.1:11210"
"""Connection string of the tutorial's programs, in which the tests replace the port."""
README = ROOT / "README.md"
INDEX = DOCS / "index.md"
BATCH = DOCS / "howto" / "explain_many.md"
TESTING = DOCS / "howto" / "test_your_application.md"
README_NODE = '"couchbase://127.0.0.1"'

PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if not path.name.startswith("test_"))
TEST_PROGRAMS = sorted(EXAMPLES.glob("test_*.py"))
SHELL_PROGRAMS = sorted(EXAMPLES.glob("*.sh"))
NEEDS_A_NODE = {"asyncio_driver", "selectors_driver"}
"""Programs that take a connection string on the command line."""
SETS_UP_THE_LOG = {"read_the_story"}
"""Programs that configure logging, which is global state of the process."""
NEEDS_THE_COMPONENT = {"conformance"}
"""Programs that load the component, which ``tests/hosts/component`` runs."""


READMES = sorted(ROOT.glob("*/README.md"))
"""README files of the distributions and of the tests."""


def run(*arguments: str | Path, text: str | None = None) -> str:
    """Return the output of a program, which must succeed without warnings."""
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)

    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout


@pytest.fixture
def node() -> Iterator[str]:
    """Serve a node for the duration of a test, and yield its connection string."""
    with served() as connection_string:
        yield connection_string


@pytest.mark.parametrize(
    "program",
    [path for path in PROGRAMS if path.stem not in NEEDS_A_NODE | SETS_UP_THE_LOG | NEEDS_THE_COMPONENT],
    ids=lambda path: path.stem,
)
def test_an_example_prints_the_output_on_its_page(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program prints the contents of the text file next to it, which the page quotes, and no warnings."""
    runpy.run_path(str(program), run_name="__main__")

    assert (program.with_suffix(".txt").read_text(encoding="utf-8"), "") == capsys.readouterr()


@pytest.mark.parametrize("name", sorted(SETS_UP_THE_LOG | NEEDS_A_NODE))
def test_an_example_in_a_separate_process(name: str, node: str) -> None:
    """A program that configures logging, or connects to a node over TCP, prints the output on its page."""
    program = EXAMPLES / f"{name}.py"
    arguments = [node] if name in NEEDS_A_NODE else []

    assert program.with_suffix(".txt").read_text(encoding="utf-8") == run(program, *arguments)


@pytest.mark.parametrize("name", sorted(NEEDS_A_NODE))
def test_an_example_without_a_node_shows_its_usage(name: str) -> None:
    """Without a connection string, a program that connects to a node prints its usage and exits with status 1."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )

    assert ("", 1) == (done.stdout, done.returncode)
    assert re.fullmatch(rf"usage: python {name}\.py CONNECTION_STRING, such as couchbase://\S+\n", done.stderr)


@pytest.mark.parametrize("program", SHELL_PROGRAMS, ids=lambda path: path.stem)
def test_a_shell_script_prints_its_output(program: Path) -> None:
    """A script that uses the installed command prints the output on its page, and succeeds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment, command = {**os.environ, "PATH": path}, ["sh", str(program)]
    done = subprocess.run(
        command, env=environment, input="", capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )

    expected = program.with_suffix(".txt").read_text(encoding="utf-8")
    assert (expected, "", 0) == (done.stdout, done.stderr, done.returncode)


def test_example_tests_pass() -> None:
    """The example test files pass under pytest."""
    printed = run("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *TEST_PROGRAMS)

    assert TEST_PROGRAMS
    assert " passed" in printed


def test_the_tutorial_prints_its_output(node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every program of the tutorial, run from top to bottom, prints the block that follows it."""
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
def test_the_first_page_program_works(page: Path) -> None:
    """The program on the first page works on a node with the same user and bucket, with another connection string."""
    (program,) = [block.text for block in blocks_of(page) if block.language == "python"]
    with served("--username", "app", "--password", "secret", "--bucket", "travel") as node:
        output = run("-", text=program.replace(README_NODE, f'"{node}"'))

    assert README_NODE in program
    assert re.fullmatch(r"\{'born': 1815\} \d+\n", output)


def test_programs_on_pages_are_typed(tmp_path: Path) -> None:
    """The programs on pages pass strict type checking."""
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
    """Return the arguments of every valid ``triclinium explain`` command on a page or in the README."""
    texts = [page.read_text(encoding="utf-8") for page in [*PAGES, README]]
    found = [re.findall(r"triclinium explain ([a-z]+ [^`\n#]*)", text) for text in texts]
    invalid = {example.removeprefix("triclinium explain ") for _, _, example in exit_statuses()}
    return sorted({arguments.strip() for page in found for arguments in page} - invalid)


@pytest.mark.parametrize("arguments", explanations_shown())
def test_explain_commands_on_pages_work(arguments: str) -> None:
    """Every explain command on a page, except the examples of bad input, succeeds with several lines of output."""
    result = CliRunner().invoke(main, ["explain", *shlex.split(arguments)])

    assert 0 == result.exit_code, result.output
    assert len(result.output.splitlines()) > 3


async def write_ada(said: Mapping[str, str]) -> None:
    """Write a document to the cluster with this connection data."""
    authenticator = PasswordAuthenticator(said["username"], said["password"])
    async with open_cluster(said["connection_string"], authenticator) as cluster:
        await cluster.bucket(said["bucket"]).default_collection().upsert("ada", 1)


def test_the_example_with_faults_logs_as_shown() -> None:
    """The command on the page logs the first write as shown, except for its time and connection."""
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


def test_batch_answers_are_as_shown() -> None:
    """The questions on the page about ``--batch`` cover every kind of question and get the answers below them."""
    questions, answers = [block.text for block in blocks_of(BATCH) if block.language == "json"]
    result = CliRunner().invoke(main, ["explain", "--batch", "-"], input=questions)

    assert (2, answers) == (result.exit_code, result.output)
    assert {(family, ask) for family, asks in FAMILIES.items() for ask in asks} == {
        (question["family"], question["ask"]) for question in map(json.loads, questions.splitlines())
    }


def test_other_pages_have_no_programs() -> None:
    """Pages other than the tutorial and the index have no Python blocks, because no test would run them."""
    others = [page for page in PAGES if page not in {TUTORIAL, INDEX}]

    assert [] == [page.name for page in others for block in blocks_of(page) if block.language == "python"]


def test_every_example_is_quoted() -> None:
    """Each example and its output are quoted on a page."""
    quoted = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = [path for kind in ("py", "txt", "sh", "mjs") for path in EXAMPLES.glob(f"*.{kind}")]

    assert [] == [path.name for path in shown if f"examples/{path.name}" not in quoted]
