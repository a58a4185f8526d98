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
    """Collection id, which precedes the keys of the collection's documents on the wire."""
    max_expiry: int | None = 0
    """Maximum lifetime of documents in seconds. 0 means that the maximum of the bucket applies, and -1 that there is no
    maximum. None if the server sent an unknown value."""
    history: bool | None = None
    """Whether the server keeps older versions of the documents; None if the server sent neither true nor false."""


class ScopeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One scope with its collections."""

    name: str
    id: int
    collections: tuple[CollectionSpec, ...]


class CollectionsManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All scopes and collections of a bucket, as one node reports them."""

    uid: int
    """Version of the manifest. It increases with every change."""
    scopes: tuple[ScopeSpec, ...]
