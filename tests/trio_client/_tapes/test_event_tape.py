"""Event tape of a client with the real driver, and its file: mode, refusals and a full disk."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import tempfile
from io import FileIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.retry_doubles import AsyncStrategy, ScriptedStrategy, Token
from triclinium import CertificateAuthenticator, PasswordAuthenticator, client_context, errors, open_cluster, retrying
from triclinium.retries import AnyRetryStrategy, RetryAction, RetryReason, RetryRequest, TokenScope
from triclinium.scans import PrefixScan, RangeScan
from triclinium.subdocument import LookupInSpec, MutateInSpec
from triclinium.tapes import EventTape
from triclinium.telemetry import ThresholdLoggingTracer
from triclinium.testing import FakeAnswer, hang_up, open_fake_cluster, temporary_failure
from triclinium_core.options import ClientOptions
from triclinium_core.retry.couchbase import BestEffortRetryStrategy
from triclinium_core.testing import replayed


class Deliberate:
    """Asynchronous strategy of a user."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a random delay after a sleep."""
        await trio.sleep(0.01)
        return RetryAction.after(0.1 * request.rng.random())


async def every_kind_of_call(path: Path) -> None:
    """Record a client with documents, scans, rows, user code, cancelled calls and lost streams."""
    strategies: dict[str, AnyRetryStrategy] = {
        "deliberate": Deliberate(),
        "tokens": ScriptedStrategy(*[Token(0.01)] * 9),
        "awaited": TokenScope(AsyncStrategy(Token(), Token(0.01), Token(), Token(0.02)), "scope"),
        "backoff": BestEffortRetryStrategy(lambda retry_attempts, rng: 0.01 + rng.random() / 100),
    }
    async with (
        open_fake_cluster() as fake,
        fake.open_client(tape=EventTape(path), tracer=ThresholdLoggingTracer(kv_threshold=0.0)) as cluster,
    ):
        fake.nodes.script.answer("SELECT 1", FakeAnswer(rows=[1, 2]))
        people = cluster.bucket("default").default_collection()
        for name, strategy in strategies.items():
            with retrying(strategy), client_context(of=name):
                fake.node.faults.next(None, temporary_failure(), times=2)
                await people.upsert(name, {"name": name})
                assert {"name": name} == (await people.get(name)).content
        await people.mutate_in("tokens", [MutateInSpec.upsert("a.b", 1, create_parents=True)])
        await people.lookup_in("tokens", [LookupInSpec.get("a.b"), LookupInSpec.exists("z")])
        for scan in (PrefixScan("t"), RangeScan()):
            async with people.scan(scan) as found:
                assert [each.id async for each in found]
        async with cluster.query("SELECT 1") as result:
            assert [1, 2] == [row async for row in result]
        fake.node.faults.next(None, hang_up())
        await people.get("tokens")
        fake.node.faults.next(None, temporary_failure(), times=50)
        with retrying(Deliberate()), trio.move_on_after(0.3):
            await people.get("deliberate")
        fake.node.faults.clear()
        with pytest.raises(errors.DocumentNotFoundException):
            await people.get("nobody")
        cluster.set_authenticator(fake.authenticator)
        await cluster.ping()
        await people.exists("tokens")


def test_every_kind_of_call_replays(tmp_path: Path) -> None:
    """A client with documents, scans, rows, user code, cancelled calls and lost streams agrees in another process."""
    path = tmp_path / "tape.jsonl"
    trio.run(every_kind_of_call, path, clock=MockClock(autojump_threshold=0))
    in_another_process = subprocess.run(
        [sys.executable, "-m", "triclinium", "replay", str(path)],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=False,
    )
    text = path.read_text()

    assert (0, "") == (in_another_process.returncode, in_another_process.stderr)
    assert int(in_another_process.stdout.split()[1]) > 100
    for part in ("refresh", "backoff", '"line":"permit"', "encoding", "rows ", "OperationAbandoned", "StreamLost"):
        assert part in text


