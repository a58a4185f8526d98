"""Checks of a request, which the node makes before it carries the command out."""

from __future__ import annotations

import cramjam
import pytest

from tests.core.testing.node_client import as_json, ready_client, status_of, with_options
from tests.rows import rows
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandRefused
from triclinium_core.testing.fakes.commands.index import COMMANDS, DATA_OPCODES
from triclinium_core.testing.fakes.commands.read_request import SECONDS_DEFAULT, Needs, read_durability_timeout

STORE = bytes(8)
COUNTER = bytes(20)

WELL_FORMED: dict[Opcode, dict[str, int | bytes]] = {
    Opcode.GET: {},
    Opcode.GET_META: {},
    Opcode.GET_REPLICA: {},
    Opcode.GET_AND_TOUCH: {"extras": bytes(4)},
    Opcode.TOUCH: {"extras": bytes(4)},
    Opcode.GET_AND_LOCK: {},
    Opcode.UNLOCK: {"cas": 1},
    Opcode.SET: {"extras": STORE},
    Opcode.ADD: {"extras": STORE},
    Opcode.REPLACE: {"extras": STORE},
    Opcode.DELETE: {},
    Opcode.APPEND: {},
    Opcode.PREPEND: {},
    Opcode.INCREMENT: {"extras": COUNTER},
    Opcode.DECREMENT: {"extras": COUNTER},
    Opcode.SUBDOC_MULTI_LOOKUP: {"value": b"\xc5\x00\x00\x01a"},
    Opcode.SUBDOC_MULTI_MUTATION: {"value": b"\xc9\x00\x00\x01\x00\x00\x00\x00a"},
}
OPTIONAL: dict[Opcode, str] = {
    Opcode.GET_AND_TOUCH: "durability",
    Opcode.TOUCH: "durability",
    Opcode.UNLOCK: "cas",
    Opcode.SET: "value cas expiry durability",
    Opcode.ADD: "value durability",
    Opcode.REPLACE: "value cas expiry durability",
    Opcode.DELETE: "cas durability",
    Opcode.APPEND: "value cas expiry durability",
    Opcode.PREPEND: "value cas expiry durability",
    Opcode.INCREMENT: "expiry durability",
    Opcode.DECREMENT: "expiry durability",
    Opcode.SUBDOC_MULTI_LOOKUP: "cas",
    Opcode.SUBDOC_MULTI_MUTATION: "cas expiry durability",
}
"""Parts that a request may have, by their names in ``ATTEMPTS``."""

ATTEMPTS: dict[str, tuple[dict[str, int | bytes], Status]] = {
    "extras": ({"extras": bytes(7)}, Status.INVALID_ARGUMENTS),
    "value": ({"value": b"1"}, Status.INVALID_ARGUMENTS),
    "cas": ({"cas": 7}, Status.INVALID_ARGUMENTS),
    "expiry": (
        {"framing_extras": encode_framing_extras({RequestFrameInfo.PRESERVE_TTL: b""})},
        Status.NOT_SUPPORTED,
    ),
    "durability": (
        {"framing_extras": encode_framing_extras({RequestFrameInfo.DURABILITY: b"\1"})},
        Status.NOT_SUPPORTED,
    ),
}
"""Parts, each with the status with which the node refuses a request that must not have it."""


OTHER_PARTS: dict[Opcode, dict[str, int | bytes]] = {
    Opcode.SELECT_BUCKET: {"key": b"default"},
    Opcode.GET_COLLECTION_ID: {"value": b"."},
    Opcode.GET_ERROR_MAP: {"value": b"\0\2"},
    Opcode.OBSERVE: {"value": bytes(4)},
    Opcode.RANGE_SCAN_CREATE: {"value": b"{}", "datatype": Datatype.JSON},
    Opcode.RANGE_SCAN_CONTINUE: {"extras": bytes(28)},
    Opcode.RANGE_SCAN_CANCEL: {"extras": bytes(16)},
}
"""Parts that commands outside of ``WELL_FORMED`` need."""


