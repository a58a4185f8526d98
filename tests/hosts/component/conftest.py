"""Component and hosts, built once for all tests."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.component import preparing
from tests.hosts.component.preparing import Arguments


@pytest.fixture(scope="session")
def rust_build(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str] | None]:
    """Build the host in Rust in the background; yield None if no test needs it, or without cargo."""
    needed = any("rust_host" in getattr(item, "fixturenames", ()) for item in request.session.items)
    if not needed or shutil.which("cargo") is None:
        yield None
        return
    with preparing.build_rust_host() as building:
        yield building
        building.terminate()


@pytest.fixture(scope="session")
def component(rust_build: object) -> Path:
    """Return the path of the component. The build of the host in Rust starts first."""
    return preparing.component()


@pytest.fixture(scope="session")
def machine_code(component: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the component as machine code."""
    path = tmp_path_factory.mktemp("component") / "retry.cwasm"
    preparing.replies((*preparing.python_host(), component, path), [])
    return path


@pytest.fixture(scope="session")
def python_host(component: Path) -> Arguments:
    """Return the command of the host in Python."""
    return (*preparing.python_host(), component)


@pytest.fixture(scope="session")
def node_host(component: Path, node: str) -> Arguments:
    """Return the command of the host in Node."""
    return preparing.node_host(component)


@pytest.fixture(scope="session")
def rust_host(machine_code: Path, rust_build: subprocess.Popen[str] | None) -> Arguments:
    """Return the command of the host in Rust."""
    return preparing.rust_host(rust_build), machine_code


@pytest.fixture(params=["python_host", "node_host"])
def host(request: pytest.FixtureRequest) -> Arguments:
    """Return the command of each host that carries out all calls, in turn."""
    command: Arguments = request.getfixturevalue(request.param)
    return command
