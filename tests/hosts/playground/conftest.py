"""Pages with the playground, their server, and a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import CACHE, missing
from tests.hosts.folders import ROOT
from tests.hosts.installing import install_with_npm
from tests.hosts.playground.browser import Browser
from tests.live.line_process import LineProcess
from triclinium._cli.docs.pages_server import HOST, pages_server

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def playwright() -> Path:
    """Return the folder of playwright-core, which is kept in the cache."""
    install_with_npm("playwright-core", HERE / "chromium", CACHE / "hosts" / "playwright")
    return CACHE / "hosts" / "playwright" / "node_modules" / "playwright-core"


@pytest.fixture(scope="session")
def bare_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page of the playground, built like the project's pages, without Pyodide."""
    sources, pages = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("bare")
    shutil.copy(ROOT / "docs" / "playground.md", sources)
    (sources / "index.md").write_text("# Pages\n\n```{toctree}\nplayground\n```\n", encoding="utf-8")
    command = (sys.executable, "-m", "sphinx", "-q", "-c", str(ROOT / "docs"), str(sources), str(pages))
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return pages


@pytest.fixture(scope="session")
def pages(bare_pages: Path, assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page of the playground, and with Pyodide."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(bare_pages, folder, dirs_exist_ok=True)
    shutil.copytree(assets, folder / "_static" / "assets")
    return folder


def served(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield the address of the playground."""
    with pages_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_address[1]}/playground.html"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def address(pages: Path) -> Iterator[str]:
    """Yield the address of the playground."""
    yield from served(pages)


@pytest.fixture(scope="session")
def bare_address(bare_pages: Path) -> Iterator[str]:
    """Yield the address of a playground without Pyodide."""
    yield from served(bare_pages)


@pytest.fixture(scope="session")
def chromium(node: str, playwright: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProcess]:
    """Yield the process that drives Chromium."""
    program = shutil.which("chromium") or missing("chromium", "install Debian's package chromium")
    profile = tmp_path_factory.mktemp("profile")
    with LineProcess([node, str(HERE / "chromium" / "browser.mjs"), str(playwright), program, str(profile)]) as process:
        yield process


@pytest.fixture
def browser(chromium: LineProcess) -> Browser:
    """Return a browser without a page."""
    return Browser(chromium)
