"""``triclinium docs``: the command, its options, and the programs that build the pages."""

from __future__ import annotations

import signal
import subprocess
import sys
import webbrowser
from pathlib import Path
from types import FrameType

import click

from triclinium._cli._input import WholeNumber
from triclinium._cli.docs.pages_server import HOST, pages_server

CHECKOUT = Path(__file__).parents[4]
"""Root of the sources, if this file is in a checkout."""
SOURCES = (Path("docs/conf.py"), Path("core/hosts/js/assets.py"))
"""Files that only a checkout has."""
PAGES = Path("docs/_build")
"""Folder of the built pages."""

STDERR = 2
"""Descriptor of standard error."""

NO_ASSETS = (
    "The playground shows only recorded answers: it lacks Pyodide, which npm and uv provide. See the error above."
)


@click.command(name="docs", short_help="Build these pages and serve them, with the playground.")
@click.option(
    "--port", type=WholeNumber(0, 0xFFFF), metavar="PORT", default=0, help="Port to listen on. 0 picks a free port."
)
@click.option("--open", "opens", is_flag=True, help="Open the playground in the browser.")
def docs(*, port: int, opens: bool) -> None:
    """Build the pages of the documentation, and serve them on 127.0.0.1 until Control-C.

    The command runs in a checkout of the sources, and builds into docs/_build what is missing or outdated. The first
    build takes a minute or two. Without npm, or without a network when its cache is empty, the playground shows only
    recorded answers.

    Exit status: 0 after Control-C or SIGTERM; 1 outside a checkout, if the pages cannot be built, or if the port cannot
    be used; 2 if an option is invalid.
    """
    try:
        # Take the port before the build, which may take minutes.
        server = pages_server(CHECKOUT / PAGES, port)
    except OSError as error:
        raise click.ClickException(
            f"--port {port} cannot be used: {error.strerror or error}; choose another, or 0 for a free port"
        ) from error
    signal.signal(signal.SIGTERM, _interrupt)
    with server:
        address = f"http://{HOST}:{server.server_address[1]}/"
        try:
            build(CHECKOUT)
            click.echo(f"Pages: {address}\nPlayground: {address}playground.html\nControl-C ends the command.")
            if opens and not webbrowser.open(f"{address}playground.html"):
                click.echo("No browser can be started: open the address above.", err=True)
            server.serve_forever()
        except KeyboardInterrupt:
            return


def build(checkout: Path) -> None:
    """Build what is missing or outdated.

    Raises:
        click.ClickException: ``checkout`` is not a checkout, or Sphinx fails.
    """
    missing = [path for path in SOURCES if not (checkout / path).is_file()]
    if missing:
        raise click.ClickException(
            f"{checkout} is not a checkout of the sources: {missing[0]} is missing; clone the repository, and run "
            "uv run triclinium docs in it"
        )
    pages = checkout / PAGES
    if _run("-m", "sphinx", "-q", str(checkout / "docs"), str(pages)):
        raise click.ClickException(
            "the pages cannot be built, for the reason above; if Sphinx is missing, run uv sync --all-packages "
            "--all-extras"
        )
    if _run(str(checkout / SOURCES[1]), str(pages / "_static" / "assets")):
        click.echo(NO_ASSETS, err=True)


def _run(*arguments: str) -> int:
    """Run a Python program, and return its exit status. Its output goes to standard error."""
    # This module chooses the program and its arguments.
    return subprocess.run([sys.executable, *arguments], stdout=STDERR, check=False).returncode  # noqa: S603


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