def test_the_cases_here_are_all_data_operations() -> None:
    """The cases of this module are exactly the commands that a fault without an opcode may strike."""
    assert DATA_OPCODES == WELL_FORMED.keys()


@rows("opcode", WELL_FORMED)
def test_takes_only_the_parts_that_it_has(opcode: Opcode) -> None:
    """Extras of a wrong length, and a value, CAS or frame info that the command does not use, are refused."""
    client = ready_client()
    taken = {
        name
        for name, (part, refusal) in ATTEMPTS.items()
        if status_of(client.ask_of(opcode, "ada", **(WELL_FORMED[opcode] | part))) != refusal
    }

    assert {*OPTIONAL.get(opcode, "").split()} == taken


@pytest.mark.parametrize(
    ("opcode", "parts", "context"),
    [
        (Opcode.GET, {}, "a key "),
        (Opcode.NOOP, {"key": b"a"}, "a key "),
        (Opcode.SASL_AUTH, {"value": b"a"}, "a key "),
        (Opcode.SELECT_BUCKET, {}, "a key "),
        (Opcode.GET_ERROR_MAP, {}, "a value "),
        (Opcode.GET_COLLECTION_ID, {}, "a value "),
        (Opcode.HELLO, {"cas": 1}, "a CAS "),
        (Opcode.UNLOCK, {"key": b"\0ada"}, "a CAS "),
        (Opcode.GET, {"key": b"\0ada", "datatype": Datatype.JSON}, "the datatype 0x01 "),
    ],
)
def test_demands_and_refuses_keys_and_values(opcode: Opcode, parts: dict[str, int | bytes], context: str) -> None:
    """The error for a missing or forbidden part describes the part, if extended errors were granted."""
    reply = ready_client().ask(opcode, **parts)

    assert Status.INVALID_ARGUMENTS == status_of(reply)
    assert context in str(as_json(reply.value)["error"])
    assert Datatype.JSON == reply.datatype


@rows(
    ("opcode", "needs"),
    [
        (opcode, command.needs)
        for opcode, command in COMMANDS.items()
        if opcode not in {Opcode.SASL_AUTH, Opcode.SASL_STEP}
    ],
)
def test_answers_in_the_order_of_the_bootstrap(opcode: Opcode, needs: Needs) -> None:
    """Before authentication, the node accepts only commands of the bootstrap; without a bucket, none on documents."""
    parts = {**WELL_FORMED, **OTHER_PARTS}.get(opcode, {}) | ({"key": b"\0ada"} if needs is Needs.DOCUMENT else {})
    client = ready_client(bucket=None)
    client.ask(Opcode.SASL_AUTH, key=b"PLAIN", value=b"wrong")
    before = client.ask(opcode, **parts)
    client.hello([HelloFeature.XERROR, HelloFeature.COLLECTIONS, HelloFeature.JSON])
    client.authenticate_plain()
    after = client.ask(opcode, **parts)

    assert (Status.SUCCESS if needs is Needs.NOTHING else Status.NO_ACCESS) == status_of(before)
    expected = Status.SUCCESS if needs in (Needs.NOTHING, Needs.AUTHENTICATION) else Status.NO_BUCKET
    assert expected == status_of(after)


@rows(
    ("key", "status"),
    [
        (b"\0a", Status.KEY_NOT_FOUND),
        (b"\0" + b"a" * 250, Status.KEY_NOT_FOUND),
        (b"\0" + b"a" * 251, Status.INVALID_ARGUMENTS),
        (b"\x08a", Status.KEY_NOT_FOUND),
        (b"\x08" + b"a" * 246, Status.KEY_NOT_FOUND),
        (b"\x08" + b"a" * 247, Status.INVALID_ARGUMENTS),
        (b"\xd5\x0aa", Status.KEY_NOT_FOUND),
        (b"\0", Status.INVALID_ARGUMENTS),
        (b"\x80", Status.INVALID_ARGUMENTS),
        (b"\x80\0a", Status.INVALID_ARGUMENTS),
        (b"\x09a", Status.UNKNOWN_COLLECTION),
    ],
)
def test_reads_the_collection_in_front_of_a_key(key: bytes, status: Status) -> None:
    """If collections were negotiated, a key must have the prefix of an existing collection; its size is limited."""
    node = with_options(collections={"_default": {"_default": 0}, "other": {"near": 8, "far": 0x555}})

    assert status == status_of(ready_client(node).ask(Opcode.GET, key=key))


