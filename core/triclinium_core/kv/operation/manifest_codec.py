"""How the manifest of a bucket's collections travels.

Source: kv_engine ``docs/Collections.md``: JSON, ids in hexadecimal.
"""

from __future__ import annotations

import msgspec

from triclinium_core.kv.operation.body import Body
from triclinium_core.kv.operation.codec_parts import Codec, MalformedResponse
from triclinium_core.kv.operation.manifest_types import CollectionsManifest, CollectionSpec, ScopeSpec
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame import Frame


class _Collection(msgspec.Struct, frozen=True):
    uid: str
    name: str
    max_ttl: int = msgspec.field(default=0, name="maxTTL")
    history: bool | None = None


class _Scope(msgspec.Struct, frozen=True):
    uid: str
    name: str
    collections: list[_Collection] = []


class _Manifest(msgspec.Struct, frozen=True):
    uid: str
    scopes: list[_Scope]


_DECODER = msgspec.json.Decoder(_Manifest)


def _encode(operation: Operation) -> Body:
    return Body(needs=((HelloFeature.COLLECTIONS, operation.name),))


def _decode(operation: Operation, frame: Frame, vbucket: int) -> Result:
    try:
        found = _DECODER.decode(frame.value)
        scopes = tuple(_scope(scope) for scope in found.scopes)
        return CollectionsManifest(uid=int(found.uid, 16), scopes=scopes)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedResponse(f"a manifest that cannot be: {error}") from error


def _scope(scope: _Scope) -> ScopeSpec:
    collections = tuple(
        CollectionSpec(
            name=each.name, scope_name=scope.name, id=int(each.uid, 16), max_expiry=each.max_ttl, history=each.history
        )
        for each in scope.collections
    )
    return ScopeSpec(name=scope.name, id=int(scope.uid, 16), collections=collections)


MANIFEST_CODEC = Codec(_encode, _decode, None)
"""Of ``GetCollectionsManifest``."""
