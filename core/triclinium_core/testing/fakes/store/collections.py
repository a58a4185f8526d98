"""Scopes and collections: one manifest for all initial buckets, and one for each bucket that is created later.

Source: kv_engine docs/Collections.md; docs/BinaryProtocol.md, 0xba and 0xbb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_integer
from triclinium_core.kv.operation.validation import DEFAULT_NAME, UINT32_MAX, check_name
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandRefused, error_body
from triclinium_core.testing.fakes.store.lateness import Lateness

FIRST_FREE_ID = 8
"""First id for new collections; lower ids are reserved for the server, except the default collection's 0."""


class FakeManifest:
    """Scopes and collections of a bucket at one time; ``uid`` grows with every change."""

    def __init__(self) -> None:
        self.uid: int = 1
        self._scopes: dict[str, dict[str, int]] = {}
        self._scope_ids: dict[str, int] = {}
        self._settings: dict[int, Mapping[str, int | bool]] = {}
        """Further settings of each collection in the manifest, by id: ``maxTTL`` and ``history``."""
        self._ids: set[int] = set()

    def __contains__(self, collection_id: int) -> bool:
        return collection_id in self._ids

    @property
    def scopes(self) -> Mapping[str, Mapping[str, int]]:
        """Collection ids by scope and collection."""
        return {scope: dict(collections) for scope, collections in self._scopes.items()}

    @property
    def scope_ids(self) -> Mapping[str, int]:
        """Id of each scope."""
        return dict(self._scope_ids)

    def id_of(self, scope: str, collection: str) -> int:
        """Return the id of a collection; raise CommandRefused if the scope or the collection does not exist."""
        if scope not in self._scopes:
            raise self.unknown(Status.UNKNOWN_SCOPE)
        if collection not in self._scopes[scope]:
            raise self.unknown(Status.UNKNOWN_COLLECTION)
        return self._scopes[scope][collection]

    def unknown(self, status: Status) -> CommandRefused:
        """Return the refusal for a scope or collection that is not in the manifest."""
        body = error_body("the manifest has no such scope or collection", manifest_uid=f"{self.uid:x}")
        return CommandRefused(status, body=body)

    @property
    def any_history(self) -> bool:
        """Whether any collection keeps older versions of its documents."""
        return any(self._settings.get(uid, {}).get("history") is True for uid in self._ids)

    def encode(self) -> bytes:
        """Return the manifest as JSON, as GET_COLLECTIONS_MANIFEST sends it."""
        return msgspec.json.encode(self._described({}))

    def encode_for_manager(self) -> bytes:
        """Return the manifest as JSON, as the cluster manager sends it: each collection has all settings."""
        return msgspec.json.encode(self._described({"maxTTL": 0, "history": False}))

    def _described(self, defaults: Mapping[str, int | bool]) -> Mapping[str, object]:
        scopes = [
            {
                "uid": f"{self._scope_ids[scope]:x}",
                "name": scope,
                "collections": [
                    {"uid": f"{uid:x}", "name": name, **defaults, **self._settings.get(uid, {})}
                    for name, uid in collections.items()
                ],
            }
            for scope, collections in self._scopes.items()
        ]
        return {"uid": f"{self.uid:x}", "scopes": scopes}

    def _count_change(self) -> None:
        self.uid += 1

    def copied(self) -> FakeManifest:
        """Return an independent copy of the manifest."""
        copy = FakeManifest()
        copy.uid, copy._ids = self.uid, set(self._ids)
        copy._scopes = {scope: dict(collections) for scope, collections in self._scopes.items()}
        copy._scope_ids, copy._settings = dict(self._scope_ids), dict(self._settings)
        return copy


