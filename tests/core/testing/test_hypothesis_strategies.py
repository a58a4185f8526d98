"""Hypothesis strategies, which draw every kind of value, and only lawful values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings, strategies as st

from tests.core.testing.asked import HOTELS, TRAVEL
from tests.core.testing.callers import two_versions
from triclinium_core.kv.operation.document_operations import Concatenate, Count, Store
from triclinium_core.retry.combined.strategies import PermitIssuer, decider_of
from triclinium_core.retry.couchbase import AnyRetryStrategy, RetryReason, RetryRequest, Service, is_async
from triclinium_core.testing import hypothesis_strategies
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.faults import RefuseConnection
from triclinium_core.testing.fault_catalogue import DATA_FAULTS, OWN_OPCODES, REPLY_FAULTS
from triclinium_core.testing.operation_templates import UNDERSTOOD, OperationTemplate
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.simulation import MIDPOINT

T = TypeVar("T")

TEXT, COUNTER = Place(TRAVEL, "ada"), Place(HOTELS, "hits")
KINDS = {kind.name: kind for kind in UNDERSTOOD}


DRAWS = settings(max_examples=600, phases=[Phase.generate], derandomize=True, database=None, deadline=None)
"""Settings with more examples than there are kinds of templates, faults and strikes."""


def draws(strategy: st.SearchStrategy[T]) -> Sequence[T]:
    """Return the values that a strategy draws, the same in each run."""
    drawn: list[T] = []

    @DRAWS
    @given(strategy)
    def draw(value: T) -> None:
        drawn.append(value)

    draw()
    return drawn


@cache
def drawn_templates() -> Sequence[OperationTemplate]:
    """Return the drawn templates of operations, the same ones in each call."""
    return draws(hypothesis_strategies.operation_templates(st.just(TEXT), st.just(COUNTER)))


@cache
def drawn_strikes() -> Sequence[hypothesis_strategies.Strike]:
    """Return the drawn strikes of faults, the same ones in each call."""
    return draws(hypothesis_strategies.strikes())


def test_every_kind_of_operation_is_drawn() -> None:
    """Each kind is drawn for text and for counters, except kinds that would turn one into the other."""
    texts = {name for name, kind in KINDS.items() if not issubclass(kind, Count)}
    counters = {name for name, kind in KINDS.items() if not issubclass(kind, Store | Concatenate)}

    assert texts == {template.kind for template in drawn_templates() if template.place == TEXT}
    assert counters == {template.kind for template in drawn_templates() if template.place == COUNTER}


def test_templates_make_lawful_operations() -> None:
    """The model accepts each operation that a drawn template makes."""
    for template in drawn_templates():
        model = two_versions()

        assert model.submitted(9, template.make(model)) is not None


def test_every_fault_is_drawn() -> None:
    """Each fault for document commands in the catalogue is drawn."""
    assert set(chain(*DATA_FAULTS)) == set(draws(hypothesis_strategies.data_faults()))


def test_every_command_is_struck() -> None:
    """Each command of the client, and each connect, may fail, once or several times."""
    refused = [strike.opcode for strike in drawn_strikes() if isinstance(strike.fault, RefuseConnection)]

    assert {None, *DATA_OPCODES, *OWN_OPCODES} == {strike.opcode for strike in drawn_strikes()}
    assert {1, 2, 5} == {strike.times for strike in drawn_strikes()}
    assert {None} == set(refused)


def test_strikes_suit_their_commands() -> None:
    """Each strike can be armed, and the client's own requests get no faults that concern a document."""
    for strike in drawn_strikes():
        waiting = Faults()
        strike.arm(waiting)

        assert strike.times == waiting.pending
        assert strike.opcode not in OWN_OPCODES or strike.fault in chain(*REPLY_FAULTS)


def test_every_retry_strategy_is_drawn() -> None:
    """Each strategy is drawn by its name; the default is the client's own, and the others have different types."""
    strategies: list[AnyRetryStrategy | None] = list(hypothesis_strategies.RETRY_STRATEGIES.values())
    token_strategies = hypothesis_strategies.token_strategies(LoanBook())
    names = [*hypothesis_strategies.RETRY_STRATEGIES, *token_strategies]

    assert sorted(names) == sorted({*draws(hypothesis_strategies.retry_strategies())})
    assert all(isinstance(decider_of(strategy), PermitIssuer) for strategy in token_strategies.values())
    assert hypothesis_strategies.RETRY_STRATEGIES["default"] is None
    assert len(strategies) == len({type(strategy) for strategy in strategies})


def test_defective_retry_strategies() -> None:
    """One strategy raises; another is asynchronous, and calling it is an error because the test answers instead."""
    raises, asks = (hypothesis_strategies.RETRY_STRATEGIES[name] for name in ("raises", "asks"))
    request = RetryRequest(service=Service.KV, operation="get", idempotent=True, rng=MIDPOINT, remaining=1.0)

    assert raises is not None
    assert not is_async(raises)
    with pytest.raises(ZeroDivisionError, match="a strategy with a defect"):
        raises.retry_after(request, RetryReason.UNKNOWN)
    assert asks is not None
    assert is_async(asks)
    with pytest.raises(AssertionError, match="the state machine answers "):
        asks.retry_after(request, RetryReason.UNKNOWN).send(None)
