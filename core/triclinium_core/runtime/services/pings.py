"""Open pings of endpoints, including the canaries of circuit breakers.

A ping is a request of the client itself to one endpoint. It bypasses the endpoint's breaker. Its strategy refuses every
retry that a strategy may refuse, because a ping must report failures.

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
from triclinium_core.services.ping_request import PINGS

ANSWERED_STATUSES = frozenset({401, 403})
"""Statuses with which a service requests credentials, which pings do not carry. A ping with such a response succeeds
(decision D66)."""


class PingOutcome(NamedTuple):
    """Outcome of a ping of one endpoint."""

    owner: object
    endpoint: Endpoint
    error: errors.CouchbaseException | None
    """Reason why the ping failed; None if it succeeded."""
    link: Link | None
    """Stream of the ping; None if the ping was never sent."""
    seconds: float | None
    """Duration from the dispatch to the end in seconds; None if the ping was never sent."""


class _Ping(NamedTuple):
    """One open ping of an endpoint, or a canary."""

    owner: object
    """Ping or wait of the user that needs this ping; for a canary, the endpoint itself."""
    endpoint: Endpoint


class ServicePings:
    """Open pings of HTTP services, by token. Their tokens are negative, in contrast to the tokens of users."""

    def __init__(self, pool: Pool, requests: HttpCarrier) -> None:
        self._pool = pool
        self._requests = requests
        self._open: dict[int, _Ping] = {}
        self._last = 0

    def begin(
        self, owner: object, endpoint: Endpoint, seconds: float, now: float, *, traced_as: Token | None = None
    ) -> None:
        """Ping an endpoint. ``take_outcomes`` returns the outcome. The ping times out after ``seconds``.

        Args:
            traced_as: token with which to report the ping to a tracer; None to report nothing.
        """
        self._last += 1
        token = Token(-self._last)
        self._open[token] = _Ping(owner, endpoint)
        request = PINGS[endpoint.service]()
        self._requests.submit_own(token, request, endpoint, timeout=seconds, traced_as=traced_as, now=now)

    def stop(self, owner: object, now: float) -> None:
        """Abandon the pings of one owner, and close the streams that were being opened only for these pings."""
        for token, ping in list(self._open.items()):
            if ping.owner is owner:
                del self._open[token]
                self._requests.withdraw(token, now)
                self._pool.close_needless(ping.endpoint)

    def breaker_woken(self, endpoint: Endpoint, now: float) -> None:
        """Send the canary when the sleep window of a breaker is over, if the cluster still has the endpoint."""
        self._pool.prune()
        if self._pool.has(endpoint) and self._pool.feed_breaker(endpoint, BreakerEvent.TIME_PASSED, now):
            self.begin(endpoint, endpoint, endpoint.breaker.canary_timeout, now)

    def take_outcomes(self, now: float) -> list[PingOutcome]:
        """Pass the outcomes of canaries to the breakers, and return the outcomes of other open pings."""
        outcomes = list[PingOutcome]()
        for token, outcome, link, seconds in self._requests.take_own_answers():
            ping = self._open.pop(token, None)
            if ping is None:
                # The owner has stopped the ping.
                continue
            owner, endpoint = ping
            error = outcome if isinstance(outcome, errors.CouchbaseException) else None
            if error is not None and _requires_credentials(error):
                error = None
            if owner is not endpoint:
                outcomes.append(PingOutcome(owner, endpoint, error, link, seconds))
                continue
            # Any HTTP response is a success of the canary. A failure without one counts as a timeout.
            is_answered = error is None or error.context.http_status is not None
            event = BreakerEvent.CANARY_ANSWERED if is_answered else BreakerEvent.CANARY_TIMED_OUT
            self._pool.feed_breaker(endpoint, event, now)
        return outcomes


def _requires_credentials(error: errors.CouchbaseException) -> bool:
    """Return whether a service requested credentials, by its status or by an error code in the body."""
    status = error.context.http_status
    return status in ANSWERED_STATUSES or (
        status is not None and isinstance(error, errors.AuthenticationFailureException)
    )
