"""A client of one cluster, while its block lasts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from triclinium._collection import Collection
from triclinium._driver import Driver
from triclinium._hidden_nursery import in_background
from triclinium._keyspace import Bucket
from triclinium_core.kv.operation.requests import Keyspace, Noop
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.statistics import ClientStatistics
from triclinium_core.options import Authenticator


class Cluster:
    """A client of one cluster; ``open_cluster`` makes it. Any number of tasks may share it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; its connection is opened by its first operation.

        Raises:
            InvalidArgumentException: this cannot be the name of a bucket.
        """
        return Bucket(self._driver, name)

    def default_collection(self) -> Collection:
        """Return the one collection that there is over ``memcached://``, where nothing has a bucket."""
        return Collection(self._driver, Keyspace(None))

    def set_authenticator(self, authenticator: Authenticator) -> None:
        """Be somebody else from now on, or show it by a new password, token or certificate.

        It waits for nothing. New connections use the authenticator. Live ones authenticate again with a password or a
        token: what was sent before is answered, what is called now waits until that is over, for one round trip or two.
        A connection whose authentication is refused is closed, and operations fail with
        ``AuthenticationFailureException`` until a right authenticator is set. A live connection keeps the certificate
        that it was opened with.

        A password may follow a token and the other way round; a certificate only another one.

        Raises:
            InvalidArgumentException: it does not go with the connection string, cannot follow the present one, or
                cannot be read from its files; nothing has changed.
            trio.ClosedResourceError: the cluster is closed.
        """
        self._driver.set_authenticator(authenticator)

    def statistics(self) -> ClientStatistics:
        """Return a snapshot of connections and counters; after the cluster is closed, the last one."""
        return self._driver.statistics()

    async def _noop(self, bucket: str | None = None) -> None:
        """Have a node answer nothing: over the connection of ``bucket``, or over the one that belongs to none.

        Raises:
            CouchbaseException: there is no such connection, and a retry was refused or came too late.
            trio.ClosedResourceError: the cluster is closed.

        Cancellation: harmless.
        """
        await self._driver.perform(Done, lambda: Noop(Keyspace(bucket)), None)


@asynccontextmanager
async def running(driver: Driver) -> AsyncIterator[Cluster]:
    """Give the block a cluster at work."""
    async with in_background(driver):
        yield Cluster(driver)
