"""Sphinx configuration: ``uv run sphinx-build -W docs docs/_build``. Neither the build nor the pages fetch anything."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

project = "triclinium"
copyright = "the triclinium authors"  # noqa: A001  # Sphinx looks for this name
version = release = installed_version("triclinium")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docs._ext.triclinium_docs",
]
exclude_patterns = ["**/__pycache__", "_build", "_ext", "newsfragments", "howto/examples"]

html_theme = "furo"
html_title = f"triclinium {version}"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_copy_source = False
html_show_sourcelink = False

# The output of programs has no copy button.
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# smithy_core needs Python 3.12; its adapter is documented on any version.
autodoc_mock_imports = [] if find_spec("smithy_core") else ["smithy_core"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
