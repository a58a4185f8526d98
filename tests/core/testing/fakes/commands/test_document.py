"""Commands on one document, with their changes and their replies."""

from __future__ import annotations

import struct

import pytest

from tests.core.testing.node_client import USUAL_FEATURES, NodeClient, ready_client, status_of
from tests.rows import rows
from triclinium_core.kv.wire.compression import inflate
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS, Document
from triclinium_core.testing.fakes.store.histories import vbucket_uuid

UINT64_MAX = 2**64 - 1
NO_CREATION = 0xFFFF_FFFF
PRESERVE = encode_framing_extras({RequestFrameInfo.PRESERVE_TTL: b""})


def store(client: NodeClient, opcode: Opcode, value: bytes = b"1", *, expiry: int = 0, **parts: int | bytes) -> Frame:
    """Write the document "ada" with flags 7, and return the reply."""
    return client.ask_of(opcode, "ada", extras=struct.pack(">II", 7, expiry), value=value, **parts)


def count(client: NodeClient, opcode: Opcode, delta: int, initial: int = 0, expiry: int = NO_CREATION) -> Frame:
    """Change the counter "ada", and return the reply."""
    return client.ask_of(opcode, "ada", extras=struct.pack(">QQI", delta, initial, expiry))


def stored(client: NodeClient) -> Document:
    """Return the document "ada"."""
    document = client.node.documents.get("default", "ada")
    assert document is not None
    return document


def test_reads_what_was_written() -> None:
    """A read returns the flags, value, datatype and CAS of the write."""
    client = ready_client()
    written = store(client, Opcode.SET, b'{"born":1815}')

    reply = client.ask_of(Opcode.GET, "ada")

    assert (b'{"born":1815}', struct.pack(">I", 7), Datatype.JSON, written.cas) == (
        reply.value,
        reply.extras,
        reply.datatype,
        reply.cas,
    )
    assert stored(client).cas == written.cas


@rows(
    ("opcode", "parts", "status"),
    [
        (Opcode.GET, {}, Status.KEY_NOT_FOUND),
        (Opcode.GET_META, {}, Status.KEY_NOT_FOUND),
        (Opcode.SET, {"extras": bytes(8), "cas": 1}, Status.KEY_NOT_FOUND),
        (Opcode.REPLACE, {"extras": bytes(8)}, Status.KEY_NOT_FOUND),
        (Opcode.DELETE, {}, Status.KEY_NOT_FOUND),
        (Opcode.TOUCH, {"extras": bytes(4)}, Status.KEY_NOT_FOUND),
        (Opcode.GET_AND_TOUCH, {"extras": bytes(4)}, Status.KEY_NOT_FOUND),
        (Opcode.GET_AND_LOCK, {}, Status.KEY_NOT_FOUND),
        (Opcode.UNLOCK, {"cas": 1}, Status.KEY_NOT_FOUND),
        (Opcode.APPEND, {"value": b"2"}, Status.NOT_STORED),
        (Opcode.APPEND, {"value": b"2", "cas": 7}, Status.NOT_STORED),
        (Opcode.PREPEND, {"value": b"2"}, Status.NOT_STORED),
        (Opcode.PREPEND, {"value": b"2", "cas": 7}, Status.NOT_STORED),
    ],
)
def test_finds_no_document_that_is_not_there(opcode: Opcode, parts: dict[str, int | bytes], status: Status) -> None:
    """If the document is missing, commands that need it fail and do not create it."""
    client = ready_client()

    assert status == status_of(client.ask_of(opcode, "ada", **parts))
    assert client.node.documents.get("default", "ada") is None


def test_insert_needs_a_missing_document() -> None:
    """An insert fails if the document exists, and succeeds once it was removed or has expired."""
    client = ready_client()

    assert Status.SUCCESS == status_of(store(client, Opcode.ADD, expiry=5))
    assert Status.KEY_EXISTS == status_of(store(client, Opcode.ADD))
    client.now = 5.0
    assert Status.SUCCESS == status_of(store(client, Opcode.ADD))
    client.ask_of(Opcode.DELETE, "ada")
    assert Status.SUCCESS == status_of(store(client, Opcode.ADD))


