"""Sentences of the project with their places and kinds."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[2]

Kind = Literal["docstring", "comment", "error", "test", "page"]
"""``error`` is the text of a ``raise`` or a log line, ``test`` the docstring of a test function."""

LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "log"})

WORDS_MIN = 4
"""Minimum number of words in a sentence. Shorter texts are names and headings."""

SKIPPED = frozenset({"docs/internals/glossary.md", "docs/internals/map.md", "docs/rfc_map.md"})
"""Pages of names, of docstrings from elsewhere, and of words to avoid."""


class Prose(NamedTuple):
    """Text in a file."""

    path: str
    line: int
    kind: Kind
    text: str


def tracked_files(*suffixes: str) -> list[Path]:
    """Return the files in git with one of ``suffixes``, sorted."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(ROOT / name for name in listed.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file())


def prose_of(path: Path) -> Iterator[Prose]:
    """Yield the docstrings, comments and messages of a Python file, or the paragraphs of a page."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        if name not in SKIPPED:
            yield from _of_page(name, text)
    else:
        yield from _of_source(name, text)


def sentences(prose: Prose) -> Iterator[str]:
    """Yield the sentences of a text: each paragraph, table cell, and entry of a list or section on its own."""
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\w+: ))|\s+\|\s+", prose.text):
        joined = " ".join(part.split())
        found = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"])", joined)
        yield from (each for each in found if len(each.split()) >= WORDS_MIN and not each.startswith("#"))


def _of_page(name: str, text: str) -> Iterator[Prose]:
    is_program = False
    paragraph: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        is_fence = line.startswith(("```", ":::"))
        if is_fence:
            is_program = not is_program
        if is_program or is_fence or not line.strip():
            if paragraph:
                yield Prose(name, number - len(paragraph), "page", "\n".join(paragraph))
            paragraph = []
        else:
            paragraph.append(line)


def _of_source(name: str, text: str) -> Iterator[Prose]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for statement in body:
                if isinstance(statement, ast.Expr) and _text_of(statement.value) is not None:
                    is_test = name.startswith("tests/") and str(getattr(node, "name", "")).startswith("test_")
                    lines = _text_of(statement.value) or ""
                    yield Prose(name, statement.lineno, "test" if is_test else "docstring", lines)
        for message in _messages_of(node):
            yield Prose(name, message.lineno, "error", _text_of(message) or "")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "# type:", "# noqa", "# fmt:")):
            yield Prose(name, token.start[0], "comment", token.string.lstrip("# "))


def _messages_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts of a ``raise`` statement or a call of a logger."""
    call: ast.AST | None = None
    if isinstance(node, ast.Raise):
        call = node.exc
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS:
        call = node
    if isinstance(call, ast.Call):
        yield from (each for each in call.args if " " in (_text_of(each) or ""))


def _text_of(node: ast.expr) -> str | None:
    """Return the text of a string or an f-string, whose fields become ``{...}``; None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{...}" for part in node.values)  # type: ignore[misc]
    return None
