"""Properties of all pages, including those of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from tests.docs.pages import DOCS, PAGES, ROOT
from tests.rows import rows

LENGTH_MAX = 120
INSTALLS_BY_NAME = re.compile(r"""(?:pip install|uv add)[^`&]*["' ]triclinium[-a-z]*(?:\[[^]]*\])?(?![-\w[]| @)""")
INSTALLS_WITH_PIP = re.compile(r"pip install ([^`&]*)")
READMES = sorted([*ROOT.glob("*.md"), *ROOT.glob("[!.]*/README.md")])


def prose_of(page: Path) -> Iterator[str]:
    """Yield the lines that can be wrapped: no tables, titles, or indented or fenced blocks."""
    is_fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        is_fenced ^= line.startswith("```")
        if not is_fenced and not line.startswith(("|", "#", "```", "    ")):
            yield line


@rows("page", [*READMES, *PAGES])
def test_prose_fits_a_screen(page: Path) -> None:
    """Lines of prose have at most the length of source lines."""
    assert [] == [line for line in prose_of(page) if len(line) > LENGTH_MAX]


@rows("page", [*READMES, *PAGES])
def test_installation_commands_give_a_source(page: Path) -> None:
    """Every installation command gives a source, because no package index has the packages."""
    assert [] == [line for line in page.read_text(encoding="utf-8").splitlines() if INSTALLS_BY_NAME.search(line)]


def test_the_tutorial_needs_no_compiler() -> None:
    """The tutorial's commands install only the client, and what it requires does not include the C module."""
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    required = [re.split(r"[^\w-]", each)[0] for each in requires("triclinium") or () if "extra ==" not in each]

    assert set() == set(re.findall(r"uv run (?:--\w+ \w+ )?\w+", tutorial)) - {
        "uv run --package triclinium triclinium",
        "uv run --package triclinium python",
    }
    assert "triclinium-core" in required
    assert "triclinium-c" not in required


def lacks_the_core(line: str) -> bool:
    """Return whether a line installs the client with pip, without the core."""
    installed = [
        re.findall(r"trio_client|triclinium-\d|\bcore\b|triclinium_core", words)
        for words in INSTALLS_WITH_PIP.findall(line)
    ]
    return any(names and not {"core", "triclinium_core"} & set(names) for names in installed)


@rows("page", [*READMES, *PAGES])
def test_pip_installs_the_core_with_the_client(page: Path) -> None:
    """No line of a page installs only the client with pip, which would fetch the core by an unregistered name."""
    assert [] == [line for line in page.read_text(encoding="utf-8").splitlines() if lacks_the_core(line)]


@rows(
    "line",
    [
        "pip install ./trio_client",
        "then `pip install triclinium-1.0-py3-none-any.whl`, and `pip install ./core`",
        "uv pip install 'git+URL#subdirectory=trio_client' 'git+URL#subdirectory=c_ext'",
    ],
)
def test_a_line_without_the_core_is_found(line: str) -> None:
    """A line with a pip command that installs the client's folder, wheel or address without the core is found."""
    assert lacks_the_core(line)