@pytest.mark.parametrize("opcode", [Opcode.SET, Opcode.REPLACE, Opcode.DELETE, Opcode.APPEND, Opcode.PREPEND])
def test_changes_only_the_version_that_is_meant(opcode: Opcode) -> None:
    """A write with a wrong CAS is refused, and a write with the current CAS succeeds."""
    client = ready_client()
    cas = store(client, Opcode.SET).cas
    parts: dict[str, int | bytes] = {} if opcode is Opcode.DELETE else {"value": b"2"}
    if opcode in {Opcode.SET, Opcode.REPLACE}:
        parts["extras"] = bytes(8)

    assert Status.KEY_EXISTS == status_of(client.ask_of(opcode, "ada", cas=cas + 1, **parts))
    assert b"1" == stored(client).value
    reply = client.ask_of(opcode, "ada", cas=cas, **parts)
    assert Status.SUCCESS == status_of(reply)
    assert reply.cas > cas


def test_adds_bytes_at_both_ends() -> None:
    """Appending and prepending keep flags and expiry, and the datatype follows from the new value."""
    client = ready_client()
    store(client, Opcode.SET, b"2", expiry=50)
    client.ask_of(Opcode.APPEND, "ada", value=b"]")
    client.ask_of(Opcode.PREPEND, "ada", value=b"[")
    document = stored(client)

    assert (b"[2]", 7, 50.0, Datatype.JSON) == (
        document.value,
        document.flags,
        document.expires_at,
        document.datatype,
    )


def test_adds_no_more_bytes_than_fit() -> None:
    """An append that would exceed the maximum size is refused."""
    client = ready_client()
    store(client, Opcode.SET, bytes(VALUE_SIZE_MAX - 1))

    assert Status.SUCCESS == status_of(client.ask_of(Opcode.APPEND, "ada", value=b"1"))
    assert Status.TOO_BIG == status_of(client.ask_of(Opcode.APPEND, "ada", value=b"1"))


@pytest.mark.parametrize(
    ("opcode", "before", "delta", "after"),
    [
        (Opcode.INCREMENT, b"10", 5, 15),
        (Opcode.INCREMENT, b"007", 0, 7),
        (Opcode.INCREMENT, b"%d" % UINT64_MAX, 2, 1),
        (Opcode.DECREMENT, b"10", 3, 7),
        (Opcode.DECREMENT, b"10", 11, 0),
        (Opcode.DECREMENT, b"%d" % UINT64_MAX, UINT64_MAX, 0),
    ],
)
def test_counts(opcode: Opcode, before: bytes, delta: int, after: int) -> None:
    """A counter wraps at its maximum, stops at 0, and is stored in digits with its flags."""
    client = ready_client()
    store(client, Opcode.SET, before)
    reply = count(client, opcode, delta)

    assert after == int.from_bytes(reply.value, "big")
    assert 8 == len(reply.value)
    assert (b"%d" % after, 7, reply.cas) == (stored(client).value, stored(client).flags, stored(client).cas)


@rows("value", [b"", b"x", b"-1", b" 1", b"1.0", b"%d" % 2**64, b"1" * 5000, "٣".encode()])
@rows("opcode", [Opcode.INCREMENT, Opcode.DECREMENT])
def test_counts_only_numbers(opcode: Opcode, value: bytes) -> None:
    """A document that is not an unsigned 64-bit number is refused and stays unchanged."""
    client = ready_client()
    store(client, Opcode.SET, value)

    assert Status.DELTA_BAD_VALUE == status_of(count(client, opcode, 1))
    assert value == stored(client).value


@pytest.mark.parametrize("opcode", [Opcode.INCREMENT, Opcode.DECREMENT])
def test_creates_a_missing_counter(opcode: Opcode) -> None:
    """A missing counter is created with its initial value and expiry if permitted; counting keeps its expiry."""
    client = ready_client()

    assert Status.KEY_NOT_FOUND == status_of(count(client, opcode, 1, 10, NO_CREATION))
    reply = count(client, opcode, 1, 10, 60)
    document = stored(client)
    count(client, opcode, 1, 10, 90)

    assert 10 == int.from_bytes(reply.value, "big")
    assert (b"10", 0, 60.0) == (document.value, document.flags, document.expires_at)
    assert 60.0 == stored(client).expires_at


