"""Open pings of endpoints, including the canaries of circuit breakers.

A ping is a request of the client's own to one endpoint. It passes the endpoint's breaker, and is retried as little as the
RFC permits: whatever goes wrong is what it is to tell.

Source: SDK-RFC 0061 "The ping Command"; SDK-RFC 0049 reason CIRCUIT_BREAKER_OPEN; decision C33.
"""

from __future__ import annotations

from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.contract.neutral import Token
from triclinium_core.retry.couchbase import BreakerEvent
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.services.carrier import HttpCarrier
from triclinium_core.runtime.services.pool import Endpoint, Pool
from triclinium_core.services.ping_request import PINGS, NoRetry

ANSWERED_STATUSES = frozenset({401, 403})
"""Statuses that request the credentials, which pings do not carry. They count as answered (decision D66)."""


class PingOutcome(NamedTuple):
    """What became of a ping of one endpoint."""

    owner: object
    endpoint: Endpoint
    error: errors.CouchbaseException | None
    """Why the service did not answer well; None where it did."""
    link: Link | None
    """Stream of the ping; None if it was never sent."""
    seconds: float | None
    """Duration from the dispatch to the end; None if it was never sent."""


class _Ping(NamedTuple):
    """One that is open."""

    owner: object
    """Which part of the client asked: of a canary, the endpoint itself."""
    endpoint: Endpoint


class ServicePings:
    """All open pings of services over HTTP, by token. These are negative: those of users are others."""

    def __init__(self, pool: Pool, requests: HttpCarrier) -> None:
        self._pool = pool
        self._requests = requests
        self._open: dict[int, _Ping] = {}
        self._last = 0

    def begin(
        self, owner: object, endpoint: Endpoint, seconds: float, now: float, *, traced_as: Token | None = None
    ) -> None:
        """Ask an endpoint whether it answers; ``heard`` tells what became of it, after so many seconds at the latest.

        Args:
            traced_as: whose attempt it is to a tracer; None where nobody is told.
        """
        self._last += 1
        token = Token(-self._last)
        self._open[token] = _Ping(owner, endpoint)
        request = PINGS[endpoint.service]()
        self._requests.ask(token, request, endpoint, strategy=NoRetry(), timeout=seconds, traced_as=traced_as, now=now)

    def stop(self, owner: object, now: float) -> None:
        """Forget the pings of one owner, and close the streams that were to be opened for them alone."""
        for token, ping in list(self._open.items()):
            if ping.owner is owner:
                del self._open[token]
                self._requests.withdraw(token, now)
                self._pool.close_needless(ping.endpoint)

    def breaker_woken(self, endpoint: Endpoint, now: float) -> None:
        """Send the canary of a breaker that has slept long enough, if the cluster still has the endpoint."""
        self._pool.prune()
        if self._pool.has(endpoint) and self._pool.feed_breaker(endpoint, BreakerEvent.TIME_PASSED, now):
            self.begin(endpoint, endpoint, endpoint.breaker.canary_timeout, now)

    def heard(self, now: float) -> list[PingOutcome]:
        """Tell breakers what became of their canaries, and return what became of all other pings."""
        outcomes = list[PingOutcome]()
        for token, outcome, link, seconds in self._requests.take_own_answers():
            ping = self._open.pop(token, None)
            if ping is None:
                # Its owner has left meanwhile.
                continue
            owner, endpoint = ping
            error = outcome if isinstance(outcome, errors.CouchbaseException) else None
            if error is not None and _asks_for_credentials(error):
                error = None
            if owner is not endpoint:
                outcomes.append(PingOutcome(owner, endpoint, error, link, seconds))
                continue
            # Whatever the node says, it answers; a breaker counts nothing else of requests either.
            is_answered = error is None or error.context.http_status is not None
            event = BreakerEvent.CANARY_ANSWERED if is_answered else BreakerEvent.CANARY_TIMED_OUT
            self._pool.feed_breaker(endpoint, event, now)
        return outcomes


def _asks_for_credentials(error: errors.CouchbaseException) -> bool:
    """Return whether a service answered that it needs credentials, by its status or by an error code in the body."""
    status = error.context.http_status
    return status in ANSWERED_STATUSES or (
        status is not None and isinstance(error, errors.AuthenticationFailureException)
    )
