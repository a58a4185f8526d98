"""The cells of the page on notebooks, run in order in a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.docs.pages import DOCS, Block, blocks_of

pytestmark = pytest.mark.native

PAGE = DOCS / "howto" / "jupyter.md"
SECONDS_MAX = 250
"""Seconds after which a kernel counts as hanging."""


class Ran(NamedTuple):
    """Result of a cell."""

    printed: str
    error: str
    """Name of the exception; empty for none."""


Run = Callable[[str], Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Start a kernel for a test, and yield a function that runs a cell."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    manager = KernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"), ip=str(tmp_path / "ipc"))
    assert manager.kernel_spec is not None, "ipykernel is installed"
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel()
    client: BlockingKernelClient = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS_MAX)
        yield lambda cell: result_of(client, cell)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def result_of(client: BlockingKernelClient, cell: str) -> Ran:
    """Run a cell, and return its result."""
    printed: list[str] = []
    errors: list[str] = []

    def collect(message: dict[str, dict[str, str]]) -> None:
        content = message["content"]
        printed.append(content.get("text", ""))
        errors.append(content.get("ename", ""))

    client.execute_interactive(cell, timeout=SECONDS_MAX, output_hook=collect)
    return Ran("".join(printed), "".join(errors))


def cells() -> Iterator[tuple[Block, str]]:
    """Yield the cells of the page, each with the output below it."""
    blocks = [*blocks_of(PAGE), Block("end", "")]
    for block, following in pairwise(blocks):
        if block.language == "ipython":
            yield block, following.text if following.language == "text" else ""


def test_cells_print_what_the_page_shows(run: Run) -> None:
    """Every cell, run from top to bottom, prints the block that follows it, and raises nothing."""
    results = [(run(cell.text), output) for cell, output in cells()]

    assert len(results) > 6
    assert [Ran(output, "") for _, output in results] == [result for result, _ in results]


def test_cells_go_wrong_as_described(run: Run) -> None:
    """A cell that awaits in the wrong event loop raises an exception; ``trio.run`` works with either loop."""
    define = (
        "import asyncio, trio\n"
        "from triclinium.testing import open_fake_cluster\n"
        "async def read():\n"
        "    async with open_fake_cluster() as fake, fake.open_client() as cluster:\n"
        "        print(await cluster.bucket('default').default_collection().get_or_none('ada'))\n"
    )
    steps = [define, "await read()", "trio.run(read)", "%autoawait trio", "await asyncio.sleep(0)", "trio.run(read)"]

    nothing, printed = Ran("", ""), Ran("None\n", "")
    expected = [nothing, Ran("", "RuntimeError"), printed, nothing, Ran("", "TypeError"), printed]
    assert expected == [run(step) for step in steps]