@pytest.mark.parametrize("opcode", [Opcode.SET, Opcode.REPLACE])
def test_preserves_an_expiry(opcode: Opcode) -> None:
    """A write sets the expiry of an existing document, or preserves it; a new document always gets the new expiry."""
    client = ready_client()
    store(client, Opcode.SET, expiry=60, framing_extras=PRESERVE)
    created = stored(client).expires_at
    store(client, opcode, b"2", expiry=90, framing_extras=PRESERVE)
    kept = stored(client).expires_at
    store(client, opcode, b"3", expiry=90)

    assert [60.0, 60.0, 90.0] == [created, kept, stored(client).expires_at]


@pytest.mark.parametrize("opcode", [Opcode.TOUCH, Opcode.GET_AND_TOUCH])
def test_touches(opcode: Opcode) -> None:
    """A touch changes expiry and CAS; the command that also reads returns the value and the flags."""
    client = ready_client()
    before = store(client, Opcode.SET, expiry=60).cas
    reply = client.ask_of(opcode, "ada", extras=struct.pack(">I", 90))
    is_read = opcode is Opcode.GET_AND_TOUCH

    assert 90.0 == stored(client).expires_at
    assert stored(client).cas == reply.cas > before
    assert (b"1" if is_read else b"", struct.pack(">I", 7) if is_read else b"") == (reply.value, reply.extras)


def test_a_locked_document_changes_for_its_holder_only() -> None:
    """Without the CAS of the lock, a locked document cannot be changed, touched or locked again."""
    client = ready_client()
    before = store(client, Opcode.SET).cas
    lock = client.ask_of(Opcode.GET_AND_LOCK, "ada")
    attempts: dict[Opcode, dict[str, int | bytes]] = {
        Opcode.SET: {"extras": bytes(8)},
        Opcode.REPLACE: {"extras": bytes(8), "cas": before},
        Opcode.DELETE: {"cas": LOCKED_CAS - 1},
        Opcode.APPEND: {"value": b"2"},
        Opcode.PREPEND: {"value": b"2"},
        Opcode.INCREMENT: {"extras": bytes(20)},
        Opcode.DECREMENT: {"extras": bytes(20)},
        Opcode.TOUCH: {"extras": bytes(4)},
        Opcode.GET_AND_TOUCH: {"extras": bytes(4)},
        Opcode.GET_AND_LOCK: {},
    }
    refused = {opcode: status_of(client.ask_of(opcode, "ada", **parts)) for opcode, parts in attempts.items()}

    assert (b"1", struct.pack(">I", 7)) == (lock.value, lock.extras)
    assert dict.fromkeys(refused, Status.LOCKED) == refused
    assert Status.KEY_EXISTS == status_of(store(client, Opcode.ADD))
    assert [LOCKED_CAS] * 2 == [client.ask_of(opcode, "ada").cas for opcode in (Opcode.GET, Opcode.GET_META)]
    assert lock.cas == stored(client).cas
    assert Status.SUCCESS == status_of(store(client, Opcode.REPLACE, b"2", cas=lock.cas))
    assert Status.SUCCESS == status_of(store(client, Opcode.SET))


def test_unlocks_for_the_holder_only() -> None:
    """An unlock with a wrong CAS gets LOCKED, and without a lock NOT_LOCKED; the lock's CAS ends the lock."""
    client = ready_client()
    store(client, Opcode.SET)
    lock = client.ask_of(Opcode.GET_AND_LOCK, "ada")

    assert Status.LOCKED == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=lock.cas + 1))
    unlocked = client.ask_of(Opcode.UNLOCK, "ada", cas=lock.cas)
    assert (Status.SUCCESS, lock.cas) == (unlocked.status, unlocked.cas)
    assert Status.NOT_LOCKED == status_of(client.ask_of(Opcode.UNLOCK, "ada", cas=lock.cas))
    assert Status.SUCCESS == status_of(store(client, Opcode.SET))