def _open_files() -> set[str]:
    return {os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")}


async def test_the_file_is_for_its_owner(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The file has mode 0600 whatever the umask, a warning in its first line, and is closed with the client."""
    path = tmp_path / "tape.jsonl"
    before = os.umask(0)
    try:
        async with open_fake_cluster() as fake, fake.open_client(tape=EventTape(path)) as cluster:
            await cluster.bucket("default").default_collection().exists("ada")
    finally:
        os.umask(before)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert "treat this file as a core dump" in path.read_text().splitlines()[0]
    assert str(path) not in _open_files()


@rows(
    ("connection_string", "is_refused"),
    [
        ("couchbase://localhost", False),
        ("couchbase://127.0.0.1,127.9.9.9:11210", False),
        ("couchbase://[::1]", False),
        ("couchbase://127.0.0.1,10.0.0.5", True),
        ("couchbases://db.example", True),
        ("couchbase://localhost.example", True),
        ("couchbase://[fe80::1]", True),
    ],
)
def test_distant_clusters_are_refused(connection_string: str, is_refused: bool) -> None:
    """A tape is refused, before its file exists, only if a host is not loopback and secrets are not permitted."""
    with tempfile.TemporaryDirectory() as folder:
        path, authenticator = Path(folder, "tape.jsonl"), PasswordAuthenticator("u", "p")
        if is_refused:
            with pytest.raises(errors.InvalidArgumentException, match="contains_secrets=True") as caught:
                open_cluster(connection_string, authenticator, tape=EventTape(path))
            assert ("tape", False) == (caught.value.parameter, path.exists())
        tape = EventTape(path, contains_secrets=is_refused)
        options = ClientOptions(connection_string=connection_string, authenticator=authenticator)
        tape.record(options, rng=Random(1), warn=print).close()
        assert path.exists()


def test_refused_options_leave_no_file(tmp_path: Path) -> None:
    """If the machine refuses an option, no file is left."""
    tape = EventTape(tmp_path / "tape.jsonl")
    with pytest.raises(errors.InvalidArgumentException, match="certificate|TLS|couchbases"):
        open_cluster("couchbase://127.0.0.1", CertificateAuthenticator(), tape=tape)

    assert [] == list(tmp_path.iterdir())


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    """A tape is refused for an existing file, a link, a missing folder or an invalid path; files keep their content."""
    taken, link = tmp_path / "taken", tmp_path / "link"
    taken.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere")
    for path in (taken, link, tmp_path / "no" / "folder", f"{tmp_path}/\0"):
        with pytest.raises(errors.InvalidArgumentException, match="cannot be created") as caught:
            open_cluster("couchbase://127.0.0.1", PasswordAuthenticator("u", "p"), tape=EventTape(path))
        assert "tape" == caught.value.parameter

    assert ("mine", False) == (taken.read_text(), (tmp_path / "elsewhere").exists())


@rows("arguments", [{"path": 5}, {"path": "tape", "contains_secrets": "yes"}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    """A path or a flag of another type raises InvalidArgumentException with the name of the argument."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        EventTape(**arguments)

    assert [*arguments][-1] == caught.value.parameter


async def test_a_full_disk_ends_only_the_tape(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed write logs one WARNING and leaves complete lines, and the calls of the client succeed."""
    path, written = tmp_path / "tape.jsonl", 0
    write = FileIO.write

    class Full(FileIO):
        """File on a disk with room for three and a half lines."""

        def write(self, data: object, /) -> int:
            """Write a part of the fourth line, and then raise."""
            nonlocal written
            written += 1
            if written == 5:
                raise OSError(28, "No space left on device")
            return write(self, memoryview(data)[:9] if written == 4 else data)  # type: ignore[arg-type]

    monkeypatch.setattr("triclinium._tapes.event_tape.FileIO", Full)
    with caplog.at_level(logging.WARNING, "triclinium.tape"):
        async with open_fake_cluster() as fake, fake.open_client(tape=EventTape(path)) as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", {})
            await people.get("ada")

    assert 1 == sum("No space left" in record.getMessage() for record in caplog.records)
    assert 2 == replayed(str(path)).calls
