"""Retries in ``httpx`` clients on trio: ``AsyncClient(transport=RetryTransport())``. Needs the extra ``httpx``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from triclinium.adapters.http_transport import ATTEMPTS, FailedAnswer, HttpRetryTransport, HttpTransportLibrary, host_of
from triclinium_core.retry.calls import HttpRetryRules

try:
    import httpx
except ImportError as _missing:
    raise ImportError("the package httpx is missing; run: pip install 'triclinium[httpx]'") from _missing

__all__ = ["ATTEMPTS", "FailedAnswer", "HttpRetryRules", "RetryTransport", "host_of"]


class RetryTransport(HttpRetryTransport[httpx.Request, httpx.Response], httpx.AsyncBaseTransport):
    """Transport of ``httpx`` that retries requests if this is safe and the strategy permits it.

    :py:class:`triclinium.adapters.http_transport.HttpRetryTransport` describes the arguments, retries and results.
    """

    library: ClassVar[HttpTransportLibrary] = HttpTransportLibrary.of(httpx)
    default_transport: ClassVar[Callable[[], httpx.AsyncHTTPTransport]] = staticmethod(httpx.AsyncHTTPTransport)
