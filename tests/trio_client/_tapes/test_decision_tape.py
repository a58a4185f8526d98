"""Decision tapes of a cluster: rings and files, triggers, bounds and secrecy."""

from __future__ import annotations

import base64
import errno
import json
import logging
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from triclinium import Cluster, Collection, PasswordAuthenticator, open_cluster
from triclinium._tapes import decision_recording, tape_file
from triclinium._tapes.decision_tape import SIZE_LEAST
from triclinium.errors import CouchbaseException, DocumentNotFoundException, InvalidArgumentException
from triclinium.subdocument import LookupInSpec
from triclinium.tapes import DecisionTape
from triclinium.testing import FakeCluster, FakeNodeOptions, Opcode, drop_response, hang_up, open_fake_cluster
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.decision_tape.replay import replay
from triclinium_core.testing import status, temporary_failure

INVALID: Sequence[tuple[Callable[[], object], str]] = [
    (lambda: DecisionTape(""), "path"),
    (lambda: DecisionTape(7), "path"),  # type: ignore[arg-type]
    (lambda: DecisionTape("a\0b"), "path"),
    (lambda: DecisionTape("\ud800"), "path"),
    (lambda: DecisionTape("x", size_max=SIZE_LEAST - 1), "size_max"),
    (lambda: DecisionTape("x", names=1), "names"),  # type: ignore[arg-type]
    (lambda: DecisionTape("x", pseudonyms=None), "pseudonyms"),  # type: ignore[arg-type]
    (lambda: DecisionTape.ring(0), "events"),
    (lambda: DecisionTape.ring(on_errors=[CouchbaseException]), "folder"),
    (lambda: DecisionTape.ring(on_signal=signal.SIGUSR1), "folder"),
    (lambda: DecisionTape.ring(folder="/no/such/folder"), "folder"),
    (lambda: DecisionTape.ring(folder="/", on_signal=signal.SIGINT), "on_signal"),
    (lambda: DecisionTape.ring(folder="/", on_signal=signal.SIGKILL), "on_signal"),
    (lambda: DecisionTape.ring(folder="/", on_errors=[OSError]), "on_errors"),  # type: ignore[list-item]
    (lambda: DecisionTape.ring(folder="/", files_max=0), "files_max"),
]


@pytest.mark.parametrize(("make", "parameter"), INVALID)
def test_invalid_options_are_refused(make: Callable[[], object], parameter: str) -> None:
    """An invalid option raises an error that names it."""
    with pytest.raises(InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter


def tape_on(path: Path) -> tuple[list[lines.Operation], lines.End]:
    """Check that a tape is private, complete and replayable; return its operations and its last line."""
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    reader = TapeReader([path.read_bytes()])
    operations = [fact for _, fact in reader if isinstance(fact, lines.Operation)]
    assert reader.end is not None
    assert [] == [operation for operation in operations if replay(operation) is not None]
    return operations, reader.end


def people_of(fake: FakeCluster, cluster: Cluster) -> Collection:
    """Return the default collection of the first bucket."""
    return cluster.bucket(fake.node.options.buckets[0]).default_collection()


async def test_a_ring_is_saved_on_demand(tmp_path: Path) -> None:
    """``save_tape`` writes the newest facts and the open operations, and replaces an earlier file."""
    path = tmp_path / "ring.tape"
    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring(4)) as cluster:
        people = people_of(fake, cluster)
        for number in range(6):
            await people.upsert(f"k{number}", number)
        await cluster.save_tape(path)
        fake.node.faults.next(Opcode.GET, drop_response())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(people.get, "k1")
            await trio.testing.wait_all_tasks_blocked()
            await cluster.save_tape(path)
            nursery.cancel_scope.cancel()

    operations, end = tape_on(path)
    assert ["completed"] * 4 + ["open"] == [operation.result for operation in operations]
    assert ("saved", True) == (end.reason, end.lost > 0)
    assert ["ring.tape"] == os.listdir(tmp_path)


