"""Extended attributes of a document: their keys, their macros and the virtual attributes."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.kv.operation.subdocument.specs import MutationMacro
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.store import attributes
from triclinium_core.testing.fakes.store.documents import FakeDocuments
from triclinium_core.testing.fakes.store.json_values import PathFailed


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("a", "a"),
        ("a.b", "a"),
        ("a[0].b", "a"),
        ("_sync.x", "_sync"),
        ("$document.CAS", "$document"),
        ("x" * 15 + ".y" * 100, "x" * 15),
    ],
)
def test_keys(path: str, key: str) -> None:
    """A key ends at the first dot or bracket and has at most 15 bytes."""
    assert key == attributes.key_of(path)
    assert attributes.is_valid_key(path)
    assert path.startswith("$") is attributes.is_virtual(path)


@rows("path", ["", ".a", "[0]", "x" * 16, "é" * 8, "_", "$", "$.x", "#a", "-a", "\x01a", "a\0b", "`a`"])
def test_invalid_keys(path: str) -> None:
    """A key is invalid if it is empty, only a prefix, longer than 15 bytes, or has a reserved or control character."""
    assert not attributes.is_valid_key(path)


def test_macros() -> None:
    """Only the exact macros, including their quotes, are recognised."""
    assert {MutationMacro.CAS, MutationMacro.SEQ_NO, MutationMacro.VALUE_CRC32C} == {
        attributes.read_macro(b'"%b"' % macro.value.encode()) for macro in MutationMacro
    }
    for value in (b"${Mutation.CAS}", b'"${Mutation.cas}"', b'["${Mutation.CAS}"]', b"1", b""):
        assert attributes.read_macro(value) is None


def test_expanded_macros() -> None:
    """Macros are expanded at any depth; the CAS is written with its bytes reversed."""
    tree = {"a": {"b": [MutationMacro.CAS, 1]}, "c": MutationMacro.SEQ_NO, "d": MutationMacro.VALUE_CRC32C, "e": "x"}

    assert {
        "a": b'{"b":["0x8877665544332211",1]}',
        "c": b'"0x000000000000000a"',
        "d": b'"0xe3069283"',
        "e": b'"x"',
    } == attributes.stored(tree, b"123456789", 0x1122334455667788, 10)


@pytest.mark.parametrize(("data", "checksum"), [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)])
def test_checksum(data: bytes, checksum: int) -> None:
    """The checksum is correct for no data, for an example of RFC 3720, B.4, and for the usual check value."""
    assert checksum == attributes.crc32c(data)


def test_virtual_attributes() -> None:
    """The virtual attributes are those of kv_engine, in its format."""
    documents = FakeDocuments(vbuckets=1024, wall_seconds_at_zero=1_750_000_000)
    document = documents.put("b", "k", b"[1]", flags=7, expires_after=10, xattrs={"z": b"1", "_a": b"{}"})

    assert {
        "$document": {
            "CAS": f"0x{document.cas:016x}",
            "vbucket_uuid": "0x00007c1100000005",
            "seqno": "0x0000000000000001",
            "revid": "1",
            "exptime": 1_750_000_010,
            "flags": 7,
            "value_bytes": 3,
            "datatype": ["json", "xattr"],
            "deleted": False,
            "last_modified": "1750000000",
            "value_crc32c": f"0x{attributes.crc32c(b'[1]'):08x}",
        }
    } == attributes.virtual_tree("$document.CAS", documents, document, 5)
    assert {"$XTOC": ["_a", "z"]} == attributes.virtual_tree("$XTOC", documents, document, 5)
    assert {"$vbucket": {"HLC": {"now": "1750000000", "mode": "real"}}} == attributes.virtual_tree(
        "$vbucket.HLC", documents, document, 5
    )


@pytest.mark.parametrize(("value", "kinds"), [(b"\xff", ["raw"]), (b"1", ["json"])])
def test_datatype_names(value: bytes, kinds: list[str]) -> None:
    """The virtual attribute ``datatype`` lists the datatype by name."""
    documents = FakeDocuments(vbuckets=1024, wall_seconds_at_zero=0)
    tree = attributes.virtual_tree("$document", documents, documents.put("b", "k", value), 5)["$document"]

    assert isinstance(tree, dict)
    assert kinds == tree["datatype"]


def test_unknown_virtual_attribute() -> None:
    """An unknown virtual attribute fails with SUBDOC_XATTR_UNKNOWN_VATTR."""
    documents = FakeDocuments(vbuckets=1024, wall_seconds_at_zero=0)
    with pytest.raises(PathFailed) as caught:
        attributes.virtual_tree("$nobody", documents, documents.put("b", "k", b""), 5)

    assert Status.SUBDOC_XATTR_UNKNOWN_VATTR is caught.value.status
