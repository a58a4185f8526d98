"""Manifest of a bucket's collections: its request and its response on the wire."""

from __future__ import annotations

import pytest

from tests.core.kv.operation.test_operation_codec import response
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.codec_parts import Dialect, MalformedResponse
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest, CollectionSpec, ScopeSpec
from triclinium_core.kv.operation.manifest.manifest_codec import MANIFEST_LIMITS, decode_manifest
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.operation_codec import decode_response, encode_operation
from triclinium_core.kv.wire.constants import HelloFeature

QUESTION = GetCollectionsManifest(Keyspace("travel"))
COLLECTIONS = Dialect(frozenset({HelloFeature.COLLECTIONS}))
MANIFEST = b"""{"uid":"1f","scopes":[
    {"uid":"0","name":"_default","collections":[{"uid":"0","name":"_default"}]},
    {"uid":"8","name":"inventory","collections":[{"uid":"a","name":"hotel","maxTTL":60,"history":true,"more":1}]},
    {"uid":"9","name":"empty"}]}"""

NO_NUMBERS = (b"-1", b"+1", b" 1", b"1_1", b"0x", b"x1", b"\xd9\xa1", b"1" * 5000)
"""Byte strings that are not valid ids, although ``int`` with base 16 accepts most of them."""


def test_request() -> None:
    """A manifest request consists of a header only."""
    wire = encode_operation(QUESTION, COLLECTIONS, opaque=0x11, vbucket=0, prefix=b"")

    assert bytes.fromhex("80ba 0000 00 00 0000 00000000 00000011 0000000000000000") == wire


def test_a_server_that_knows_no_collections() -> None:
    """For a server without collections, encoding a manifest request raises ``FeatureNotAvailableException``."""
    with pytest.raises(
        errors.FeatureNotAvailableException, match="get_collections_manifest needs the feature COLLECTIONS"
    ):
        encode_operation(QUESTION, Dialect(), opaque=1, vbucket=0, prefix=b"")


HOTEL = CollectionSpec(name="hotel", scope_name="inventory", id=10, max_expiry=60, history=True)
SCOPES = (
    ScopeSpec(name="_default", id=0, collections=(CollectionSpec(name="_default", scope_name="_default", id=0),)),
    ScopeSpec(name="inventory", id=8, collections=(HOTEL,)),
    ScopeSpec(name="empty", id=9, collections=()),
)
DECODED = CollectionsManifest(uid=31, scopes=SCOPES)


def test_response() -> None:
    """The decoder reads ids as hexadecimal numbers, ignores unknown fields, and gives missing fields their defaults."""
    assert DECODED == decode_response(QUESTION, response(value=MANIFEST), vbucket=0)


@rows(
    ("uid", "id_", "numbers"),
    [
        (b"0", b"0", (0, 0)),
        (b"0x1f", b"0xA", (31, 10)),
        (b"7fffffffffffffff", b"ffffffff", (2**63 - 1, 2**32 - 1)),
        (b"7FFFFFFFFFFFFFFF", b"0000000a", (2**63 - 1, 10)),
    ],
)
def test_the_range_of_ids(uid: bytes, id_: bytes, numbers: tuple[int, int]) -> None:
    """A manifest uid of up to 63 bits and a collection id of up to 32 bits are accepted."""
    manifest = decode_manifest(MANIFEST.replace(b"1f", uid).replace(b'"a"', b'"%s"' % id_))

    assert numbers == (manifest.uid, manifest.scopes[1].collections[0].id)


@rows(
    ("collection", "max_expiry", "history"),
    [
        ('"maxTTL":null,"history":null', None, None),
        ('"maxTTL":"forever","history":"all"', None, None),
        ('"maxTTL":-2,"history":1', None, None),
        ('"maxTTL":4294967296,"history":{}', None, None),
        ('"maxTTL":-1,"history":false', -1, False),
    ],
)
def test_unknown_values_of_a_collection(collection: str, max_expiry: int | None, history: bool | None) -> None:
    """An unreadable setting becomes None and a null list of collections an empty one; other collections are read."""
    value = f"""{{"uid":"2","scopes":[{{"uid":"0","name":"_default","collections":null,"limits":null}},
        {{"uid":"8","name":"s","collections":[{{"uid":"9","name":"a",{collection}}},{{"uid":"a","name":"b"}}]}}]}}"""
    found = decode_response(QUESTION, response(value=value.encode()), vbucket=0)
    assert isinstance(found, CollectionsManifest)
    default, scope = found.scopes

    assert () == default.collections
    assert ["a", "b"] == [each.name for each in scope.collections]
    assert (max_expiry, history) == (scope.collections[0].max_expiry, scope.collections[0].history)


def test_no_scopes() -> None:
    """If the list of scopes is null, the manifest has no scopes."""
    found = decode_response(QUESTION, response(value=b'{"uid":"2","scopes":null}'), vbucket=0)

    assert CollectionsManifest(uid=2, scopes=()) == found


@rows(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        MANIFEST.replace(b"1f", b"x"),
        MANIFEST.replace(b'"8"', b'"g"'),
        MANIFEST.replace(b'"a"', b'""'),
        MANIFEST[:-1],
        b"[" * 100_000,
        *(MANIFEST.replace(b'"a"', b'"%s"' % digits) for digits in (*NO_NUMBERS, b"1" * 9, b"f" * 16)),
        *(MANIFEST.replace(b'"8"', b'"%s"' % digits) for digits in (*NO_NUMBERS, b"1" * 9, b"f" * 16)),
        *(MANIFEST.replace(b"1f", digits) for digits in (*NO_NUMBERS, b"1" * 17, b"8" + b"0" * 15, b"f" * 16)),
        MANIFEST.replace(b":60", b":" + b"9" * 5000),
        MANIFEST + b" " * MANIFEST_LIMITS.size_bytes_max,
        MANIFEST.replace(b'"uid":"1f"', b'"uid":"1f","more":[%s]' % b",".join([b"{}"] * MANIFEST_LIMITS.objects_max)),
    ],
)
def test_malformed_manifests(value: bytes) -> None:
    """A malformed or oversized manifest raises MalformedResponse with a short reason."""
    with pytest.raises(MalformedResponse, match="manifest.*: .{,300}$"):
        decode_response(QUESTION, response(value=value), vbucket=0)