async def test_a_cancelled_save_leaves_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that is cancelled before it begins leaves no file; one that is cancelled while it writes, a whole one."""
    path, writing, go_on = tmp_path / "ring.tape", trio.Event(), threading.Event()
    begin, create = trio.lowlevel.current_trio_token(), tape_file.create

    def wait(path: Path, *, replace: bool = True) -> int:
        begin.run_sync_soon(writing.set)
        go_on.wait()
        return create(path, replace=replace)

    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring()) as cluster:
        await people_of(fake, cluster).upsert("k", 1)
        with trio.CancelScope() as early:
            early.cancel()
            await cluster.save_tape(path)
        monkeypatch.setattr(tape_file, "create", wait)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.save_tape, path)
            await writing.wait()
            nursery.cancel_scope.cancel()
            go_on.set()

    assert early.cancelled_caught
    assert ["ring.tape"] == os.listdir(tmp_path)
    assert 1 == len(tape_on(path)[0])


async def test_no_ring_cannot_be_saved(tmp_path: Path) -> None:
    """Without a ring or a folder, ``save_tape`` raises; without pseudonyms, ``tape_pseudonym`` does."""
    async with open_fake_cluster() as fake:
        for tape in (None, DecisionTape(tmp_path / "file.tape")):
            async with fake.open_client(tape=tape) as cluster:
                with pytest.raises(InvalidArgumentException):
                    await cluster.save_tape(tmp_path / "other.tape")
                with pytest.raises(InvalidArgumentException):
                    cluster.tape_pseudonym("k")
        async with fake.open_client(tape=DecisionTape.ring()) as cluster:
            with pytest.raises(FileNotFoundError):
                await cluster.save_tape(tmp_path / "missing" / "ring.tape")

    assert ["file.tape"] == os.listdir(tmp_path)


async def test_errors_have_pseudonyms(tmp_path: Path) -> None:
    """The context of an error has the pseudonym that ``tape_pseudonym`` returns and that is on the tape."""
    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring(pseudonyms=True)) as cluster:
        with pytest.raises(DocumentNotFoundException) as caught:
            await people_of(fake, cluster).get("ada")
        await cluster.save_tape(tmp_path / "ring.tape")
        expected = cluster.tape_pseudonym("ada")

    assert expected == caught.value.context.key_pseudonym
    assert [expected] == [operation.key for operation in tape_on(tmp_path / "ring.tape")[0]]


async def files_in(folder: Path, number: int) -> None:
    """Wait until a folder has at least ``number`` files."""
    while len(os.listdir(folder)) < number:  # noqa: ASYNC110  # a file appears without an event
        await trio.sleep(0.01)


async def test_clusters_share_a_signal(tmp_path: Path) -> None:
    """The signal saves the ring of each open cluster to its next file, also after an earlier cluster was closed."""
    tape, before = DecisionTape.ring(folder=tmp_path, on_signal=signal.SIGUSR1), signal.getsignal(signal.SIGUSR1)
    (tmp_path / f"triclinium-{os.getpid()}-2.tape").touch()
    async with open_fake_cluster() as fake, trio.open_nursery() as nursery:

        async def first(closes: trio.Event, *, task_status: trio.TaskStatus[None]) -> None:
            async with fake.open_client(tape=tape):
                task_status.started()
                await closes.wait()
                os.kill(os.getpid(), signal.SIGUSR1)

        closes = trio.Event()
        await nursery.start(first, closes)
        async with fake.open_client(tape=tape) as cluster:
            await people_of(fake, cluster).upsert("k", 1)
            os.kill(os.getpid(), signal.SIGUSR1)
            await files_in(tmp_path, 3)
            closes.set()
            await files_in(tmp_path, 4)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(os.getpid(), signal.SIGUSR1)
            await files_in(tmp_path, 5)

    assert before == signal.getsignal(signal.SIGUSR1)
    names = [f"triclinium-{os.getpid()}-{number}.tape" for number in range(1, 6)]
    assert names == sorted(os.listdir(tmp_path))
    assert ["completed"] == [operation.result for operation in tape_on(tmp_path / names[-1])[0]]


def test_only_the_main_thread_opens_a_signal(tmp_path: Path) -> None:
    """Opening a cluster with a signal in another thread raises an error about the tape."""
    tape = DecisionTape.ring(folder=tmp_path, on_signal=signal.SIGUSR1)

    def run() -> None:
        with pytest.raises(InvalidArgumentException) as caught:
            open_cluster("couchbase://127.0.0.1", authenticator=PasswordAuthenticator("u", "p"), tape=tape)
        refused.append(caught.value.parameter)

    refused: list[str | None] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert ["tape"] == refused


async def test_an_error_saves_the_ring(tmp_path: Path) -> None:
    """An error of a named class that leaves a call saves the ring, up to the maximum number of files."""
    tape = DecisionTape.ring(folder=tmp_path, on_errors=[DocumentNotFoundException], files_max=2)
    async with open_fake_cluster() as fake, fake.open_client(tape=tape) as cluster:
        people = people_of(fake, cluster)
        await people.insert("k", 1)
        with pytest.raises(CouchbaseException):
            await people.insert("k", 1)
        for number in (1, 2, 2):
            with pytest.raises(DocumentNotFoundException):
                await people.get("missing")
            await files_in(tmp_path, number)
            await cluster.save_tape(tmp_path.parent / "after.tape")

    assert 2 == len(os.listdir(tmp_path))
    assert "DocumentNotFoundException" == tape_on(tmp_path / f"triclinium-{os.getpid()}-1.tape")[0][-1].error


async def test_an_error_that_closes_the_cluster_is_saved(tmp_path: Path) -> None:
    """An error that also leaves the cluster's block saves the ring, whichever task runs first."""
    tape = DecisionTape.ring(folder=tmp_path, on_errors=[DocumentNotFoundException])
    async with open_fake_cluster() as fake:
        for _ in range(8):
            with pytest.raises(DocumentNotFoundException):
                async with fake.open_client(tape=tape) as cluster:
                    await people_of(fake, cluster).get("missing")

    assert [1] * 8 == [len(tape_on(tmp_path / name)[0]) for name in os.listdir(tmp_path)]


