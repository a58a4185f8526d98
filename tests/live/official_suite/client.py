"""Official client of one version in a virtual environment, and its tests from a checkout."""

from __future__ import annotations

import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("couchbase", "acouchbase", "txcouchbase")
"""Packages of the official client; each has a folder ``tests`` in the checkout."""

REPORT_MODULE = "triclinium_official_report"
"""Name of our pytest plugin inside the environment. It must differ from the names of the client's tests."""

_TOOLS = ("autopep8", "pre-commit")
"""Development requirements of the checkout that its tests do not use."""


class CannotRun(Exception):
    """Exception for a checkout or an environment that cannot run the tests; the text has the next step."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """Checkout of the sources of the official Python client."""

    path: Path

    def __post_init__(self) -> None:
        for needed in ("conftest.py", "tests/couchbase_config.py", "couchbase/tests", "dev_requirements.txt"):
            if not (self.path / needed).exists():
                raise CannotRun(f"{self.path} has no {needed}; name a checkout of couchbase/couchbase-python-client")

    @property
    def commit(self) -> str:
        """Commit of the checkout."""
        run = subprocess.run(["git", "-C", self.path, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        if run.returncode:
            raise CannotRun(f"{self.path} has no commit: {run.stderr.strip()}; clone the repository with git")
        return run.stdout.strip()

    @property
    def files(self) -> list[str]:
        """Paths of all test files, relative to the checkout."""
        found = (path for package in PACKAGES for path in (self.path / package / "tests").rglob("*_t.py"))
        return sorted(str(path.relative_to(self.path)) for path in found)

    def requirements(self) -> list[str]:
        """Return the packages that the tests need, in addition to the client."""
        lines = (self.path / "dev_requirements.txt").read_text(encoding="utf-8").split()
        # Twisted imports setuptools on some versions of Python, which no longer include it.
        return [*(line for line in lines if not line.startswith(_TOOLS)), "setuptools"]


def prepare_environment(folder: Path, version: str, checkout: Checkout) -> Path:
    """Install a version of the client with the requirements of its tests, unless ``folder`` has it.

    Return the path of its Python. Raise CannotRun if pip fails.
    """
    python = folder / "bin" / "python"
    wanted = [f"couchbase=={version}", *checkout.requirements()]
    stamp = folder / "requirements.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8").split("\n") == wanted:
        return python
    venv.create(folder, clear=True, with_pip=True)
    run = subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=False)
    if run.returncode:
        raise CannotRun(f"pip cannot install {' '.join(wanted)}; pass --python with an interpreter that has them")
    stamp.write_text("\n".join(wanted), encoding="utf-8")
    return python


def version_of(python: Path) -> str:
    """Return the version of the client that an interpreter imports; raise CannotRun if it has none."""
    code = "import importlib.metadata as m; print(m.version('couchbase'))"
    try:
        run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotRun(f"{python} does not run: {error.strerror}; pass --python with an interpreter") from error
    if run.returncode:
        raise CannotRun(f"{python} has no package couchbase; install it there, or leave out --python")
    return run.stdout.strip()


def lay_out(checkout: Checkout, python: Path, folder: Path) -> None:
    """Fill ``folder`` with the installed client, the tests of the checkout inside its packages, and our plugin.

    The sources in a checkout lack the compiled module, and tests inside a package would hide the installed package.
    """
    code = "import couchbase, pathlib; print(pathlib.Path(couchbase.__file__).parent.parent)"
    installed = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(checkout.path / name, folder / name)
    shutil.copytree(checkout.path / "tests", folder / "tests")
    for package in PACKAGES:
        target = folder / package
        target.mkdir()
        for entry in (installed / package).iterdir():
            if entry.name != "tests":
                (target / entry.name).symlink_to(entry)
        shutil.copytree(checkout.path / package / "tests", target / "tests")
    shutil.copy(Path(__file__).with_name("report_plugin.py"), folder / f"{REPORT_MODULE}.py")
