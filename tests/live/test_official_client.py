"""The official client, release 4.6, with ``triclinium serve``: alone, and in turns with triclinium."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest
import trio

from tests.live.line_process import LineProcess
from triclinium import Cas, Collection, RawBinaryTranscoder, RawStringTranscoder, Transcoder, errors
from triclinium._cli.serve.description import official_program
from triclinium.testing import open_tcp_cluster
from triclinium_core.testing import FakeNode, FakeNodeOptions

pytestmark = pytest.mark.live

NOT_FOUND = {"error": "DocumentNotFoundException"}
ALL_BYTES = bytes(range(256))


# -- The official client alone.


@pytest.mark.parametrize(
    "question",
    [
        {"do": "get"},
        {"do": "replace", "value": 1},
        {"do": "remove"},
        {"do": "touch", "expiry": 100},
        {"do": "get_and_touch", "expiry": 100},
        {"do": "get_and_lock", "time": 10},
        {"do": "unlock", "cas": 1},
        {"do": "append", "value": {"bytes": "00"}},
        {"do": "prepend", "value": {"bytes": "00"}},
        {"do": "increment"},
        {"do": "decrement"},
    ],
    ids=lambda question: question["do"],
)
def test_a_missing_document_is_not_found(official: LineProcess, key: str, question: dict[str, Any]) -> None:
    """Each operation that needs a document raises DocumentNotFoundException, and does not create the document."""
    assert NOT_FOUND == official.ask(key=key, **question)
    assert {"result": False} == official.ask(do="exists", key=key)


def test_create_read_replace_and_remove(official: LineProcess, key: str) -> None:
    """Documents are created once, read, replaced and removed."""
    ask = partial(official.ask, key=key)
    inserted = ask(do="insert", value={"born": 1815})["result"]

    assert {"error": "DocumentExistsException"} == ask(do="insert", value=0)
    assert {"result": {"content": {"born": 1815}, "cas": inserted}} == ask(do="get")
    assert {"result": True} == ask(do="exists")
    upserted = ask(do="upsert", value=["ada"])["result"]
    replaced = ask(do="replace", value=[])["result"]
    assert inserted < upserted < replaced
    assert {"result": {"content": [], "cas": replaced}} == ask(do="get")
    assert replaced < ask(do="remove")["result"]
    assert NOT_FOUND == ask(do="get")


def test_an_old_cas_changes_nothing(official: LineProcess, key: str) -> None:
    """With an old CAS, the client neither replaces nor removes a document."""
    ask = partial(official.ask, key=key)
    old = ask(do="insert", value=1)["result"]
    new = ask(do="replace", value=2, cas=old)["result"]

    assert {"error": "CasMismatchException"} == ask(do="replace", value=3, cas=old)
    assert {"error": "CasMismatchException"} == ask(do="remove", cas=old)
    assert {"result": {"content": 2, "cas": new}} == ask(do="get")
    assert new < ask(do="remove", cas=new)["result"]


def test_touch_changes_the_cas(official: LineProcess, key: str) -> None:
    """A touch changes the CAS and keeps the content."""
    ask = partial(official.ask, key=key)
    written = ask(do="upsert", value="ada")["result"]
    touched = ask(do="touch", expiry=100)["result"]
    found = ask(do="get_and_touch", expiry=200)["result"]

    assert written < touched < found["cas"]
    assert "ada" == found["content"]
    assert {"result": found} == ask(do="get")


def test_locks(official: LineProcess, key: str) -> None:
    """Only the CAS of the lock unlocks a document; a write with that CAS unlocks it, too."""
    ask = partial(official.ask, key=key)
    ask(do="upsert", value=1)
    lock = ask(do="get_and_lock", time=30)["result"]

    assert 1 == lock["content"]
    assert {"error": "CasMismatchException"} == ask(do="unlock", cas=lock["cas"] + 1)
    assert {"result": None} == ask(do="unlock", cas=lock["cas"])
    assert {"error": "DocumentNotLockedException"} == ask(do="unlock", cas=lock["cas"])
    again = ask(do="get_and_lock", time=30)["result"]["cas"]
    assert again < ask(do="replace", value=2, cas=again)["result"]
    assert 2 == ask(do="get")["result"]["content"]


def test_counters(official: LineProcess, key: str) -> None:
    """The client creates a counter with its initial value; the counter counts up, and down to 0 but not below."""
    ask = partial(official.ask, key=key)

    assert {"result": 5} == ask(do="increment", initial=5, delta=7)
    assert {"result": 12} == ask(do="increment", initial=5, delta=7)
    assert {"result": 11} == ask(do="decrement")
    assert {"result": 0} == ask(do="decrement", delta=100)


def test_concatenation(official: LineProcess, key: str) -> None:
    """``append`` and ``prepend`` add bytes at the end and at the beginning."""
    ask = partial(official.ask, key=key)
    ask(do="upsert", value={"bytes": "01"}, **{"as": "binary"})
    ask(do="append", value={"bytes": "02ff"})
    ask(do="prepend", value={"bytes": "00"})

    assert {"bytes": "000102ff"} == ask(do="get", **{"as": "binary"})["result"]["content"]


# -- Both clients on the same documents.


class Stored(NamedTuple):
    """Value in a format that both clients support."""

    value: object
    kind: str
    transcoder: Transcoder | None

    @property
    def line(self) -> object:
        """Value in the JSON form that commands and answers of the worker use."""
        return {"bytes": self.value.hex()} if isinstance(self.value, bytes) else self.value


VALUES = {
    "json": Stored({"name": "Ada Ἀριθμός", "born": 1815, "tags": [True, None, 1.5, "x" * 100]}, "json", None),
    "string": Stored('text, "quoted", with Ἀριθμός' * 20, "string", RawStringTranscoder()),
    "bytes": Stored(ALL_BYTES, "binary", RawBinaryTranscoder()),
    "a megabyte": Stored(ALL_BYTES * 4096, "binary", RawBinaryTranscoder()),
    "no bytes": Stored(b"", "binary", RawBinaryTranscoder()),
}


@pytest.mark.parametrize("stored", VALUES.values(), ids=VALUES.keys())
async def test_values_are_exchanged(official: LineProcess, ours: Collection, key: str, stored: Stored) -> None:
    """Each client reads the values of the other in every format, with the same CAS."""
    ask = partial(official.ask, **{"as": stored.kind})
    their_cas = ask(do="upsert", key=key, value=stored.line)["result"]
    found = await ours.get(key, transcoder=stored.transcoder)
    our_cas = (await ours.upsert(f"{key} back", stored.value, transcoder=stored.transcoder)).cas

    assert (stored.value, their_cas) == (found.content, found.cas)
    assert {"result": {"content": stored.line, "cas": our_cas}} == ask(do="get", key=f"{key} back")


async def test_both_clients_use_the_same_cas(official: LineProcess, ours: Collection, key: str) -> None:
    """A CAS that one client received is valid in the other client, until one of them writes."""
    first = Cas(official.ask(do="insert", key=key, value=1)["result"])
    second = (await ours.replace(key, 2, cas=first)).cas

    assert {"error": "CasMismatchException"} == official.ask(do="replace", key=key, value=3, cas=first)
    assert {"result": {"content": 2, "cas": second}} == official.ask(do="get", key=key)
    official.ask(do="replace", key=key, value=3, cas=second)
    with pytest.raises(errors.CasMismatchException):
        await ours.remove(key, cas=second)


async def test_both_clients_use_the_same_locks(official: LineProcess, ours: Collection, key: str) -> None:
    """Each client can unlock a document that the other has locked, but only with the CAS of the lock."""
    official.ask(do="insert", key=key, value=1)
    lock = Cas(official.ask(do="get_and_lock", key=key, time=30)["result"]["cas"])

    with pytest.raises(errors.CasMismatchException):
        await ours.unlock(key, Cas(lock + 1))
    await ours.unlock(key, lock)
    lock = (await ours.get_and_lock(key, timedelta(seconds=30))).cas
    assert {"result": None} == official.ask(do="unlock", key=key, cas=lock)


async def test_both_clients_use_the_same_counters(official: LineProcess, ours: Collection, key: str) -> None:
    """Both clients count in the same document, and after one client has removed it, the other does not find it."""
    await ours.binary.increment(key, initial=10)

    assert {"result": 11} == official.ask(do="increment", key=key)
    assert 8 == (await ours.binary.decrement(key, delta=3)).content
    official.ask(do="remove", key=key)
    with pytest.raises(errors.DocumentNotFoundException):
        await ours.binary.increment(key)


# -- The printed program.


async def test_the_printed_program_runs(couchbase_package: None, safety_net: None) -> None:
    """The program that ``serve`` prints can be copied, and writes and reads a document."""
    async with open_tcp_cluster(FakeNode(FakeNodeOptions(password="it's \"\\{0}"))) as fake:
        program = await trio.run_process([sys.executable, "-c", official_program(fake)], capture_stdout=True)

    assert b"{'born': 1815}\n" == program.stdout