async def test_a_hung_disk_does_not_hold_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster is closed although the disk does not take an automatic file, which is written later."""
    freed = threading.Event()
    monkeypatch.setattr(decision_recording, "LAST_SECONDS", 0.05)

    def late(path: Path, pieces: Iterable[bytes], *, replace: bool) -> None:
        freed.wait()
        tape_file.save(path, pieces, replace=replace)

    monkeypatch.setattr(decision_recording, "save", late)
    tape = DecisionTape.ring(folder=tmp_path, on_errors=[DocumentNotFoundException])
    async with open_fake_cluster() as fake:
        with pytest.raises(DocumentNotFoundException):
            async with fake.open_client(tape=tape) as cluster:
                await people_of(fake, cluster).get("missing")
        assert [] == os.listdir(tmp_path)
        freed.set()
        await files_in(tmp_path, 1)


async def test_a_file_has_every_operation(tmp_path: Path) -> None:
    """A file has all operations of a cluster, those that its end abandoned, and its monotonic beginning and end."""
    path, before = tmp_path / "file.tape", trio.current_time()
    async with (
        open_fake_cluster() as fake,
        fake.open_client(tape=DecisionTape(path)) as cluster,
        trio.open_nursery() as nursery,
    ):
        people = people_of(fake, cluster)
        fake.node.faults.next(Opcode.SET, temporary_failure())
        fake.node.faults.next(Opcode.GET, hang_up())
        for number in range(50):
            await people.upsert(f"k{number}", number)
            await people.get(f"k{number}")
        # The first line is the header, and the last one is reserved for the end.
        while len((while_open := path.read_bytes()).splitlines()) < 3:  # noqa: ASYNC110  # a thread writes the file
            await trio.sleep(decision_recording.GATHERED_SECONDS)
        fake.node.faults.next(Opcode.GET, drop_response())
        nursery.start_soon(people.get, "k1")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    operations, end = tape_on(path)
    assert ["completed"] * 100 + ["abandoned"] == [operation.result for operation in operations]
    assert ("closed", 0) == (end.reason, end.lost)
    cut = TapeReader([while_open])
    assert before <= cut.header.at <= trio.current_time()
    assert list(cut)
    assert cut.end is None


@pytest.mark.parametrize(("gathered", "least"), [(0.01, 100), (1000.0, 600)])
async def test_a_full_file_ends_the_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gathered: float, least: int
) -> None:
    """Facts that are written in parts or together fill the file; the end counts the rest of a part, and calls go on."""
    monkeypatch.setattr(decision_recording, "GATHERED_SECONDS", gathered)
    path = tmp_path / "file.tape"
    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape(path, size_max=SIZE_LEAST)) as cluster:
        people = people_of(fake, cluster)
        for number in range(600):
            await people.upsert(f"k{number}", number)

    operations, end = tape_on(path)
    assert SIZE_LEAST - 1000 < path.stat().st_size <= SIZE_LEAST
    assert 100 < len(operations) < 600
    assert "full" == end.reason
    assert least <= len(operations) + end.lost <= 600


async def test_a_full_disk_ends_the_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the disk takes only a part of the lines, the tape ends before them, its end counts them, and calls go on."""
    path, room, counts, append = tmp_path / "file.tape", 5_000, list[int](), tape_file.TapeFile.append

    def count(file: tape_file.TapeFile, lines: bytes) -> int:
        counts.append(lines.count(b"\n"))
        return append(file, lines)

    def write(descriptor: int, data: bytes, at: int) -> int:
        if at >= room and at + len(data) > path.stat().st_size:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.pwrite(descriptor, data[: max(room - at, path.stat().st_size - at)], at)

    monkeypatch.setattr(tape_file.TapeFile, "append", count)
    monkeypatch.setattr(tape_file, "pwrite", write)
    with caplog.at_level(logging.WARNING, "triclinium.tape"):
        async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape(path)) as cluster:
            people = people_of(fake, cluster)
            for number in range(60):
                await people.upsert(f"k{number}", number)
                if number % 10 == 0:
                    await trio.sleep(2 * decision_recording.GATHERED_SECONDS)

    operations, end = tape_on(path)
    assert 1 <= len(operations) < 60
    assert ("disk", counts[-1]) == (end.reason, end.lost)
    assert 1 == len(caplog.records)