def test_without_collections_a_key_is_only_a_key() -> None:
    """If collections were not negotiated, the first byte of a key belongs to the key."""
    client = ready_client(without=[HelloFeature.COLLECTIONS])

    client.ask_of(Opcode.SET, "\tada", extras=STORE, value=b"1")

    assert b"1" == client.ask_of(Opcode.GET, "\tada").value
    assert client.node.documents.get("default", "\tada") is not None


@pytest.mark.parametrize("vbuckets", [128, 1024])
def test_refuses_a_vbucket_out_of_range(vbuckets: int) -> None:
    """A vbucket out of range is refused with the config, each time."""
    client = ready_client(with_options(vbuckets=vbuckets))

    assert Status.KEY_NOT_FOUND == status_of(client.ask_of(Opcode.GET, "ada", vbucket=vbuckets - 1))
    for _ in range(2):
        reply = client.ask_of(Opcode.GET, "ada", vbucket=vbuckets)
        assert Status.NOT_MY_VBUCKET == status_of(reply)
        assert "default" == as_json(reply.value)["name"]


def test_sends_a_config_once_with_deduplication() -> None:
    """If deduplication was negotiated, a refusal does not repeat a config that the client has received."""
    dedupe = [*ready_client().features, HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP]
    client = ready_client()
    client.hello(dedupe)

    sizes = [bool(client.ask_of(Opcode.GET, "ada", vbucket=5000).value) for _ in range(2)]
    client.node.set_config_revision(2, client.now)
    sizes += [bool(client.ask_of(Opcode.GET, "ada", vbucket=5000).value) for _ in range(2)]
    client.ask(Opcode.SELECT_BUCKET, key=b"default")
    sizes.append(bool(client.ask_of(Opcode.GET, "ada", vbucket=5000).value))

    assert [True, False, True, False, True] == sizes


@pytest.mark.parametrize(
    ("framing_extras", "status"),
    [
        (encode_framing_extras({RequestFrameInfo.BARRIER: b""}), Status.SUCCESS),
        (encode_framing_extras({RequestFrameInfo.BARRIER: b"x"}), Status.INVALID_ARGUMENTS),
        (encode_framing_extras({RequestFrameInfo.PRESERVE_TTL: b"x"}), Status.INVALID_ARGUMENTS),
        (encode_framing_extras({RequestFrameInfo.DURABILITY: b"\1"}), Status.SUCCESS),
        (encode_framing_extras({RequestFrameInfo.DURABILITY: b"\4"}), Status.DURABILITY_INVALID_LEVEL),
        (encode_framing_extras({RequestFrameInfo.IMPERSONATE_USER: b"ada"}), Status.NOT_SUPPORTED),
        (encode_framing_extras({3: b""}), Status.UNKNOWN_FRAME_INFO),
        (encode_framing_extras({200: b""}), Status.UNKNOWN_FRAME_INFO),
        (b"\x15", Status.INVALID_ARGUMENTS),
    ],
    ids=str,
)
def test_reads_framing_extras(framing_extras: bytes, status: Status) -> None:
    """A known frame info must have a valid size, an unknown one is refused, and malformed extras are invalid."""
    reply = ready_client().ask_of(Opcode.SET, "ada", extras=STORE, framing_extras=framing_extras)

    assert status == status_of(reply)


@pytest.mark.parametrize(
    ("feature", "piece", "status"),
    [
        (HelloFeature.ALT_REQUEST, {RequestFrameInfo.BARRIER: b""}, Status.INVALID_ARGUMENTS),
        (HelloFeature.PRESERVE_TTL, {RequestFrameInfo.PRESERVE_TTL: b""}, Status.NOT_SUPPORTED),
        (HelloFeature.SYNC_REPLICATION, {RequestFrameInfo.DURABILITY: b"\1"}, Status.NOT_SUPPORTED),
    ],
)
def test_refuses_features_that_were_not_granted(feature: HelloFeature, piece: dict[int, bytes], status: Status) -> None:
    """Framing extras, preserving an expiry, and durability must be negotiated."""
    client = ready_client(without=[feature])
    reply = client.ask_of(Opcode.SET, "ada", extras=STORE, framing_extras=encode_framing_extras(piece))

    assert status == status_of(reply)


