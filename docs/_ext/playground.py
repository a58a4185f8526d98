"""Directive ``playground``: the forms of the playground, and answers that the core gives while the pages are built."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
from docutils import nodes  # type: ignore[import-untyped]
from sphinx.util.docutils import SphinxDirective

from docs._static.playground import answers, cluster, coordinators
from triclinium_core.retry import cassandra
from triclinium_core.testing import FakeNodes
from triclinium_core.testing.fakes.fault_names import FAULTS
from triclinium_core.tools import fleet


class Playground(SphinxDirective):
    """Directive without arguments or content."""

    def run(self) -> list[nodes.Node]:
        """Return the forms and the recorded answers, which are new in every build."""
        self.env.note_reread()
        return [nodes.raw("", page(), format="html")]


def page() -> str:
    """Return the forms and the recorded answers as HTML."""
    known = {"answers": answers, "cluster": cluster, "coordinators": coordinators, "fleet": fleet, "meaning": meaning}
    text = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    return str(jinja2.Template(text, autoescape=True).render(known))


def meaning(fault: str) -> str:
    """Return the first sentence on a fault in the reference."""
    name = re.split(r"\W", re.sub(r"^.*: ", "", fault))[0]
    subject = FAULTS.get(name) or getattr(FakeNodes, name, None) or getattr(cassandra, name)
    return str(subject.__doc__).splitlines()[0].replace("``", "")
