"""Sphinx directives that show generated content.

``{generated} NAME`` is a table of ``tables``, ``{state-diagram} NAME`` and ``{state-table} NAME`` show machines of
``machines``, ``{modules} FOLDER`` lists modules, ``{cli-help}`` shows the help of the commands, ``{newsfragments}`` the
unreleased changes, and ``{playground}`` the forms of the playground. The tables of the RFC map become ``records``.
Mentions of decisions, RFCs and names of trio become links.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click
from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from docs._ext import (
    entries,
    links,
    machines,
    markdown,
    modules,
    options,
    playground,
    records,
    short_code,
    state_diagram,
    tables,
)
from docs._ext.machines import MACHINES
from docs._ext.state_diagram import draw_svg
from docs._ext.tables import TABLES, state_table
from triclinium._cli import main
from triclinium._cli.explain.explain_command import FAMILIES, ExplainCommand, family_command

WIDTH = 88
"""Width of the help texts in columns."""

KINDS = {
    "breaking": "Breaking changes",
    "feature": "Features",
    "bugfix": "Bug fixes",
    "perf": "Performance",
    "doc": "Documentation",
}
"""Kinds of changes in the release notes, as configured for towncrier in pyproject.toml."""


class _Named(SphinxDirective):
    """Directive with one argument, the name of the content."""

    required_arguments = 1

    @property
    def name_to_show(self) -> str:
        """Argument of the directive. Reading it also registers the modules on which the content depends."""
        for module in (machines, markdown, options, state_diagram, tables, *tables.SOURCES):
            self.env.note_dependency(inspect.getsourcefile(module) or "")
        return str(self.arguments[0])


class Generated(_Named):
    """Directive that shows a generated table."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table."""
        return self.parse_text_to_nodes(TABLES[self.name_to_show]())


class StateTable(_Named):
    """Directive that shows the transition table of a machine."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table."""
        return self.parse_text_to_nodes(state_table(self.name_to_show))


class StateDiagram(_Named):
    """Directive that shows a machine's transition table as a drawing."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing; builders without HTML leave it out."""
        machine = MACHINES[self.name_to_show]
        return [nodes.raw("", f'<p class="drawing">{draw_svg(machine.table, machine.layout)}</p>', format="html")]


class CliHelp(SphinxDirective):
    """Directive that shows the help texts of all commands."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        parts: list[nodes.Node] = []
        group = click.Context(main, info_name="triclinium", **main.context_settings)
        for name, command in self._commands(group):
            text = command.get_help(
                click.Context(command, group, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
            )
            anchor = f"triclinium-{name}".replace(" ", "-")
            section = nodes.section("", nodes.title("", f"triclinium {name}"), ids=[anchor])
            section += nodes.literal_block(text, text, language="text")
            parts.append(section)
        return parts

    def _commands(self, group: click.Context) -> Iterator[tuple[str, click.Command]]:
        for name in main.list_commands(group):
            command = main.get_command(group, name)
            assert command is not None, f"{name} is listed, so it is there"
            yield name, command
            if isinstance(command, ExplainCommand):
                for family in FAMILIES:
                    yield f"{name} {family}", family_command(family)


class Newsfragments(SphinxDirective):
    """Directive that shows the merged changes that no release contains."""

    def run(self) -> list[nodes.Node]:
        """Return a section with one list per kind of change; nothing if there are no fragments."""
        folder = Path(self.env.srcdir) / "newsfragments"
        self.env.note_dependency(str(folder))
        lists: list[str] = []
        for kind, title in KINDS.items():
            fragments = sorted(folder.glob(f"*.{kind}.md"))
            if fragments:
                lists += [f"**{title}**", *(f"- {path.read_text(encoding='utf-8').strip()}" for path in fragments)]
        return self.parse_text_to_nodes(
            "\n\n".join(["## Not released yet", *lists]) if lists else "", allow_section_headings=True
        )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives, the transforms and the event handlers."""
    app.add_directive("generated", Generated)
    app.add_directive("state-table", StateTable)
    app.add_directive("state-diagram", StateDiagram)
    app.add_directive("modules", modules.Modules)
    app.add_directive("cli-help", CliHelp)
    app.add_directive("newsfragments", Newsfragments)
    app.add_directive("playground", playground.Playground)
    app.add_transform(records.Records)
    app.add_transform(links.Links)
    app.add_transform(short_code.ShortCode)
    app.add_transform(entries.WithoutObject)
    app.connect("missing-reference", links.resolve_trio)
    # Docstrings must be prepared before napoleon parses them; napoleon has priority 500.
    app.connect("autodoc-process-docstring", entries.prepare_docstring, priority=100)
    app.connect("autodoc-process-signature", entries.prepare_signature)
    app.connect("autodoc-process-bases", entries.prepare_bases)
    app.connect("autodoc-skip-member", entries.keep_member)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
