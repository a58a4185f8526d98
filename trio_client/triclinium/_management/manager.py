"""Base of all managers."""

from __future__ import annotations

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.shown import total_repr


class Manager:
    """Base of all managers.

    Each method takes ``retry_strategy``: for this call, instead of the block's or the cluster's. A method that is one
    request may take ``TimeoutOptions.management``, or that of the service which it goes to. One that takes several, or
    waits until what it made can be used, may take ``TimeoutOptions.management`` for all of that, once its first
    request is answered, which has its own timeout; only ``watch_indexes`` goes on for as long as the caller's cancel scope
    lets it.

    Beside what a method names, each raises:

    * ``AuthenticationFailureException``: the credentials are wrong, or do not permit it.
    * ``AmbiguousTimeoutException``, ``UnambiguousTimeoutException``: no answer in time; or the change is made, and
      ``context.connections`` and ``context.awaited`` tell what is not ready yet.
    * ``FeatureNotAvailableException``: the server does not know it.
    * ``ServiceNotAvailableException``: no node runs the service.
    * ``trio.ClosedResourceError``: the cluster's block was left.

    Cancellation: of what only reads, harmless. What changes something may have been done; the server goes on with it.
    """

    def __init__(self, driver: ClusterDriver) -> None:
        self._driver = driver

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
