"""The three distributions: one version, and metadata that an index shows."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution as metadata_of, metadata, version

import pytest

from tests.architecture.policy import DISTRIBUTIONS, ROOT, Distribution
from tests.test_architecture import each_distribution, project_of
from triclinium_core import __version__

pytestmark = pytest.mark.native


def name_of(distribution: Distribution) -> str:
    """Return the name of the distribution, which its package has with an underscore."""
    name: str = project_of(distribution)["name"]
    return name


@each_distribution
def test_one_version(distribution: Distribution) -> None:
    """What a package says of itself is what was built from it, and all three say the same."""
    assert __version__ == import_module(distribution.package).__version__
    assert __version__ == version(name_of(distribution))
    assert ["version"] == project_of(distribution)["dynamic"]


@each_distribution
def test_siblings_are_wanted_in_this_version(distribution: Distribution) -> None:
    """A client of one version beside the core of another is nothing that anybody has tested."""
    project = project_of(distribution)
    extras = project.get("optional-dependencies", {}).values()
    siblings = [
        requirement
        for requirement in (*project["dependencies"], *(each for extra in extras for each in extra))
        if requirement.startswith("triclinium")
    ]

    assert all(requirement.endswith(f"=={__version__}") for requirement in siblings)
    assert len(siblings) == (2 if distribution.package == "triclinium" else 0)


@each_distribution
def test_what_an_index_shows(distribution: Distribution) -> None:
    """Who made it, under which licence, for whom, in which words it is found, and where its specification stands."""
    told = metadata(name_of(distribution))
    classifiers = told.get_all("Classifier", [])

    assert "Apache-2.0" == told["License-Expression"]
    for field in ("Summary", "Author", "Keywords", "Project-URL", "Description"):
        assert told[field], field
    assert told["Requires-Python"].removeprefix(">=") in {each.rpartition(" ")[2] for each in classifiers}
    assert "Typing :: Typed" in classifiers


@each_distribution
def test_the_licence_comes_along(distribution: Distribution) -> None:
    """Each wheel has the licence, also one that is built from its folder alone, and all have the same."""
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert licence == distribution.pyproject.with_name("LICENSE").read_text(encoding="utf-8")
    assert licence == metadata_of(name_of(distribution)).read_text("licenses/LICENSE")


def test_the_command_without_its_script() -> None:
    """``python -m triclinium`` is the same command."""
    run = subprocess.run([sys.executable, "-m", "triclinium", "--version"], capture_output=True, text=True, check=False)

    assert (0, "") == (run.returncode, run.stderr)
    assert run.stdout.rstrip().endswith(__version__)


def test_no_distribution_is_left_out() -> None:
    """There are three."""
    assert {"triclinium", "triclinium-core", "triclinium-c"} == set(map(name_of, DISTRIBUTIONS))
