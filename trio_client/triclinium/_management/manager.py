"""What all managers have: a client at work."""

from __future__ import annotations

from triclinium._driver.driver import Driver


class Manager:
    """Base of all managers.

    Each method takes ``retry_strategy``: for this call, instead of the block's or the cluster's. Each of their requests
    may take ``TimeoutOptions.management``, or that of the service which it goes to, and so may the wait for key-value's
    nodes; for how long a method waits otherwise until what it made can be used is up to the caller's cancel scope.

    Beside what a method names, each raises:

    * ``AuthenticationFailureException``: the credentials are wrong, or do not permit it.
    * ``AmbiguousTimeoutException``, ``UnambiguousTimeoutException``: no answer in time.
    * ``FeatureNotAvailableException``: the server does not know it.
    * ``ServiceNotAvailableException``: no node runs the service.
    * ``trio.ClosedResourceError``: the cluster's block was left.

    Cancellation: of what only reads, harmless. What changes something may have been done; the server goes on with it.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
