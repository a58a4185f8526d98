"""Directive ``modules``: for each folder of a package its files, with the first sentence of each docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from docutils import nodes  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from sphinx.util.docutils import SphinxDirective

from docs._ext.markdown import markdown

ROOT = Path(__file__).parents[2]
SENTENCE = re.compile(r".*?[.?!](?=\s|$)", re.DOTALL)


def summary(path: Path) -> str:
    """Return the first sentence of a module's docstring as Markdown; for a folder, that of its ``__init__``."""
    source = path if path.is_file() else path / "__init__.py"
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    found = SENTENCE.match(paragraph)
    return (found[0] if found else paragraph.rstrip(":") + ".").replace("``", "`")


def folders_of(root: Path, *, without: str | None = None) -> Iterator[Path]:
    """Yield a folder and its subfolders that have Python files, by name, except the subfolder ``without``."""
    yield root
    for folder in sorted(root.iterdir()):
        if (folder / "__init__.py").is_file() and folder.name != without:
            yield from folders_of(folder)


def module_tables(root: str, *, without: str | None = None) -> str:
    """Return a section for each folder, with its summary and a table of its modules.

    Args:
        root: path of the first folder from the root of the repository. The headings omit its first part, such as
            ``core``.
        without: subfolder to leave out.
    """
    sections = list[str]()
    for folder in folders_of(ROOT / root, without=without):
        _, *name = folder.relative_to(ROOT).parts
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        sections += [f"### `{'/'.join(name)}`", summary(folder)]
        if modules:
            sections.append(markdown(("file", "contents"), ((f"`{path.name}`", summary(path)) for path in modules)))
    return "\n\n".join(sections)


class Modules(SphinxDirective):
    """Directive that lists the modules below a folder, except those of its subfolder ``without``."""

    required_arguments = 1
    option_spec: ClassVar[Mapping[str, Callable[[str], object]]] = {"without": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return a section for each folder."""
        # Sphinx cannot see that a module was added or changed.
        self.env.note_reread()
        text = module_tables(self.arguments[0], without=self.options.get("without"))
        return self.parse_text_to_nodes(text, allow_section_headings=True)
