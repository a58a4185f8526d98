"""Pytest plugin in projects of users. Each test runs pytest in a separate process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.native

WITH_PYTEST_TRIO = "[pytest]\ntrio_mode = true\naddopts = --strict-markers\nfilterwarnings = error\n"
WITH_ANYIO = "[pytest]\nanyio_mode = auto\naddopts = --strict-markers -p no:trio\n"

OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) \S+?::(\S+)", re.MULTILINE)


def run(
    folder: Path, settings: str, program: str, *arguments: str, **environment: str
) -> tuple[Mapping[str, str], str]:
    """Return the outcome of each test of a project, and the output of pytest."""
    (folder / "pytest.ini").write_text(settings, encoding="utf-8")
    (folder / "test_application.py").write_text(program, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    return {name: outcome for outcome, name in OUTCOME.findall(ended.stdout)}, ended.stdout + ended.stderr


APPLICATION = """\
import pytest
import trio
from triclinium import TimeoutOptions, open_cluster
from triclinium.errors import TimeoutException
from triclinium.testing import Opcode, apply_command, delay, drop_response, locked

pytestmark = pytest.mark.fake_cluster(buckets=["travel"], nodes=2)


async def test_reads_what_it_wrote(cluster, fake_cluster):
    people = cluster.bucket("travel").default_collection()
    await people.upsert("ada", 1)
    assert 1 == (await people.get("ada")).content
    assert 2 == len(fake_cluster.nodes)


@pytest.mark.fake_cluster(nodes=1)
@pytest.mark.cluster(timeouts=TimeoutOptions(kv=0.2))
async def test_the_nearest_marker_counts(cluster, fake_cluster):
    assert 1 == len(fake_cluster.nodes)
    fake_cluster.node.faults.always(Opcode.GET, drop_response())
    with pytest.raises(TimeoutException):
        await cluster.bucket("travel").default_collection().get("ada")


@pytest.mark.fake_cluster(seed=3)
async def test_controls_the_nodes(cluster, fake_cluster):
    fake_cluster.node.faults.always(Opcode.SET, locked(), probability=0.5)
    apply_command(fake_cluster.nodes, "@1: restart for 0.05 seconds")
    fake_cluster.nodes.kill(0, for_seconds=0.05)
    await cluster.bucket("travel").default_collection().upsert("ada", 1)
    assert ["restart", "kill"] == [change.name for change in fake_cluster.nodes.changes][:2]


@pytest.mark.tcp_cluster(buckets=["travel"], replicas=1, nodes=2)
async def test_opens_its_own(tcp_cluster):
    async with open_cluster(tcp_cluster.connection_string, tcp_cluster.authenticator) as cluster:
        await cluster.bucket("travel").default_collection().upsert("ada", 1)


class TestOurs:
    @pytest.fixture
    def cluster(self):
        return "ours"

    @pytest.mark.cluster("production")
    def test_fixture_and_marker_win(self, cluster):
        assert "ours" == cluster
"""

WAITING = """

@pytest.mark.fake_cluster(nodes=1)
async def test_waits_for_nothing(autojump_clock, cluster, fake_cluster):
    fake_cluster.node.faults.always(None, delay(2.0))
    for _ in range(1000):
        await cluster.bucket("travel").default_collection().upsert("ada", 1)
    assert 2000 <= trio.current_time()
"""

BACKEND = """

@pytest.fixture
def anyio_backend():
    return {backend!r}
"""


@pytest.mark.parametrize(
    ("settings", "program"),
    [(WITH_PYTEST_TRIO, APPLICATION + WAITING), (WITH_ANYIO, APPLICATION + BACKEND.format(backend="trio"))],
    ids=["pytest-trio", "anyio"],
)
def test_the_fixtures_work(tmp_path: Path, settings: str, program: str) -> None:
    """Tests get clusters as their markers demand, under both plugins that run trio; a project's own fixture wins."""
    outcomes, said = run(tmp_path, settings, program)

    assert ["PASSED"] * program.count("def test_") == [*outcomes.values()], said


WRONG = """\
import pytest


@pytest.mark.fake_cluster(node=3)
async def test_unknown(fake_cluster):
    pass


@pytest.mark.fake_cluster(3)
async def test_by_place(fake_cluster):
    pass


@pytest.mark.cluster(timeout=3)
async def test_unknown_to_the_client(cluster):
    pass
"""


def test_wrong_arguments(tmp_path: Path) -> None:
    """If a marker has wrong arguments, the error names them and the valid arguments."""
    outcomes, said = run(tmp_path, WITH_PYTEST_TRIO, WRONG)

    assert {"test_unknown", "test_by_place", "test_unknown_to_the_client"} == set(outcomes)
    assert {"FAILED", "ERROR"} >= set(outcomes.values())
    assert "buckets, nodes, options, piece_sizes, replicas" in said
    assert " 3;" in said
    assert " timeout;" in said
    assert "timeouts" in said


def test_a_test_on_asyncio(tmp_path: Path) -> None:
    """If a test on asyncio uses the fixtures, its error gives the next step."""
    program = "import pytest\n\n\nasync def test_asks(fake_cluster):\n    pass\n" + BACKEND.format(backend="asyncio")
    outcomes, said = run(tmp_path, WITH_ANYIO, program)

    assert {"test_asks": "ERROR"} == outcomes, said
    assert "anyio_backend" in said


def test_nothing_is_imported_without_fixtures(tmp_path: Path) -> None:
    """A project that uses no fixture imports neither trio nor the client."""
    program = """\
import sys


def test_nothing_is_there():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert "pytest_triclinium" in loaded
    assert set() == loaded & {"trio", "triclinium", "triclinium_core", "click"}
"""
    plugin = ("-p", "pytest_triclinium.plugin")
    outcomes, said = run(tmp_path, "[pytest]\n", program, *plugin, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    assert {"test_nothing_is_there": "PASSED"} == outcomes, said


MACHINES = """\
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, rule
from triclinium_core.testing.state_machine import KVStateMachine
{mark}

class Ours(KVStateMachine):
    pass


class Other(RuleBasedStateMachine):
    @rule()
    def rest(self):
        pass


TestOurs, TestOther = Ours.TestCase, Other.TestCase
TestOurs.settings = TestOther.settings = settings(
    TestOurs.settings, max_examples=1, stateful_step_count=1, phases=[Phase.generate]
)


async def test_asynchronous(cluster):
    pass
"""


def test_marked_state_machine_gets_a_warning(tmp_path: Path) -> None:
    """A state machine in a module marked ``trio`` gets a warning with the next step, which others do not get."""
    settings = WITH_PYTEST_TRIO.replace("trio_mode = true\n", "").replace("filterwarnings = error\n", "")
    marked = run(tmp_path, settings, MACHINES.format(mark="pytestmark = pytest.mark.trio"))
    advised = run(tmp_path, WITH_PYTEST_TRIO, MACHINES.format(mark=""))

    assert "PASSED" == marked[0]["test_asynchronous"]
    assert 1 == marked[1].count("TrioStateMachineWarning: Ours.TestCase has the mark trio")
    assert "trio_mode = true" in marked[1]
    assert "Other.TestCase has" not in marked[1]
    assert {"PASSED"} == set(advised[0].values()), advised[1]
    assert "TestOurs::runTest" in advised[1]
    assert "TrioStateMachineWarning" not in advised[1]
