"""Tables of modules: for each folder of a package its files, with the first sentence of each docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from docs._ext.markdown import markdown

PROSE_WIDTH = 120
SENTENCE = re.compile(r".*?[.?!](?=\s|$)", re.DOTALL)


def summary(path: Path) -> str:
    """Return the first sentence of a module's docstring as Markdown; for a folder, that of its ``__init__``."""
    source = path if path.is_file() else path / "__init__.py"
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    found = SENTENCE.match(paragraph)
    return (found[0] if found else paragraph.rstrip(":") + ".").replace("``", "`")


def prose(text: str) -> str:
    """Return a paragraph with lines that fit a screen."""
    return fill(" ".join(text.split()), PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)


def folders_of(root: Path, *, without: str | None = None) -> Iterator[Path]:
    """Yield a folder and its subfolders that have Python files, by name, except the subfolder ``without``."""
    yield root
    for folder in sorted(root.iterdir()):
        if (folder / "__init__.py").is_file() and folder.name != without:
            yield from folders_of(folder)


def module_tables(root: Path, *, base: Path, without: str | None = None) -> str:
    """Return a section for each folder: its name relative to ``base``, its summary, and a table of its modules."""
    sections = list[str]()
    for folder in folders_of(root, without=without):
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        sections += [f"### `{folder.relative_to(base).as_posix()}`", prose(summary(folder))]
        if modules:
            sections.append(markdown(("file", "contents"), ((f"`{path.name}`", summary(path)) for path in modules)))
    return "\n\n".join(sections)
