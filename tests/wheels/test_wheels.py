"""Descriptions of wheels: those of this repository, and faults that the check finds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.architecture.policy import DISTRIBUTIONS
from tests.rows import rows
from tests.wheels import description_of, faults_of
from tests.wheels.__main__ import main

pytestmark = pytest.mark.native

METADATA = "Metadata-Version: 2.4\nName: parts\nVersion: 1.0\n\n"


def wheel_with(folder: Path, description: str) -> Path:
    """Write a wheel with a description, and return its path."""
    wheel = folder / "parts-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("parts-1.0.dist-info/METADATA", METADATA + description)
    return wheel


@rows("readme", [distribution.pyproject.with_name("README.md") for distribution in DISTRIBUTIONS])
def test_readmes_need_no_repository(readme: Path) -> None:
    """The README of each distribution has no relative link and no placeholder."""
    assert [] == faults_of(readme.read_text(encoding="utf-8"))


@rows(
    ("description", "faults"),
    [
        ("see [trio](https://trio.readthedocs.io) and [below](#use)", 0),
        ("see [the core](../core/README.md)", 1),
        ("see [the core]\n\n[the core]: core/README.md", 1),
        ('<img src="docs/picture.svg">', 1),
        ("`uv add 'triclinium @ git+URL#subdirectory=trio_client'`, where `URL` is the address", 2),
        ("", 1),
    ],
)
def test_faults_of_descriptions(description: str, faults: int) -> None:
    """The check reports relative links, placeholders and an empty description, but no absolute link."""
    assert faults == len(faults_of(description))


def test_the_check_reads_the_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reads the description in a wheel, and its exit status is 1 with a fault, 2 without a wheel."""
    good = wheel_with(tmp_path, "# Pärts\n\nAll is here.\n")

    assert "# Pärts\n\nAll is here.\n" == description_of(good)
    assert 0 == main([str(good)])
    assert 1 == main([str(wheel_with(tmp_path, "[more](more.md)\n"))])
    assert "more.md" in capsys.readouterr().out
    assert 2 == main([])
