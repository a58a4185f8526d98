"""What a bucket's scopes and collections are."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium._driver.driver import Driver
from triclinium_core.kv.operation.manifest.requests import GetCollectionsManifest
from triclinium_core.kv.operation.manifest.types import CollectionsManifest, ScopeSpec
from triclinium_core.kv.operation.requests import Keyspace
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy


class CollectionManager:
    """The scopes and collections of a bucket: which there are. They are made and dropped elsewhere."""

    def __init__(self, driver: Driver, bucket: str) -> None:
        self._driver = driver
        self._bucket = bucket

    def __repr__(self) -> str:
        return f"<CollectionManager {self._bucket}>"

    async def get_all_scopes(self, *, retry_strategy: AnyRetryStrategy | None = None) -> Sequence[ScopeSpec]:
        """Return all scopes of the bucket, each with its collections, as one node of it knows them.

        Args:
            retry_strategy: for this call, instead of the block's or the cluster's.

        Raises:
            FeatureNotAvailableException: the server knows no collections.
            AmbiguousTimeoutException, UnambiguousTimeoutException: no answer in time.
            trio.ClosedResourceError: the cluster's block was left.

        Cancellation: harmless.

        Source: SDK-RFC 0054 "GetAllScopes".
        """
        manifest = await self._driver.perform(
            CollectionsManifest, lambda: GetCollectionsManifest(Keyspace(self._bucket)), retry_strategy
        )
        return manifest.scopes
