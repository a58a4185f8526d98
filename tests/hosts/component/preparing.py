"""Commands that prepare the component and its three hosts, for the tests and for the benchmark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.environment import CACHE, missing
from tests.hosts.folders import HOSTS, ROOT
from tests.hosts.installing import install_with_npm, require

HERE = Path(__file__).parent
BUILD = HOSTS / "component" / "build.py"
INTERFACE = HOSTS / "component" / "retry.wit"
CONFORMANCE = ROOT / "docs" / "howto" / "examples" / "conformance.py"
STORY = ROOT / "docs" / "howto" / "examples" / "retry_story.mjs"
FOLDER = CACHE / "hosts" / "component"
COMPONENTIZE = ("uvx", "--quiet", "--from", "componentize-py==0.25.1", "componentize-py")
PYTHON = ("uv", "run", "--quiet", "--no-project", "--with", "wasmtime==48.0.0", "python")
"""Command of a Python with wasmtime, which the environment of the tests does not have."""

ENVIRONMENT = os.environ | {"XDG_CACHE_HOME": str(FOLDER / "compiled")}
"""Environment of programs with wasmtime, which keeps compiled components there."""

Arguments = Sequence[str | Path]


class Replies(NamedTuple):
    """Lines that a host printed, and the durations that it measured."""

    lines: Sequence[str]
    figures: Mapping[str, float]


def run(*command: str | Path, text: str = "", cwd: Path | None = None) -> str:
    """Return the output of a command, which must succeed."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=cwd)

    assert 0 == done.returncode, f"{command[0]} ended with status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def component() -> Path:
    """Build the component, and return its path."""
    require("componentize-py", "it comes from the package index by uv", *COMPONENTIZE, "--version")
    run(sys.executable, BUILD, FOLDER)
    return FOLDER / "retry.wasm"


def python_host() -> Arguments:
    """Return the command of the host in Python, without its arguments."""
    require("wasmtime for Python", "it comes from the package index by uv", *PYTHON, "-c", "import wasmtime")
    return *PYTHON, HERE / "python_host.py"


def node_host(built: Path) -> Arguments:
    """Translate the component for Node, and return the command of the host."""
    folder = FOLDER / "js"
    install_with_npm("jco", HERE / "js", folder)
    run("node", folder / "transpile.mjs", built, folder / "translated")
    return "node", folder / "host.mjs", folder / "translated" / "retry.js"


def build_rust_host(*options: str) -> subprocess.Popen[str]:
    """Start to build the host in Rust, in the background because that takes longest."""
    folder = FOLDER / "rust"
    # Cargo writes its lock file next to the manifest, so it works on a copy.
    shutil.copytree(HERE / "rust", folder, dirs_exist_ok=True)
    shutil.copy2(INTERFACE, folder)
    command = ("cargo", "build", "--quiet", *options)
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def rust_host(building: subprocess.Popen[str] | None, profile: str = "debug") -> Path:
    """Wait until the host in Rust is built, and return its path; the profile names its folder."""
    remedy = "install Rust 1.95 or later; cargo downloads the rest"
    if building is None:
        missing("cargo", remedy)
    require("wasmtime for Rust", remedy, "cargo", "fetch", "--quiet", cwd=FOLDER / "rust")
    _, errors = building.communicate()

    assert 0 == building.returncode, errors
    return FOLDER / "rust" / "target" / profile / "component-host"


def replies(command: Arguments, lines: Sequence[str]) -> Replies:
    """Return the replies of a host to lines of input. The host must not trap."""
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, env=ENVIRONMENT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, f"after {done.stdout.count(chr(10))} replies: {done.stderr[-3000:]}"
    return Replies(done.stdout.splitlines(), json.loads(done.stderr.splitlines()[-1]))
