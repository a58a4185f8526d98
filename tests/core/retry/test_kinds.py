"""What decides about retries is refused where another kind is wanted, with what it is and who takes it."""

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
"""Who takes what decides about requests to a cluster: strategies of either shape."""


@pytest.mark.parametrize(("taker", "given"), [*product(OF_REQUESTS, GIVEN)])
def test_requests_take_both(taker: Callable[[Any], object], given: tuple[DeciderKind, Any]) -> None:
    """Couchbase's strategies and those that hand out tokens pass, and a policy of Cassandra's is refused by its name."""
    if given[0] != CASSANDRA:
        taker(given[1])
        return
    with pytest.raises(errors.InvalidArgumentException) as caught:
        taker(given[1])

    assert CASSANDRA.words in str(caught.value)


@pytest.mark.parametrize(("taker", "given"), [pair for pair in product(TAKERS, GIVEN) if pair[0][0] == pair[1][0]])
def test_each_takes_its_own(taker: tuple[DeciderKind, Callable[[Any], object]], given: tuple[DeciderKind, Any]) -> None:
    """What is of the kind that is wanted passes."""
    taker[1](given[1])

    assert given[0] is kind_of(given[1])
    assert other_kind(given[1], given[0]) is None


@pytest.mark.parametrize(("taker", "given"), [pair for pair in product(TAKERS, GIVEN) if pair[0][0] != pair[1][0]])
def test_each_refuses_the_others(
    taker: tuple[DeciderKind, Callable[[Any], object]], given: tuple[DeciderKind, Any]
) -> None:
    """What is of another kind is refused, and the refusal says of which, and who takes it."""
    with pytest.raises(ArgumentError) as caught:
        taker[1](given[1])

    assert given[0].words in str(caught.value)
    assert (taker[0] == COUCHBASE) is isinstance(caught.value, errors.CouchbaseException)


def test_a_strategy_within_a_strategy() -> None:
    """The one that an error map's strategy falls back on is one of the cluster's too."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        ErrorMapRetryStrategy(SimpleRetryStrategy(rng=Fixed()))  # type: ignore[arg-type]

    assert SMITHY.words in str(caught.value)
    assert "otherwise" == caught.value.parameter


@pytest.mark.parametrize("given", [None, "best effort", object(), BestEffortRetryStrategy])
def test_what_decides_about_nothing(given: object) -> None:
    """It is of no kind; a class has the methods of its objects, and is not one of them."""
    with pytest.raises(errors.InvalidArgumentException):
        require_strategy(given)

    assert other_kind(given, COUCHBASE) is None
