"""What the families of operations of a collection share."""

from __future__ import annotations

from triclinium._driver.driver import Driver
from triclinium_core.kv.operation.requests import Keyspace


class CollectionBase:
    """A client at work, and where its documents live."""

    def __init__(self, driver: Driver, keyspace: Keyspace) -> None:
        self._driver = driver
        self._keyspace = keyspace

    def __repr__(self) -> str:
        keyspace = self._keyspace
        return f"<{type(self).__name__} {keyspace.bucket}.{keyspace.scope}.{keyspace.collection}>"
