"""Base of all managers."""

from __future__ import annotations

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium_core.shown import total_repr


class Manager:
    """Base class of all managers.

    The ``retry_strategy`` of a method call replaces the strategy of the block or the cluster.
    ``TimeoutOptions.management``, or the timeout of the service, limits a method with a single request. In a method
    with several requests, or one that waits until its result is usable, the first request has its own timeout. After
    its response, ``TimeoutOptions.management`` limits the whole method. Only ``watch_indexes`` has no such limit;
    use a cancel scope.

    In addition to its own exceptions, each method may raise:

    * ``AuthenticationFailureException``: the credentials are wrong, or do not permit the call.
    * ``AmbiguousTimeoutException``, ``UnambiguousTimeoutException``: no response in time; or the change was made, and
    ``context.connections`` or ``context.awaited`` lists what is not ready yet.
    * ``FeatureNotAvailableException``: the server does not support the method.
    * ``RequestCanceledException``: the connection was lost; or no node runs the service, and the strategy does not
    wait for one.
    * ``trio.ClosedResourceError``: the cluster's block was left.

    Cancellation: harmless for a method that only reads. A change may have been made; the server continues with it.
    """

    def __init__(self, driver: ClusterDriver) -> None:
        self._driver = driver

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