async def test_a_slow_disk_delays_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write hangs, calls succeed, memory stays bounded, and the end counts the facts that were lost."""
    tape, freed = DecisionTape(tmp_path / "file.tape"), threading.Event()
    tape.capacity = 30

    def write(descriptor: int, data: bytes, at: int) -> int:
        freed.wait()
        return os.pwrite(descriptor, data, at)

    async with open_fake_cluster() as fake, fake.open_client(tape=tape) as cluster:
        people = people_of(fake, cluster)
        await people.upsert("k", 0)
        monkeypatch.setattr(tape_file, "pwrite", write)
        await trio.sleep(2 * decision_recording.GATHERED_SECONDS)
        for number in range(200):
            await people.upsert(f"k{number}", number)
        freed.set()

    operations, end = tape_on(tmp_path / "file.tape")
    assert ("closed", True) == (end.reason, end.lost > 100)
    assert "completed" == operations[-1].result


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A pipe is refused without a wait for its reader, and a device is refused and keeps its mode."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(OSError, match="regular"):
        tape_file.create(tmp_path / "pipe")
    os.close(reader)
    with pytest.raises(OSError, match="No such device"):
        tape_file.create(tmp_path / "pipe")
    mode = stat.S_IMODE(os.stat(os.devnull).st_mode)
    with pytest.raises(OSError, match="regular"):
        tape_file.create(Path(os.devnull))
    assert mode == stat.S_IMODE(os.stat(os.devnull).st_mode)


async def test_a_wrong_path_saves_nothing(tmp_path: Path) -> None:
    """``save_tape`` refuses an invalid path, and leaves no file behind if the path is that of a folder."""
    async with open_fake_cluster() as fake, fake.open_client(tape=DecisionTape.ring()) as cluster:
        for path in ("", "a\0b", 7):
            with pytest.raises(InvalidArgumentException):
                await cluster.save_tape(path)  # type: ignore[arg-type]
        (tmp_path / "folder").mkdir()
        with pytest.raises(IsADirectoryError):
            await cluster.save_tape(tmp_path / "folder")

    assert ["folder"] == os.listdir(tmp_path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """A tape replaces a file and its mode, but does not follow a symbolic link."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o644)
    (tmp_path / "link").symlink_to(tmp_path / "file")

    with pytest.raises(OSError, match="link"):
        tape_file.create(tmp_path / "link")
    with pytest.raises(FileExistsError):
        tape_file.create(tmp_path / "file", replace=False)
    os.close(tape_file.create(tmp_path / "file"))

    assert (0o600, 0) == (stat.S_IMODE((tmp_path / "file").stat().st_mode), (tmp_path / "file").stat().st_size)


