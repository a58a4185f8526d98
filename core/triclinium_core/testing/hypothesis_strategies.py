"""Hypothesis strategies for histories of a key-value client: operations, faults, retry strategies.

The module needs the extra ``testing``. Drawn values are small, so that a failing example is readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from triclinium_core.retry import couchbase
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import AnyRetryStrategy as CouchbaseStrategy
from triclinium_core.retry.smithy import BudgetRetryStrategy, RetryError, SingleUseToken, StandardRetryStrategy
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.faults import Fault, refuse_connection
from triclinium_core.testing.fault_catalogue import DATA_FAULTS, TARGETS, TIMES
from triclinium_core.testing.operation_templates import (
    COUNTER_KINDS,
    DURABILITY_LEVELS,
    DURABLE_KINDS,
    TEXT_KINDS,
    OperationTemplate,
    choices_of,
)
from triclinium_core.testing.oracle.checked_strategies import AwaitedStrategy, CheckedStrategy
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.simulation.consultations import think
from triclinium_core.testing.simulation.simulation import MIDPOINT


def operation_templates(
    texts: st.SearchStrategy[Place], counters: st.SearchStrategy[Place]
) -> st.SearchStrategy[OperationTemplate]:
    """Return a strategy for operations that the model understands, on documents of bytes and on counters."""
    return st.one_of(
        *(_templates(name, texts) for name in TEXT_KINDS),
        *(_templates(name, counters) for name in COUNTER_KINDS),
    )


def _templates(name: str, places: st.SearchStrategy[Place]) -> st.SearchStrategy[OperationTemplate]:
    parameters = {parameter: st.sampled_from(choices) for parameter, choices in choices_of(name).items()}
    if name in DURABLE_KINDS:
        parameters["durability"] = st.sampled_from(DURABILITY_LEVELS)
    return st.builds(OperationTemplate, kind=st.just(name), place=places, **parameters)


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault, its target and its number of times."""

    opcode: int | None
    fault: Fault
    times: int = 1

    def arm(self, waiting: Faults) -> None:
        """Queue the fault for its target, ``times`` times."""
        waiting.next(self.opcode, self.fault, self.times)


def data_faults() -> st.SearchStrategy[Fault]:
    """Return a strategy for faults of commands on documents. No fault misreports the content of the document."""
    return st.one_of(*map(st.sampled_from, DATA_FAULTS))


def strikes() -> st.SearchStrategy[Strike]:
    """Return a strategy for faults of data commands, the bootstrap, the client's own requests and connects."""
    times = st.sampled_from(TIMES)
    return st.one_of(
        *(
            st.builds(Strike, st.sampled_from(opcodes), st.one_of(*map(st.sampled_from, kinds)), times)
            for _, (opcodes, kinds) in TARGETS
        ),
        st.builds(Strike, st.none(), st.just(refuse_connection()), times),
    )


class _Raises:
    def retry_after(self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /) -> couchbase.RetryAction:
        raise ZeroDivisionError("a strategy with a defect")


class _Asks:
    async def retry_after(
        self, request: couchbase.RetryRequest, reason: couchbase.RetryReason, /
    ) -> couchbase.RetryAction:
        raise AssertionError("the state machine answers for this strategy")


RETRY_STRATEGIES: Mapping[str, CouchbaseStrategy | None] = {
    "default": None,
    "best effort": couchbase.BestEffortRetryStrategy(),
    "fail fast": couchbase.FailFastRetryStrategy(),
    "error map": couchbase.ErrorMapRetryStrategy(),
    "raises": _Raises(),
    "asks": _Asks(),
}
"""Couchbase retry strategies by the name that a failing example shows. None means the client's strategy."""


class _IssuesNothing(StandardRetryStrategy):
    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        raise RetryError("this strategy issues no token")


class _RaisesFirst(StandardRetryStrategy):
    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> SingleUseToken:
        raise ZeroDivisionError("a token strategy with a defect")


_LENDERS: Mapping[str, Callable[[CheckedStrategy, LoanBook], AnyRetryStrategy]] = {
    "tokens": lambda shared, book: shared,
    "tokens of a scope": lambda shared, book: TokenScope(shared, "near"),
    "awaited tokens": lambda shared, book: AwaitedStrategy(shared, think),
    "awaited tokens of a scope": lambda shared, book: TokenScope(AwaitedStrategy(shared, think), "far"),
    "budget": lambda shared, book: CheckedStrategy(book, BudgetRetryStrategy(rng=MIDPOINT, capacity=3)),
    "issues nothing": lambda shared, book: CheckedStrategy(book, _IssuesNothing(rng=MIDPOINT)),
    "raises first": lambda shared, book: CheckedStrategy(book, _RaisesFirst(rng=MIDPOINT)),
}


def token_strategies(book: LoanBook, quota_capacity: int = 40) -> Mapping[str, AnyRetryStrategy]:
    """Return token strategies for an operation, by name. Names with "tokens" share one strategy, which has a quota.

    Args:
        book: records the tokens that the strategies issue.
        quota_capacity: units of the quota of each scope; 40 permits two retries until successes refill the quota.
    """
    shared = CheckedStrategy(book, StandardRetryStrategy(rng=MIDPOINT, quota_capacity=quota_capacity))
    return {name: make(shared, book) for name, make in _LENDERS.items()}


RETRY_STRATEGY_NAMES: tuple[str, ...] = ("default",) * 5 + tuple(RETRY_STRATEGIES) + tuple(_LENDERS)
"""Names in ``RETRY_STRATEGIES`` and ``token_strategies``; ``default`` is repeated according to its weight."""


def retry_strategies() -> st.SearchStrategy[str]:
    """Return a strategy for names in ``RETRY_STRATEGIES`` and ``token_strategies``, most often ``default``."""
    return st.sampled_from(RETRY_STRATEGY_NAMES)