@pytest.mark.parametrize(
    ("extras", "seconds"),
    [
        (b"", 15),
        (struct.pack(">I", 1), 1),
        (struct.pack(">I", 30), 30),
        (struct.pack(">I", 31), 15),
        (struct.pack(">I", 0), 15),
    ],
)
def test_a_lock_runs_out(extras: bytes, seconds: int) -> None:
    """A lock lasts for the requested time, or for 15 seconds if that is 0, missing or above 30."""
    client = ready_client()
    store(client, Opcode.SET)
    client.ask_of(Opcode.GET_AND_LOCK, "ada", extras=extras)

    client.now = seconds - 0.01
    assert Status.LOCKED == status_of(store(client, Opcode.SET))
    client.now = float(seconds)
    assert Status.SUCCESS == status_of(store(client, Opcode.SET))


@pytest.mark.parametrize(("extras", "tail"), [(b"", b""), (b"\1", b""), (b"\2", b"\1")])
def test_metadata_of_a_document(extras: bytes, tail: bytes) -> None:
    """The metadata are flags, expiry, sequence number and CAS, and in version 2 the datatype."""
    client = ready_client()
    cas = store(client, Opcode.SET, expiry=60).cas
    reply = client.ask_of(Opcode.GET_META, "ada", extras=extras)

    assert struct.pack(">IIIQ", 0, 7, 1_750_000_060, 1) + tail == reply.extras
    assert (cas, b"") == (reply.cas, reply.value)


def test_unknown_version_of_the_metadata() -> None:
    """A request for the metadata in version 3 is refused."""
    client = ready_client()
    store(client, Opcode.SET)

    assert Status.INVALID_ARGUMENTS == status_of(client.ask_of(Opcode.GET_META, "ada", extras=b"\3"))


def test_metadata_of_a_removed_document() -> None:
    """Metadata of a removed or expired document have the mark for deleted documents."""
    client = ready_client()
    store(client, Opcode.SET)
    removed = client.ask_of(Opcode.DELETE, "ada")
    after_removal = client.ask_of(Opcode.GET_META, "ada")
    store(client, Opcode.SET, expiry=5)
    client.now = 5.0
    after_expiry = client.ask_of(Opcode.GET_META, "ada")

    assert struct.pack(">IIIQ", 1, 0, 0, 2) == after_removal.extras
    assert removed.cas == after_removal.cas
    assert 1 == struct.unpack_from(">I", after_expiry.extras)[0]
    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada"))


@pytest.mark.parametrize(
    "opcode",
    [
        Opcode.SET,
        Opcode.REPLACE,
        Opcode.APPEND,
        Opcode.PREPEND,
        Opcode.INCREMENT,
        Opcode.DECREMENT,
        Opcode.DELETE,
    ],
)
def test_mutation_token(opcode: Opcode) -> None:
    """If mutation tokens were granted, a mutation returns a token with the vbucket's uuid and the sequence number."""
    extras = {Opcode.SET: 8, Opcode.REPLACE: 8, Opcode.INCREMENT: 20, Opcode.DECREMENT: 20}.get(opcode, 0)
    client, plain = ready_client(), ready_client(without=[HelloFeature.MUTATION_SEQNO])
    for one in (client, plain):
        store(one, Opcode.SET)

    token = client.ask_of(opcode, "ada", extras=bytes(extras)).extras

    assert struct.pack(">QQ", vbucket_uuid(368), 2) == token
    assert b"" == plain.ask_of(opcode, "ada", extras=bytes(extras)).extras


@pytest.mark.parametrize("opcode", [Opcode.GET, Opcode.GET_AND_TOUCH, Opcode.GET_AND_LOCK])
def test_deflates_documents(opcode: Opcode) -> None:
    """A document is sent deflated if compression was granted and makes it smaller, and is stored inflated."""
    client = ready_client(features=[*USUAL_FEATURES, HelloFeature.SNAPPY])
    extras = bytes(4) if opcode is Opcode.GET_AND_TOUCH else b""
    store(client, Opcode.SET, b'"x"')
    short = client.ask_of(Opcode.GET, "ada")
    value = b'"%b"' % (b"x" * 99)
    store(client, Opcode.SET, value)
    reply = client.ask_of(opcode, "ada", extras=extras)

    assert (Datatype.JSON, b'"x"') == (short.datatype, short.value)
    assert Datatype.JSON | Datatype.SNAPPY == reply.datatype
    assert value == inflate(reply.value) == stored(client).value
