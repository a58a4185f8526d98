"""Retries in ``httpx2`` clients on trio: ``AsyncClient(transport=RetryTransport())``. Needs the extra ``httpx2``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from triclinium.adapters.http_transport import ATTEMPTS, FailedAnswer, HttpRetryTransport, HttpTransportLibrary, host_of
from triclinium_core.retry.calls import HttpRetryRules

try:
    import httpx2
except ImportError as _missing:
    raise ImportError("the package httpx2 is missing; run: pip install 'triclinium[httpx2]'") from _missing

__all__ = ["ATTEMPTS", "FailedAnswer", "HttpRetryRules", "RetryTransport", "host_of"]


class RetryTransport(HttpRetryTransport[httpx2.Request, httpx2.Response], httpx2.AsyncBaseTransport):
    """Transport of ``httpx2`` that retries requests if this is safe and the strategy permits it.

    :py:class:`triclinium.adapters.http_transport.HttpRetryTransport` describes the arguments, retries and results.
    """

    library: ClassVar[HttpTransportLibrary] = HttpTransportLibrary.of(httpx2)
    default_transport: ClassVar[Callable[[], httpx2.AsyncHTTPTransport]] = staticmethod(httpx2.AsyncHTTPTransport)
