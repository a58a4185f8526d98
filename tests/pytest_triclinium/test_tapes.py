"""Event tapes of failed tests, in projects of users."""

from __future__ import annotations

import re
import shlex
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.pytest_triclinium.test_plugin import MACHINES, WITH_ANYIO, WITH_PYTEST_TRIO, run
from triclinium._cli import main
from triclinium_core.testing import replayed

pytestmark = pytest.mark.native

TESTS = """\
import pytest
from triclinium import PasswordAuthenticator, open_cluster
{backend}

async def use(cluster):
    await cluster.bucket("default").default_collection().upsert("ada", 1)


async def test_passes(cluster):
    await use(cluster)


@pytest.mark.xfail(reason="an expected failure leaves no tape")
async def test_expected(cluster):
    await use(cluster)
    assert False


@pytest.mark.parametrize("name", ["a/../b", "c d"])
async def test_fails(name, cluster, tcp_cluster):
    await use(cluster)
    async with open_cluster(tcp_cluster.connection_string, tcp_cluster.authenticator) as second:
        await use(second)
    assert False


@pytest.fixture
async def breaks_later(cluster):
    yield cluster
    raise RuntimeError("in the fixture")


async def test_fails_at_teardown(breaks_later):
    await use(breaks_later)


async def test_distant():
    async with open_cluster("couchbase://192.0.2.1", PasswordAuthenticator("u", "p")):
        assert False
"""

ANYIO = "\n\n@pytest.fixture\ndef anyio_backend():\n    return 'trio'\n"
REPLAY = re.compile(r"^triclinium (replay .+)$", re.MULTILINE)


def named(said: str) -> list[Path]:
    """Return the tapes that the output of pytest names."""
    return [Path(shlex.split(command)[1]) for command in REPLAY.findall(said)]


@pytest.mark.parametrize(
    ("settings", "backend"), [(WITH_PYTEST_TRIO, ""), (WITH_ANYIO, ANYIO)], ids=["pytest-trio", "anyio"]
)
def test_failed_tests_leave_tapes(tmp_path: Path, settings: str, backend: str) -> None:
    """Each client of a fake cluster in a failed test leaves a tape that can be replayed; others leave none."""
    folder = tmp_path / "new" / "tapes of today"
    outcomes, said = run(tmp_path, settings, TESTS.format(backend=backend), f"--triclinium-tape={folder}")
    tapes = named(said)

    assert {"test_fails[a/../b]", "test_distant"} <= {name for name, outcome in outcomes.items() if outcome == "FAILED"}
    assert sorted(folder.glob("*/*")) == sorted(tapes), said
    assert (2, 2, 1) == tuple(
        sum(part in path.name for path in tapes) for part in ("fails-a-b", "fails-c-d", "at_teardown")
    )
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in tapes}
    assert {0o700} == {stat.S_IMODE(path.parent.stat().st_mode) for path in tapes}
    assert all(replayed(str(path)).calls > 3 for path in tapes)
    assert [0] * 5 == [CliRunner().invoke(main, shlex.split(each)).exit_code for each in REPLAY.findall(said)]
    assert 1 == said.count("no tape of the client of 192.0.2.1")


def test_passed_tests_leave_nothing(tmp_path: Path) -> None:
    """A run without a failure leaves an empty folder, and a run without the option reports no tape."""
    program = TESTS.format(backend="")
    recorded, said = run(tmp_path, WITH_PYTEST_TRIO, program, "--triclinium-tape=tapes", "-k", "passes or expected")
    plain = run(tmp_path, WITH_PYTEST_TRIO, program, "-k", "fails")[1]

    assert "PASSED" == recorded["test_passes"], said
    assert [] == list((tmp_path / "tapes").iterdir())
    assert "event tape" not in said + plain


def test_unusable_folder_is_refused(tmp_path: Path) -> None:
    """If the folder is a file, the option is refused before the first test."""
    (tmp_path / "file").touch()
    outcomes, said = run(tmp_path, WITH_PYTEST_TRIO, TESTS.format(backend=""), "--triclinium-tape=file")

    assert {} == outcomes
    assert "--triclinium-tape=file" in said


@pytest.mark.parametrize("arguments", [(), ("--triclinium-tape=tapes",)])
def test_failed_state_machine_leaves_a_tape(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A state machine that breaks a law leaves a tape in a temporary folder, or in the folder of the option."""
    program = MACHINES.format(mark="").replace(
        "    pass\n", "    def recover(self, is_busy):\n        assert False\n", 1
    )
    _, said = run(tmp_path, WITH_PYTEST_TRIO, program, *arguments, TMPDIR=str(tmp_path))
    (path,) = named(said)

    assert (tmp_path / "tapes" if arguments else tmp_path) == (tmp_path / path).parent.parent
    assert replayed(str(tmp_path / path)).calls
