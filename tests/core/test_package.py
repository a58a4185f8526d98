"""What the package offers by itself: each name is loaded when it is asked for, and is what type checkers take it for."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module

import pytest

import triclinium_core
from tests.core.retry.couchbase.request_cases import annotation, machine_of
from tests.core.retry.smithy.cases import Fixed
from tests.rows import rows
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.calls.machine import CallMachine
from triclinium_core.retry.calls.terms import CallTerms
from triclinium_core.retry.cassandra.policies import DefaultRetryPolicy
from triclinium_core.retry.cassandra.requests.machine import RequestMachine
from triclinium_core.retry.cassandra.requests.request import CassandraRequest
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreaker
from triclinium_core.retry.smithy.quota import RetryQuota
from triclinium_core.retry.smithy.rate_limiter import RateLimiter
from triclinium_core.retry.smithy.resolver import RetryStrategyResolver
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.testing.driver_laws.machine import ScriptedMachine
from triclinium_core.testing.fakes.store.documents import FakeDocuments

SEEN_BY_TYPE_CHECKERS = {
    alias.name: node.module
    for node in ast.walk(ast.parse(inspect.getsource(triclinium_core)))
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triclinium_core.")
    for alias in node.names
}


@pytest.mark.parametrize("name", SEEN_BY_TYPE_CHECKERS)
def test_offers(name: str) -> None:
    """A name is what the module has that type checkers are told of, and is listed."""
    module = import_module(SEEN_BY_TYPE_CHECKERS[name] or "")

    assert getattr(triclinium_core, name) is getattr(module, name)
    assert name in dir(triclinium_core)


def test_offers_nothing_else() -> None:
    """A name that nobody offers is missing as it is in any module."""
    assert SEEN_BY_TYPE_CHECKERS.keys() == triclinium_core._MODULE_OF.keys()
    with pytest.raises(AttributeError, match="module 'triclinium_core' has no attribute 'Nonsense'"):
        getattr(triclinium_core, "Nonsense")  # noqa: B009 - a type checker would refuse the attribute


OPTIONS = ClientOptions(connection_string="couchbase://127.0.0.1", authenticator=PasswordAuthenticator("ada", "secret"))


@rows(
    ("value", "expected"),
    [
        (ClientMachine(OPTIONS, rng=Fixed()), "<ClientMachine: connections=0 open_operations=0>"),
        (machine_of(annotation()), "<RetryMachine upsert: IN_FLIGHT retry_attempts=0>"),
        (RequestMachine(CassandraRequest(policy=DefaultRetryPolicy()), ["a"]), "<RequestMachine STATEMENT: NEW>"),
        (CallMachine(CallTerms(SimpleRetryStrategy(rng=Fixed())), token=None, began=0.0), "<CallMachine: attempt 1>"),
        (CircuitBreaker(), "<CircuitBreaker: CLOSED operations=0 failures=0>"),
        (RetryQuota(500), "<RetryQuota: capacity=500 taken=0>"),
        (RateLimiter(), "<RateLimiter: no limit>"),
        (RetryStrategyResolver(rng=Fixed()), "<RetryStrategyResolver: 2 strategies>"),
        (FakeDocuments(vbuckets=16, wall_seconds_at_zero=0.0), "<FakeDocuments: 0 documents>"),
        (ScriptedMachine(), "<ScriptedMachine: 0 events>"),
    ],
)
def test_what_has_a_state_shows_it(value: object, expected: str) -> None:
    """And no address of the memory, which differs from run to run."""
    assert expected == repr(value)
