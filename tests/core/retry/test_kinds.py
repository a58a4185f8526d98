"""Kinds of strategies: a strategy of an unsuitable kind is refused, and the error names its kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.core.retry.couchbase.request_cases import Awaits
from tests.core.retry.smithy.cases import Fixed
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.explain.couchbase.explain import CouchbaseCase
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.options import ClientOptions
from triclinium_core.retry.calls import CallTerms
from triclinium_core.retry.cassandra import DefaultRetryPolicy, ExecutionProfile
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, ErrorMapRetryStrategy, Service, require_strategy
from triclinium_core.retry.kinds import DeciderKind, kind_of, other_kind
from triclinium_core.retry.smithy import SimpleRetryStrategy, as_async

COUCHBASE, SMITHY, CASSANDRA = DeciderKind

GIVEN: tuple[tuple[DeciderKind, Any], ...] = (
    (COUCHBASE, BestEffortRetryStrategy()),
    (COUCHBASE, Awaits()),
    (SMITHY, SimpleRetryStrategy(rng=Fixed())),
    (SMITHY, as_async(SimpleRetryStrategy(rng=Fixed()))),
    (CASSANDRA, DefaultRetryPolicy()),
)
TAKERS: tuple[tuple[DeciderKind, Callable[[Any], object]], ...] = (
    (COUCHBASE, require_strategy),
    (SMITHY, CallTerms),
    (SMITHY, as_async),
    (CASSANDRA, lambda given: ExecutionProfile(name="p", retry_policy=given)),
)


OF_REQUESTS: tuple[Callable[[Any], object], ...] = (
    lambda given: ClientOptions(connection_string="couchbase://h", retry_strategy=given),
    lambda given: CouchbaseCase(service=Service.KV, operation="get", happened=KvAnswer(0), strategy=given),
)
"""Functions that accept a strategy for requests to a cluster, which may be a Couchbase or a token strategy."""


@pytest.mark.parametrize(("taker", "given"), [*product(OF_REQUESTS, GIVEN)])
def test_requests_accept_both_kinds(taker: Callable[[Any], object], given: tuple[DeciderKind, Any]) -> None:
    """Requests accept Couchbase and token strategies; a Cassandra policy is refused, and the error names its kind."""
    if given[0] != CASSANDRA:
        taker(given[1])
        return
    with pytest.raises(errors.InvalidArgumentException) as caught:
        taker(given[1])

    assert CASSANDRA.words in str(caught.value)


@pytest.mark.parametrize(("taker", "given"), [pair for pair in product(TAKERS, GIVEN) if pair[0][0] == pair[1][0]])
def test_the_required_kind_is_accepted(
    taker: tuple[DeciderKind, Callable[[Any], object]], given: tuple[DeciderKind, Any]
) -> None:
    """A function that requires one kind accepts an object of this kind."""
    taker[1](given[1])

    assert given[0] is kind_of(given[1])
    assert other_kind(given[1], given[0]) is None


@pytest.mark.parametrize(("taker", "given"), [pair for pair in product(TAKERS, GIVEN) if pair[0][0] != pair[1][0]])
def test_other_kinds_are_refused(
    taker: tuple[DeciderKind, Callable[[Any], object]], given: tuple[DeciderKind, Any]
) -> None:
    """A function that requires one kind refuses an object of another kind, and the error names the object's kind."""
    with pytest.raises(ArgumentError) as caught:
        taker[1](given[1])

    assert given[0].words in str(caught.value)
    assert (taker[0] == COUCHBASE) is isinstance(caught.value, errors.CouchbaseException)


def test_the_fallback_of_an_error_map_strategy() -> None:
    """An error map strategy refuses a token strategy as its fallback."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ErrorMapRetryStrategy(SimpleRetryStrategy(rng=Fixed()))  # type: ignore[arg-type]

    assert SMITHY.words in str(caught.value)
    assert "otherwise" == caught.value.parameter


@pytest.mark.parametrize("given", [None, "best effort", object(), BestEffortRetryStrategy])
def test_objects_of_no_kind_are_refused(given: object) -> None:
    """An object without the methods of a strategy is refused, and the class of a strategy is refused too."""
    with pytest.raises(errors.InvalidArgumentException):
        require_strategy(given)

    assert other_kind(given, COUCHBASE) is None
