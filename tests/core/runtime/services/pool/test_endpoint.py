"""Which endpoint a request takes, and how many streams it needs."""

from __future__ import annotations

from triclinium_core.kv.address import Address
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent, CircuitBreakerOptions
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.services.pool.endpoint import Endpoint, choose


def endpoint(host: str, waiting: int = 0) -> Endpoint:
    """Return the query service of a node, with so many requests that wait."""
    options = CircuitBreakerOptions(volume_threshold=1)
    made = Endpoint(Service.QUERY, Address(host, 8093), connections_max=1, circuit_breaker=options)
    made.waiting.update(dict.fromkeys(range(waiting)))
    return made


def test_the_endpoint_with_the_least_to_do() -> None:
    """Of those whose breakers are closed; the one that failed before comes last."""
    busy, free, broken = endpoint("a", 2), endpoint("b", 1), endpoint("c")
    broken.breaker.handle(BreakerEvent.OPERATION_TIMED_OUT, 0.0)

    assert free is choose([busy, free, broken], avoided=None)
    assert busy is choose([busy, free, broken], avoided=free.address)
    assert free is choose([free, broken], avoided=free.address)
    assert choose([broken], avoided=None) is None


def test_streams_as_many_as_are_needed() -> None:
    """One for each request that waits, up to the bound, beside those that are free or on their way."""
    crowded, alone = endpoint("a", 3), endpoint("b", 0)

    assert crowded.needs_stream
    assert not alone.needs_stream
    assert "a:8093" in repr(crowded)
    assert 3 == crowded.load
