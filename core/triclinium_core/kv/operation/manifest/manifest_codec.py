"""Codec of ``GetCollectionsManifest``, and parser of manifests.

Source: kv_engine ``docs/Collections.md``: JSON, ids in hexadecimal.
"""

from __future__ import annotations

import re

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.codec_parts import Body, Codec, MalformedResponse
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest, CollectionSpec, ScopeSpec
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.config_version import COUNTER_MAX
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.json_limits import JsonLimits
from triclinium_core.shown import one_line, shown


class _ManifestCollection(msgspec.Struct, frozen=True):
    uid: str
    name: str
    max_ttl: object = msgspec.field(default=0, name="maxTTL")
    history: object = None


class _Scope(msgspec.Struct, frozen=True):
    uid: str
    name: str
    collections: list[_ManifestCollection] | None = None


class _Manifest(msgspec.Struct, frozen=True):
    uid: str
    scopes: list[_Scope] | None


_DECODER = msgspec.json.Decoder(_Manifest)
MANIFEST_LIMITS = JsonLimits(size_bytes_max=2 * 1024 * 1024, objects_max=12_000, parts_max=60_000)
"""Limits that permit almost ten times the 1,200 collections that a cluster may have, or five times with the longest
names: such a collection takes a third of a kilobyte."""
_ID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,8})")
"""Pattern of the id of a scope or collection: 32 bits in hexadecimal. ``int`` would also accept a sign, blanks and
underscores."""
_UID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")
"""Pattern of the uid of a manifest: 64 bits in hexadecimal."""


def _encode(operation: Operation) -> Body:
    return Body(needs=((HelloFeature.COLLECTIONS, operation.name),))


def _decode(operation: Operation, frame: Frame, vbucket: int) -> Result:
    return decode_manifest(frame.value)


def decode_manifest(document: bytes) -> CollectionsManifest:
    """Return the manifest in ``document``. Key-value and the management service use the same format.

    Raises:
        MalformedResponse: ``document`` is too large, or is not a manifest.
    """
    excess = MANIFEST_LIMITS.excess(document)
    if excess is not None:
        raise MalformedResponse(f"a manifest that is too large: {excess}")
    try:
        found = _DECODER.decode(shallow(document))
        scopes = tuple(_scope(scope) for scope in found.scopes or ())
        return CollectionsManifest(uid=parse_uid(found.uid), scopes=scopes)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedResponse(f"an invalid manifest: {one_line(str(error))}") from error


def _scope(scope: _Scope) -> ScopeSpec:
    collections = tuple(
        CollectionSpec(
            name=each.name,
            scope_name=scope.name,
            id=parse_id(each.uid),
            # Ignore any other value: it may be a setting of a newer server, and the collection is usable without it.
            max_expiry=each.max_ttl if type(each.max_ttl) is int and -1 <= each.max_ttl <= UINT32_MAX else None,
            history=each.history if isinstance(each.history, bool) else None,
        )
        for each in scope.collections or ()
    )
    return ScopeSpec(name=scope.name, id=parse_id(scope.uid), collections=collections)


def parse_id(digits: str) -> int:
    """Return the id of a scope or a collection from its hexadecimal digits: 32 bits.

    Raises:
        ValueError: ``digits`` is anything else.
    """
    found = _ID.fullmatch(digits)
    if found is None:
        raise ValueError(f"id {shown(digits)} is not a number of at most 8 hexadecimal digits")
    return int(found[1], 16)


def parse_uid(digits: str) -> int:
    """Return the uid of a manifest from its hexadecimal digits: 0 to 2**63 - 1.

    Raises:
        ValueError: ``digits`` is anything else.
    """
    found = _UID.fullmatch(digits)
    uid = int(found[1], 16) if found is not None else -1
    if not 0 <= uid <= COUNTER_MAX:
        raise ValueError(f"manifest uid {shown(digits)} is not a hexadecimal number up to {COUNTER_MAX:x}")
    return uid


MANIFEST_CODEC = Codec(_encode, _decode, None)
"""Codec of ``GetCollectionsManifest``."""
