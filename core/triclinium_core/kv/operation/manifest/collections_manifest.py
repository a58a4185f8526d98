"""Scopes and collections of a bucket, from its manifest.

Source: kv_engine ``docs/Collections.md``; SDK-RFC 0054 "CollectionSpec", "ScopeSpec".
"""

from __future__ import annotations

import msgspec


class CollectionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of one collection."""

    name: str
    scope_name: str
    id: int
    """Collection id, which prefixes the keys of its documents on the wire."""
    max_expiry: int | None = 0
    """Maximum expiry of its documents in seconds. 0 uses the setting of the bucket, -1 is never, and None if the server
    sends no number."""
    history: bool | None = None
    """Whether older versions of its documents are kept; None if the server does not send it."""


class ScopeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One scope with its collections."""

    name: str
    id: int
    collections: tuple[CollectionSpec, ...]


class CollectionsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All scopes and collections of a bucket, as one node reports them."""

    uid: int
    """Version of the manifest; it grows with every change."""
    scopes: tuple[ScopeSpec, ...]