SECRETS = [
    f"sEcReT{name}7391" for name in ("Key", "Value", "Path", "Statement", "Parameter", "User", "Password", "Text")
]
NAMES = ["sEcReTBucket7391", "sEcReTScope7391", "sEcReTCollection7391"]


def forms_of(secret: str) -> set[bytes]:
    """Return a secret raw, in hex of both cases, and in base64 at each of the three alignments, without the ends."""
    raw = secret.encode()
    shifted = {base64.b64encode(b"x" * shift + raw)[4 : -4 - shift] for shift in range(3)}
    return {raw, raw.hex().encode(), raw.hex().upper().encode(), *shifted}


@pytest.mark.parametrize("names", [True, False])
async def test_no_secret_is_on_a_tape(tmp_path: Path, names: bool) -> None:
    """No key, value, path, statement, parameter, user, password or server's text is on a tape, nor a hidden name."""
    key, value, path, statement, parameter, user, password, text = SECRETS
    bucket, scope, collection = NAMES
    options = FakeNodeOptions(
        username=user,
        password=password,
        buckets=(bucket,),
        collections={"_default": {"_default": 0}, scope: {collection: 8}},
    )
    make = partial(DecisionTape.ring, names=names, pseudonyms=True)
    async with open_fake_cluster(options=options) as fake:
        file = DecisionTape(tmp_path / "file.tape", names=names, pseudonyms=True)
        for tape in (make(), file):
            async with fake.open_client(tape=tape, authenticator=PasswordAuthenticator(user, password)) as cluster:
                people = cluster.bucket(bucket).scope(scope).collection(collection)
                fake.node.faults.next(
                    Opcode.SET, status(0x86, json.dumps({"error": {"context": text, "ref": text}}).encode(), 1)
                )
                fake.node.faults.next(Opcode.GET, hang_up())
                await people.upsert(key, {path: value})
                await people.get(key)
                await people.lookup_in(key, [LookupInSpec.get(path)])
                with pytest.raises(CouchbaseException):
                    await people.get(key + "missing")
                with pytest.raises(CouchbaseException):
                    async with cluster.query(
                        f"NONSENSE {statement}", parameter, named_parameters={"p": parameter}
                    ) as rows:
                        [row async for row in rows]
                if tape is not file:
                    await cluster.save_tape(tmp_path / "ring.tape")

    for name in ("file.tape", "ring.tape"):
        contents = (tmp_path / name).read_bytes()
        forms = {form for secret in SECRETS + ([] if names else NAMES) for form in forms_of(secret)}
        assert [] == [form for form in forms if form in contents]
        assert 5 <= len(tape_on(tmp_path / name)[0])
        assert names == (bucket.encode() in contents)
