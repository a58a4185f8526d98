"""Sentences of files and pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import sentences as module
from tests.prose.sampler import DRAWN_IN_PART, PARTS, drawn
from tests.prose.sentences import Prose, prose_of, sentences, tracked_files
from tests.prose.sieve import PHRASES, Phrase, findings
from tests.rows import rows

pytestmark = pytest.mark.native

SOURCE = '''"""A module of examples."""

LIMIT = 3  # number of attempts
"""Maximum number of attempts."""


def check(value: int) -> None:
    """Check a value."""
    match value:
        case _:
            raise ValueError(f"value={value} must be at most {LIMIT}")


def test_it() -> None:
    """A large value is refused."""
'''


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the module takes for the root of the project."""
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    return tmp_path


def test_a_source_has_docstrings_comments_and_messages(root: Path) -> None:
    """The docstring of a test function has the kind ``test``; fields of f-strings are replaced."""
    path = root / "tests" / "test_example.py"
    path.write_text(SOURCE)

    assert [
        (1, "docstring", "A module of examples."),
        (3, "comment", "number of attempts"),
        (4, "docstring", "Maximum number of attempts."),
        (8, "docstring", "Check a value."),
        (11, "error", "value={...} must be at most {...}"),
        (15, "test", "A large value is refused."),
    ] == sorted((prose.line, prose.kind, prose.text) for prose in prose_of(path))


def test_a_page_has_paragraphs_without_programs(root: Path) -> None:
    """A fenced block is not prose, and ends the paragraph before it."""
    path = root / "page.md"
    path.write_text("# Title\n\nOne line\nand another.\n```python\nprint(1)\n```\nThe end.\n")

    assert ["# Title", "One line\nand another.", "The end."] == [prose.text for prose in prose_of(path)]


def test_sentences_end_at_full_stops_and_cells() -> None:
    """A sentence ends at a full stop or with its table cell; short texts and headings are left out."""
    text = (
        "| a name | The first sentence is here. The second one follows. |\n\nArgs:\n    size: number of bytes sent.\n"
    )

    assert ["The first sentence is here.", "The second one follows.", "size: number of bytes sent."] == [
        *sentences(Prose("page.md", 1, "page", text))
    ]


def test_a_commit_determines_its_sample() -> None:
    """The same hash draws the same sentences, ten from each part; another hash draws others."""
    files = tracked_files(".md") + tracked_files(".py")[::20]
    sample = [*drawn("a" * 40, files)]

    assert sample == [*drawn("a" * 40, files)]
    assert sample != [*drawn("b" * 40, files)]
    assert dict.fromkeys(PARTS, DRAWN_IN_PART) == {part: sum(each.part == part for each in sample) for part in PARTS}


@rows(("phrase", "example"), [(phrase, example) for phrase in PHRASES for example in phrase.examples])
def test_the_sieve_finds_each_example(phrase: Phrase, example: str) -> None:
    """Each example of a phrase matches the pattern of the phrase."""
    assert phrase.pattern.search(example)


def test_a_finding_has_its_place(root: Path) -> None:
    """A phrase on a page is found with its line, its name and its replacement."""
    path = root / "page.md"
    path.write_text(f"A title.\n\n{PHRASES[1].examples[0]}\n")

    (finding,) = findings([path])

    assert PHRASES[1] is finding.phrase
    assert str(finding).startswith(f"page.md:3: {PHRASES[1].name}: ")
    assert PHRASES[1].instead in str(finding)


def test_the_sieve_passes_plain_sentences(root: Path) -> None:
    """Questions may start with a question word, and words that contain a phrase are other words."""
    path = root / "page.md"
    path.write_text(
        "What does a retry cost?\n\nThe node reports the state of each connection. Silent nodes time out.\n"
    )

    assert [] == [*findings([path])]
