"""Hypothesis strategies for histories of a key-value client: operations, faults, retry strategies, cuts.

Needs the extra ``testing``. What is drawn is small values that read well in a failing example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from triclinium_core.retry.couchbase.strategy import (
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    RetryAction,
    RetryRequest,
)
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
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
from triclinium_core.testing.oracle.submissions import Place


def operation_templates(
    texts: st.SearchStrategy[Place], counters: st.SearchStrategy[Place]
) -> st.SearchStrategy[OperationTemplate]:
    """Return operations of every kind, on documents of bytes and on counters."""
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
    """A fault, and what it strikes."""

    opcode: int | None
    fault: Fault
    times: int = 1

    def arm(self, waiting: Faults) -> None:
        """Let the fault wait for its commands."""
        waiting.next(self.opcode, self.fault, self.times)


def data_faults() -> st.SearchStrategy[Fault]:
    """Return faults for commands on documents; none of them lies about the document."""
    return st.one_of(*map(st.sampled_from, DATA_FAULTS))


def strikes() -> st.SearchStrategy[Strike]:
    """Return faults of every kind, on data commands, on the bootstrap and on our own requests."""
    times = st.sampled_from(TIMES)
    return st.one_of(
        *(
            st.builds(Strike, st.sampled_from(opcodes), st.one_of(*map(st.sampled_from, kinds)), times)
            for _, (opcodes, kinds) in TARGETS
        ),
        st.builds(Strike, st.none(), st.just(refuse_connection()), times),
    )


class _Raises:
    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        raise ZeroDivisionError("a strategy with a defect")


class _Asks:
    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        raise AssertionError("the state machine answers in its place")


RETRY_STRATEGIES: Mapping[str, AnyRetryStrategy | None] = {
    "default": None,
    "best effort": BestEffortRetryStrategy(),
    "fail fast": FailFastRetryStrategy(),
    "error map": ErrorMapRetryStrategy(),
    "raises": _Raises(),
    "asks": _Asks(),
}
"""Retry strategies of an operation, by the name that stands in a failing example."""


def retry_strategies() -> st.SearchStrategy[str]:
    """Return names of ``RETRY_STRATEGIES``, mostly the default one."""
    return st.sampled_from(("default",) * 5 + tuple(RETRY_STRATEGIES))


def cuts() -> st.SearchStrategy[int | None]:
    """Return how many bytes move at once; None for all there are."""
    return st.one_of(st.none(), st.integers(1, 120))