@pytest.mark.parametrize(
    ("granted", "datatype", "status"),
    [
        ([HelloFeature.JSON], Datatype.JSON, Status.SUCCESS),
        ([], Datatype.JSON, Status.INVALID_ARGUMENTS),
        ([HelloFeature.SNAPPY], Datatype.SNAPPY, Status.SUCCESS),
        ([HelloFeature.SNAPPY_EVERYWHERE], Datatype.SNAPPY, Status.SUCCESS),
        ([HelloFeature.JSON], Datatype.SNAPPY, Status.INVALID_ARGUMENTS),
        ([HelloFeature.SNAPPY, HelloFeature.JSON], Datatype.SNAPPY | Datatype.JSON, Status.SUCCESS),
        ([HelloFeature.SNAPPY, HelloFeature.JSON], Datatype.XATTR, Status.INVALID_ARGUMENTS),
        ([HelloFeature.SNAPPY, HelloFeature.JSON], 0x80, Status.INVALID_ARGUMENTS),
    ],
)
def test_takes_datatypes_that_were_granted(granted: list[HelloFeature], datatype: int, status: Status) -> None:
    """Each datatype bit must be negotiated; a deflated value is stored inflated."""
    client = ready_client(features=[HelloFeature.XERROR, *granted])
    value = b'"%b"' % (b"x" * 99)
    sent = bytes(cramjam.snappy.compress_raw(value)) if datatype & Datatype.SNAPPY else value

    reply = client.ask_of(Opcode.SET, "ada", extras=STORE, value=sent, datatype=datatype)
    document = client.node.documents.get("default", "ada")

    assert status == status_of(reply)
    assert (None if status else value) == (document and document.value)


def test_refuses_invalid_snappy() -> None:
    """A value marked as snappy that cannot be inflated is malformed."""
    client = ready_client(features=[HelloFeature.SNAPPY, HelloFeature.XERROR])

    reply = client.ask_of(Opcode.SET, "ada", extras=STORE, value=b"\x05", datatype=Datatype.SNAPPY)

    assert Status.INVALID_ARGUMENTS == status_of(reply)


def test_refuses_a_value_that_is_too_big() -> None:
    """A value of the maximum size is stored, and a larger one is refused."""
    client = ready_client()

    assert Status.SUCCESS == status_of(client.ask_of(Opcode.SET, "a", extras=STORE, value=bytes(VALUE_SIZE_MAX)))
    assert Status.TOO_BIG == status_of(client.ask_of(Opcode.SET, "a", extras=STORE, value=bytes(VALUE_SIZE_MAX + 1)))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("01", SECONDS_DEFAULT),
        ("02 0001", 0.001),
        ("03 2328", 9.0),
        ("01 fffe", 65.534),
        ("00", Status.DURABILITY_INVALID_LEVEL),
        ("04", Status.DURABILITY_INVALID_LEVEL),
        ("ff 2328", Status.DURABILITY_INVALID_LEVEL),
        ("01 0000", Status.INVALID_ARGUMENTS),
        ("01 ffff", Status.INVALID_ARGUMENTS),
        ("", Status.INVALID_ARGUMENTS),
        ("01 23", Status.INVALID_ARGUMENTS),
        ("01 232800", Status.INVALID_ARGUMENTS),
    ],
)
def test_reads_a_durability_requirement(content: str, expected: float | Status) -> None:
    """A requirement has a known level, and optionally a timeout in milliseconds that is not a reserved one."""
    if not isinstance(expected, Status):
        assert expected == read_durability_timeout(bytes.fromhex(content))
        return
    with pytest.raises(CommandRefused) as caught:
        read_durability_timeout(bytes.fromhex(content))

    assert expected == caught.value.status
