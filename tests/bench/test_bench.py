"""Benchmark command with little work; the tests do not check its figures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.bytecodes import LAYERS
from tests.bench.report import write_page
from tests.bench.turns import Effort, measure

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "performance.md"
TABLES = {"core: a get, submitted and answered", "core: a retry", "core: in flight"}


@pytest.mark.native
def test_a_part_is_measured(tmp_path: Path) -> None:
    """The command writes the rows to a file and a plot, and the tables to the page that has marks for them."""
    figures, plot, page = tmp_path / "figures.json", tmp_path / "bars.svg", tmp_path / "page.md"
    shutil.copy(PAGE, page)
    options = ["--only", "core", "--rounds", "1", "--scale", "0.001"]
    files = ["--json", str(figures), "--plot", str(plot), "--page", str(page)]
    subprocess.run([sys.executable, "-m", "tests.bench", *options, *files], cwd=ROOT, check=True)
    rows = json.loads(figures.read_bytes())["rows"]

    assert TABLES == {row["table"] for row in rows}
    assert all(row["costs"] for row in rows)
    assert "| 64 at once |" in page.read_text(encoding="utf-8")
    assert plot.read_bytes().startswith(b"<?xml")


def test_layers_exist() -> None:
    """Each layer of the bytecodes of a get has code: its prefix is that of an existing path."""
    assert [] == [prefix for prefix in LAYERS if not list(Path(prefix).parent.glob(f"{Path(prefix).name}*"))]


def test_missing_contenders_are_shown(tmp_path: Path) -> None:
    """A table keeps the column of a contender that is not installed; a page without marks for a table is refused."""
    page = tmp_path / "page.md"
    page.write_text("<!-- figures: machine -->\n<!-- end -->\n<!-- figures: gets -->\n<!-- end -->\n", encoding="utf-8")
    found = list(measure("gets", "100 B", {"ours": lambda: {"bytes": 7.0}, "theirs": None}, Effort(rounds=2)))
    write_page(page, found)

    assert "| bytes | ours | theirs |\n| --- | --- | --- |\n| 100 B | **7** | missing |" in page.read_text(
        encoding="utf-8"
    )
    with pytest.raises(ValueError, match="no place for sets"):
        write_page(page, list(measure("sets", "100 B", {"theirs": None}, Effort(rounds=1))))
