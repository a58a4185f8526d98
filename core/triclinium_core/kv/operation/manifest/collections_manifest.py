"""The scopes and collections of a bucket, as its manifest names them.

Source: kv_engine ``docs/Collections.md``; SDK-RFC 0054 "CollectionSpec", "ScopeSpec".
"""

from __future__ import annotations

import msgspec


class CollectionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One collection."""

    name: str
    scope_name: str
    id: int
    """What stands before the keys of its documents."""
    max_expiry: int | None = 0
    """Maximum expiry of its documents in seconds. 0 uses the setting of the bucket, -1 is never, and None if the server
    sends no number."""
    history: bool | None = None
    """Whether older versions of its documents are kept; None where the server does not say."""


class ScopeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One scope."""

    name: str
    id: int
    collections: tuple[CollectionSpec, ...]


class CollectionsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All scopes and collections of a bucket, as one node knows them."""

    uid: int
    """Grows with every change."""
    scopes: tuple[ScopeSpec, ...]
