"""Names of the packages: each is loaded on access, and is the object that type checkers see."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import pytest

import triclinium_core
from tests.core.retry.couchbase.request_cases import annotation, machine_of
from tests.core.retry.smithy.cases import Fixed
from tests.rows import rows
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.lazy_names import lazy_modules, lazy_names
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry import (
    calls as retry_calls,
    cassandra as retry_cassandra,
    couchbase as retry_couchbase,
    smithy as retry_smithy,
)
from triclinium_core.retry.calls import CallMachine, CallTerms
from triclinium_core.retry.cassandra import CassandraRequest, DefaultRetryPolicy, RequestMachine
from triclinium_core.retry.couchbase import CircuitBreaker
from triclinium_core.retry.smithy import RetryStrategyResolver, SimpleRetryStrategy
from triclinium_core.retry.smithy.quota import RetryQuota
from triclinium_core.retry.smithy.rate_limiter import RateLimiter
from triclinium_core.services import analytics, search, views
from triclinium_core.testing.driver_laws import ScriptedClusterMachine
from triclinium_core.testing.fakes.store.documents import FakeDocuments

PACKAGES = (triclinium_core, retry_calls, retry_cassandra, retry_couchbase, retry_smithy)
"""Packages that load a name when it is accessed."""


def seen_by_type_checkers(package: ModuleType) -> Mapping[str, str]:
    """Return the module of each name that the source of a package imports for type checkers."""
    return {
        alias.name: node.module or ""
        for node in ast.walk(ast.parse(inspect.getsource(package)))
        if isinstance(node, ast.ImportFrom) and node.module != lazy_names.__module__
        for alias in node.names
        if (node.module or "").startswith("triclinium_core.")
    }


@rows(
    ("package", "name"), [(package.__name__, name) for package in PACKAGES for name in seen_by_type_checkers(package)]
)
def test_offers(package: str, name: str) -> None:
    """Each name of a package is the object that type checkers see, and ``dir`` lists it."""
    offering = import_module(package)
    module = import_module(seen_by_type_checkers(offering)[name])

    assert getattr(offering, name) is getattr(module, name)
    assert name in dir(offering)


@pytest.mark.parametrize("package", [analytics, search, views], ids=lambda package: package.__name__)
def test_packages_load_their_modules(package: ModuleType) -> None:
    """A package loads each module that type checkers see, and lists it before that; an unknown name raises AttributeError."""
    modules = {*seen_by_type_checkers(package)}

    assert modules == {*package.__all__}
    assert all(package.__getattr__(name) is import_module(f"{package.__name__}.{name}") for name in modules)
    # All modules are attributes of the package by now.
    assert sorted({"__name__", *modules}) == lazy_modules({"__name__": package.__name__}, package.__all__)[1]()
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_offers_nothing_else(package: ModuleType) -> None:
    """A package has exactly the names that type checkers see; any other name raises AttributeError."""
    seen = seen_by_type_checkers(package)

    assert seen == package._MODULE_OF
    assert sorted(seen) == sorted(package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Nonsense'"):
        getattr(package, "Nonsense")  # noqa: B009 - a type checker would refuse the attribute


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
        (ScriptedClusterMachine(), "<ScriptedClusterMachine: 0 events>"),
    ],
)
def test_representations_show_the_state(value: object, expected: str) -> None:
    """The repr of an object with a state shows the state and no memory address."""
    assert expected == repr(value)
