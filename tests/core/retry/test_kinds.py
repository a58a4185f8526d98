"""Kinds of strategies: a strategy of an unsuitable kind is refused, and the error names its kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.core.retry.couchbase.request_cases import Awaits
from tests.core.retry.smithy.cases import Fixed
from tests.refusals import refusal_of
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
TAKERS: tuple[tuple[set[DeciderKind], Callable[[Any], object]], ...] = (
    ({COUCHBASE}, require_strategy),
    ({SMITHY}, CallTerms),
    ({SMITHY}, as_async),
    ({CASSANDRA}, lambda given: ExecutionProfile(name="p", retry_policy=given)),
    ({COUCHBASE, SMITHY}, lambda given: ClientOptions(connection_string="couchbase://h", retry_strategy=given)),
    (
        {COUCHBASE, SMITHY},
        lambda given: CouchbaseCase(service=Service.KV, operation="get", happened=KvAnswer(0), strategy=given),
    ),
)
"""Functions that accept a strategy, each with the kinds that it accepts."""


@pytest.mark.parametrize(("taker", "given"), [*product(TAKERS, GIVEN)])
def test_only_suitable_kinds_are_accepted(
    taker: tuple[set[DeciderKind], Callable[[Any], object]], given: tuple[DeciderKind, Any]
) -> None:
    """A strategy of a suitable kind is accepted; for any other, the error names the strategy's kind."""
    (accepted, take), (kind, strategy) = taker, given
    assert kind is kind_of(strategy)
    assert other_kind(strategy, kind) is None
    if kind in accepted:
        take(strategy)
        return
    with pytest.raises(ArgumentError) as caught:
        take(strategy)

    assert kind.words in str(caught.value)
    assert (COUCHBASE in accepted) is isinstance(caught.value, errors.CouchbaseException)


def test_the_fallback_of_an_error_map_strategy() -> None:
    """An error map strategy refuses a token strategy as its fallback."""
    with refusal_of("otherwise", kind=errors.InvalidArgumentException, said=SMITHY.words):
        ErrorMapRetryStrategy(SimpleRetryStrategy(rng=Fixed()))  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, "best effort", object(), BestEffortRetryStrategy])
def test_objects_of_no_kind_are_refused(given: object) -> None:
    """An object without the methods of a strategy is refused, and the class of a strategy is refused too."""
    with pytest.raises(errors.InvalidArgumentException):
        require_strategy(given)

    assert other_kind(given, COUCHBASE) is None
