"""Three distributions: their common version, and their metadata for an index."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import distribution as metadata_of, metadata, version

import pytest

from tests.architecture.policy import DISTRIBUTIONS, ROOT, Distribution
from tests.test_architecture import each_distribution, project_of
from triclinium_core import __version__

pytestmark = pytest.mark.native


def name_of(distribution: Distribution) -> str:
    """Return the name of the distribution, which has hyphens instead of the package's underscores."""
    name: str = project_of(distribution)["name"]
    return name


@each_distribution
def test_all_packages_have_one_version(distribution: Distribution) -> None:
    """Each package has the version of its distribution, which all distributions share."""
    assert __version__ == import_module(distribution.package).__version__
    assert __version__ == version(name_of(distribution))
    assert ["version"] == project_of(distribution)["dynamic"]


@each_distribution
def test_siblings_require_the_same_version(distribution: Distribution) -> None:
    """A distribution requires its siblings in exactly its own version, because no other combination is tested."""
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
def test_metadata_for_an_index(distribution: Distribution) -> None:
    """The metadata have author, licence, summary, keywords, URLs, description and classifiers."""
    reported = metadata(name_of(distribution))
    classifiers = reported.get_all("Classifier", [])

    assert "Apache-2.0" == reported["License-Expression"]
    for field in ("Summary", "Author", "Keywords", "Project-URL", "Description"):
        assert reported[field], field
    assert reported["Requires-Python"].removeprefix(">=") in {each.rpartition(" ")[2] for each in classifiers}
    assert "Typing :: Typed" in classifiers


@each_distribution
def test_the_licence_is_included(distribution: Distribution) -> None:
    """Each wheel includes the licence, even if it is built from its folder alone."""
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert licence == distribution.pyproject.with_name("LICENSE").read_text(encoding="utf-8")
    assert licence == metadata_of(name_of(distribution)).read_text("licenses/LICENSE")


@each_distribution
def test_classifiers_list_the_tested_versions(distribution: Distribution) -> None:
    """The classifiers list exactly the CPython versions that the page on systems lists for Linux."""
    page = (ROOT / "docs" / "explanation" / "systems.md").read_text(encoding="utf-8")
    tested = set(re.findall(r"^\| Linux x86-64, CPython (3\.\d+)", page, re.MULTILINE))
    classifiers = metadata(name_of(distribution)).get_all("Classifier", [])

    assert tested == {version for each in classifiers if (version := each.rpartition(" :: ")[2]).startswith("3.")}


def test_the_command_without_its_script() -> None:
    """``python -m triclinium`` runs the command."""
    run = subprocess.run([sys.executable, "-m", "triclinium", "--version"], capture_output=True, text=True, check=False)

    assert (0, "") == (run.returncode, run.stderr)
    assert run.stdout.rstrip().endswith(__version__)


def test_the_root_refuses_to_be_built() -> None:
    """Every hook of the root's build backend ends the build and names the command that builds the distributions."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    (folder,) = table["backend-path"]
    backend = runpy.run_path(str(ROOT / folder / f"{table['build-backend']}.py"))

    assert [] == table["requires"]
    for hook in ("build_sdist", "build_wheel", "build_editable"):
        with pytest.raises(SystemExit, match="uv build --all-packages"):
            backend[hook]("dist", config_settings=None)


def test_all_distributions_are_tested() -> None:
    """The tests cover all three distributions."""
    assert {"triclinium", "triclinium-core", "triclinium-c"} == set(map(name_of, DISTRIBUTIONS))
