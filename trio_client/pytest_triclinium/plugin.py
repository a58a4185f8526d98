"""Fixtures for the tests of an application: a fake cluster, and a client of it, for each test that requests them.

The plugin also warns about a ``KVStateMachine`` with the mark ``trio``. Its option ``--triclinium-tape`` keeps event
tapes of failed tests.

pytest loads this module in every project that has triclinium installed, so the module imports Trio and the client only
when a test uses a fixture. The fixtures are asynchronous: pytest-trio runs them, or AnyIO's plugin with Trio as its
backend.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_triclinium.tapes import TapesOfTests

if TYPE_CHECKING:
    from triclinium import Cluster
    from triclinium.testing import FakeCluster

MARKERS: Mapping[str, str] = {
    "fake_cluster": "arguments of triclinium.testing.open_fake_cluster for the fixture fake_cluster.",
    "tcp_cluster": "arguments of triclinium.testing.open_tcp_cluster for the fixture tcp_cluster.",
    "cluster": "arguments of triclinium.testing.FakeCluster.open_client for the fixture cluster.",
}
"""Help text of each marker. A marker configures the fixture of the same name."""


class TrioStateMachineWarning(pytest.PytestWarning):
    """Warning about a ``KVStateMachine`` whose ``TestCase`` has the mark ``trio``, with which pytest-trio fails it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of event tapes."""
    parser.getgroup("triclinium").addoption(
        "--triclinium-tape",
        metavar="DIR",
        help="Record every triclinium client, and keep the event tapes of failed tests in a new folder inside DIR. "
        "They contain the data and credentials of the test. Without the option, only a failed KVStateMachine leaves a "
        "tape, in a temporary folder.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder of the tapes, if one is given, and register the markers and the plugin of the event tapes.

    Raises:
        pytest.UsageError: the folder of the tapes cannot be created.
    """
    folder = config.getoption("--triclinium-tape")
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(
            f"--triclinium-tape={folder} cannot be used as the folder of the tapes: {error}"
        ) from error
    config.pluginmanager.register(TapesOfTests(folder), "triclinium_tapes")
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}(**arguments): {meaning}")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Warn about each ``KVStateMachine`` with the mark ``trio``, which usually comes from its module."""
    module = sys.modules.get("triclinium_core.testing.state_machine")
    if module is None:
        return  # No test has imported the state machine. Importing it here would need Hypothesis.
    for item in items:
        # Hypothesis sets this attribute on ``runTest``, the only test of a state machine's ``TestCase``.
        machine = getattr(getattr(item, "obj", None), "_hypothesis_state_machine_class", None)
        if machine is None or not issubclass(machine, module.KVStateMachine):
            continue
        if item.get_closest_marker("trio") is not None:
            item.warn(
                TrioStateMachineWarning(
                    f"{machine.__name__}.TestCase has the mark trio, but a state machine is not asynchronous, so "
                    "pytest-trio fails it: move it to a module without pytestmark = pytest.mark.trio, or set "
                    "trio_mode = true in the configuration of pytest and remove the mark"
                )
            )


@pytest.fixture
async def fake_cluster(request: pytest.FixtureRequest) -> AsyncIterator[FakeCluster]:
    """Yield a cluster inside the process, like ``open_fake_cluster``."""
    from triclinium.testing import open_fake_cluster

    _require_trio("fake_cluster")
    arguments = _arguments(request, "fake_cluster", signature(open_fake_cluster).parameters)
    async with open_fake_cluster(**arguments) as fake:
        yield fake


@pytest.fixture
async def tcp_cluster(request: pytest.FixtureRequest) -> AsyncIterator[FakeCluster]:
    """Yield a cluster on ports of this machine, like ``open_tcp_cluster``. The cluster uses the real clock."""
    from triclinium.testing import open_tcp_cluster

    _require_trio("tcp_cluster")
    arguments = _arguments(request, "tcp_cluster", signature(open_tcp_cluster).parameters)
    async with open_tcp_cluster(**arguments) as fake:
        yield fake


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, fake_cluster: FakeCluster) -> AsyncIterator[Cluster]:
    """Yield a client of ``fake_cluster``, like its ``open_client``."""
    from triclinium.testing import ClientArguments

    named = signature(fake_cluster.open_client).parameters.values()
    known = {each.name for each in named if each.kind is not Parameter.VAR_KEYWORD} | set(
        ClientArguments.__annotations__
    )
    async with fake_cluster.open_client(**_arguments(request, "cluster", known)) as client:
        yield client


def _arguments(request: pytest.FixtureRequest, marker: str, known: Collection[str]) -> dict[str, Any]:
    """Return the arguments in the markers of a test. Those of the test override those of its class and its module.

    Raises:
        pytest.UsageError: a marker has a positional argument, or one that the function lacks.
    """
    arguments: dict[str, Any] = {}
    for each in reversed(list(request.node.iter_markers(marker))):
        unknown = [repr(value) for value in each.args] + [name for name in each.kwargs if name not in known]
        if unknown:
            raise pytest.UsageError(
                f"pytest.mark.{marker} does not accept {', '.join(unknown)}; its arguments, by name, are "
                f"{', '.join(sorted(known))}"
            )
        arguments |= each.kwargs
    return arguments


def _require_trio(fixture: str) -> None:
    import trio

    if not trio.lowlevel.in_trio_run():
        raise pytest.UsageError(
            f"the fixture {fixture} runs on Trio, but this test does not: use pytest-trio, "
            "or let AnyIO's fixture anyio_backend return 'trio'"
        )
