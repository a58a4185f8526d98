"""``triclinium docs``: building, serving, and errors."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.docs import docs_command
from triclinium._cli.docs.pages_server import HOST

pytestmark = pytest.mark.native

BUILD = """\
import pathlib, sys
pages = pathlib.Path(sys.argv[-1])
pages.mkdir(parents=True, exist_ok=True)
(pages / "index.html").write_text("built")
"""
"""Program that replaces Sphinx."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the command uses as its checkout, with short programs."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "core" / "hosts" / "js").mkdir(parents=True)
    (tmp_path / "docs" / "conf.py").touch()
    (tmp_path / "docs" / "sphinx.py").write_text(BUILD, encoding="utf-8")
    (tmp_path / "core" / "hosts" / "js" / "assets.py").write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[1]).mkdir(parents=True)\nprint('collected')", encoding="utf-8"
    )
    monkeypatch.setattr(docs_command, "CHECKOUT", tmp_path)
    # The folder has a module with the name of Sphinx, which the interpreter of the command finds first.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "docs"))
    monkeypatch.setattr(signal, "signal", lambda number, action: None)
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", interrupted(lambda address: None))
    return tmp_path


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["docs", *arguments])


def interrupted(visit: Callable[[str], None]) -> Callable[[ThreadingHTTPServer], None]:
    """Return a replacement for ``serve_forever`` that calls ``visit`` and then raises KeyboardInterrupt."""

    def serve(server: ThreadingHTTPServer) -> None:
        visit(f"http://{HOST}:{server.server_address[1]}/")
        raise KeyboardInterrupt

    return serve


def test_pages_are_built_and_served(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command builds the pages and collects Pyodide, prints the addresses, and ends with 0 after Control-C."""
    visited: list[str] = []
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", interrupted(visited.append))

    result = run()

    (address,) = visited
    assert 0 == result.exit_code
    assert f"Pages: {address}\nPlayground: {address}playground.html\nControl-C ends the command.\n" == result.stdout
    assert "built" == (checkout / "docs" / "_build" / "index.html").read_text(encoding="utf-8")
    assert (checkout / "docs" / "_build" / "_static" / "assets").is_dir()


@pytest.mark.parametrize(("starts", "expected"), [(True, ""), (False, "No browser can be started")])
def test_open_starts_a_browser(checkout: Path, monkeypatch: pytest.MonkeyPatch, starts: bool, expected: str) -> None:
    """``--open`` opens the playground; if no browser starts, the command goes on and reports it."""
    opened: list[str] = []

    def open_page(address: str) -> bool:
        opened.append(address)
        return starts

    monkeypatch.setattr(webbrowser, "open", open_page)

    result = run("--open")

    assert 0 == result.exit_code
    assert [result.stdout.split("Playground: ")[1].splitlines()[0]] == opened
    assert expected in result.stderr


def test_missing_assets_leave_recorded_answers(checkout: Path) -> None:
    """If Pyodide cannot be collected, the command reports it and serves the pages."""
    (checkout / "core" / "hosts" / "js" / "assets.py").write_text("raise SystemExit(1)", encoding="utf-8")

    result = run()

    assert 0 == result.exit_code
    assert "The playground shows only recorded answers" in result.stderr


def test_failed_build_ends_the_command(checkout: Path) -> None:
    """If Sphinx fails, the command ends with 1 and the next step, and serves nothing."""
    (checkout / "docs" / "sphinx.py").write_text("raise SystemExit(2)", encoding="utf-8")

    result = run()

    assert_refused(result, "the pages cannot be built", "uv sync", status=1)


def test_installed_package_has_no_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a checkout, the command ends with 1, and names the missing file and the next step."""
    monkeypatch.setattr(docs_command, "CHECKOUT", tmp_path)

    result = run()

    words = f"{tmp_path} is not a checkout of the sources: docs/conf.py is missing; clone the repository"
    assert_refused(result, words, status=1)


def test_used_port_ends_the_command(checkout: Path) -> None:
    """A port that another program uses ends the command with 1 before the build, and the line names the port."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]

        result = run("--port", str(port))

    assert_refused(result, f"--port {port} cannot be used: ", status=1)
    assert not (checkout / "docs" / "_build").exists()


def test_interrupted_build_ends_the_command(checkout: Path) -> None:
    """Control-C during the build ends the command with 0, and nothing is served."""
    (checkout / "docs" / "sphinx.py").write_text(
        "import os, signal\nos.kill(os.getppid(), signal.SIGINT)", encoding="utf-8"
    )

    result = run()

    assert (0, "") == (result.exit_code, result.stdout)


@pytest.mark.parametrize(
    "arguments", [("--port", "-1"), ("--port", "x"), ("--port", "65536"), ("pages",), ("--quick",)]
)
def test_invalid_options_have_status_2(arguments: tuple[str, ...]) -> None:
    """An invalid option or argument ends the command with status 2 and one line."""
    assert_refused(run(*arguments))


def test_sigterm_ends_the_process(checkout: Path) -> None:
    """SIGTERM ends the command with 0, after it has served a page."""
    program = (
        "import pathlib, sys; from triclinium._cli import main; from triclinium._cli.docs import docs_command; "
        "docs_command.CHECKOUT = pathlib.Path(sys.argv.pop(1)); main()"
    )
    command = [sys.executable, "-c", program, str(checkout), "docs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("Pages: http://").strip("/\n")
        connection = HTTPConnection(address)
        connection.request("GET", "/")

        assert b"built" == connection.getresponse().read()

        connection.close()
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait()