class FakeCollections(FakeManifest):
    """Newest manifest, and the methods that change it.

    Args:
        scopes: collection ids by scope and collection.
        on_drop: called with the id of each dropped collection.
        lateness: determines how long earlier manifests are kept for late nodes; None if no node is late.

    Raises:
        InvalidArgumentException: a name is invalid, or an id is out of range or given twice; also from
            ``create`` if the collection exists, and from ``drop`` if it does not.
    """

    def __init__(
        self,
        scopes: Mapping[str, Mapping[str, int]],
        *,
        on_drop: Callable[[int], None] | None = None,
        lateness: Lateness | None = None,
    ) -> None:
        FakeManifest.__init__(self)
        self._on_drop = on_drop
        self._lateness = lateness
        self._earlier: list[tuple[float, FakeManifest]] = []
        """Earlier manifests, oldest first, each with the time at which it was replaced."""
        self._next_id = FIRST_FREE_ID
        self._next_scope_id = FIRST_FREE_ID + 1
        self._history = False
        """Whether a new collection keeps history if its settings omit it."""
        for scope, collections in scopes.items():
            self._add_scope(scope)
            for collection, collection_id in collections.items():
                self._add(scope, collection, collection_id)

    def as_of(self, instant: float) -> FakeManifest:
        """Return the manifest that was the newest at ``instant``; if it was not kept, the next kept or current one."""
        return next((manifest for until, manifest in self._earlier if instant < until), self)

    def create(self, scope: str, collection: str, settings: Mapping[str, int | bool] | None = None) -> int:
        """Create a collection, and its scope if it does not exist; return its id, which is never reused.

        Args:
            settings: ``maxTTL`` and ``history`` in the manifest; they have no effect on documents.
        """
        if collection in self._scopes.get(scope, ()):
            raise errors.InvalidArgumentException(f"{scope}.{collection} exists; drop it first", parameter="collection")
        self._keep()
        if scope not in self._scopes:
            self._add_scope(scope)
        collection_id = self._next_id
        self._add(scope, collection, collection_id)
        history = {"history": True} if self._history else {}
        self._settings[collection_id] = {**history, **(settings or {})}
        self._count_change()
        return collection_id

    def update(self, scope: str, collection: str, settings: Mapping[str, int | bool]) -> None:
        """Change the given settings of a collection. Raise CommandRefused if the collection does not exist."""
        collection_id = self.id_of(scope, collection)
        self._keep()
        self._settings[collection_id] = {**self._settings.get(collection_id, {}), **settings}
        self._count_change()

    def keep_history(self, value: bool, *, of_default_collection: bool = False) -> None:
        """Set whether new collections keep history by default, and optionally enable it for the default collection."""
        self._history = value
        if value and of_default_collection:
            self._settings[0] = {"history": True}

    def create_scope(self, scope: str) -> None:
        """Add a scope without collections; raise InvalidArgumentException if it exists."""
        if scope in self._scopes:
            raise errors.InvalidArgumentException(f"scope={scope!r} exists; drop it first", parameter="scope")
        self._keep()
        self._add_scope(scope)
        self._count_change()

    def drop_scope(self, scope: str) -> None:
        """Remove a scope with its collections and documents; raise InvalidArgumentException if it does not exist."""
        if scope not in self._scopes:
            raise errors.InvalidArgumentException(f"scope={scope!r} does not exist", parameter="scope")
        for collection in list(self._scopes[scope]):
            self.drop(scope, collection)
        self._keep()
        del self._scopes[scope], self._scope_ids[scope]
        self._count_change()

    def drop(self, scope: str, collection: str) -> None:
        """Remove a collection with its documents."""
        if collection not in self._scopes.get(scope, ()):
            raise errors.InvalidArgumentException(
                f"collection={collection!r} does not exist in scope {scope!r}", parameter="collection"
            )
        self._keep()
        collection_id = self.id_of(scope, collection)
        self._ids.remove(collection_id)
        del self._scopes[scope][collection]
        self._count_change()
        if self._on_drop is not None:
            self._on_drop(collection_id)

    def _keep(self) -> None:
        """Keep the current manifest for nodes that see changes late, and drop manifests that no node needs any more."""
        if self._lateness is not None and self._lateness.longest:
            now = self._lateness.now
            self._earlier = [kept for kept in self._earlier if kept[0] > now - self._lateness.longest]
            self._earlier.append((now, self.copied()))

    def _add_scope(self, scope: str) -> None:
        self._scopes[check_name(scope, "scope")] = {}
        if scope == DEFAULT_NAME:
            self._scope_ids[scope] = 0
        else:
            self._scope_ids[scope] = self._next_scope_id
            self._next_scope_id += 1

    def _add(self, scope: str, collection: str, collection_id: int) -> None:
        check_name(collection, "collection")
        check_integer(collection_id, "collection_id", 0, UINT32_MAX)
        if collection_id in self._ids:
            raise errors.InvalidArgumentException(
                f"collection_id={collection_id} is given twice; give each collection its own id",
                parameter="collection_id",
            )
        self._scopes[scope][collection] = collection_id
        self._ids.add(collection_id)
        self._next_id = max(self._next_id, collection_id + 1)
