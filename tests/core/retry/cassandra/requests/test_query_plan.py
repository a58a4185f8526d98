"""Query plan: it returns each node once, as late as possible, and refuses invalid nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.requests.query_plan import QueryPlan


def test_in_order_and_then_none() -> None:
    """A plan returns each node once, in order, and then None."""
    plan = QueryPlan(["n1", 2, ("n3", 9042)])

    assert ["n1", 2, ("n3", 9042), None, None] == [plan.take() for _ in range(5)]


def test_a_generator_is_advanced_late() -> None:
    """A generator is advanced only when the next node is needed."""
    made: list[int] = []

    def nodes() -> Iterator[int]:
        for node in range(1, 100):
            made.append(node)
            yield node

    plan = QueryPlan(nodes())
    assert [] == made
    plan.take()
    plan.take()

    assert [1, 2] == made


@rows(
    ("nodes", "text"),
    [
        ("n1", "plan='n1' must be an iterable of nodes"),
        (b"n1", "plan=b'n1' must be an iterable of nodes"),
        (7, "plan=7 must be an iterable of nodes"),
        (None, "plan=None must be an iterable of nodes"),
        ([["n1"]], r"node \['n1'\] of the plan is not hashable"),
        (["n1", None], "^plan .*None"),
    ],
)
def test_invalid_plans(nodes: Any, text: str) -> None:
    """An invalid query plan, or a sequence with an invalid node, raises an error."""
    with refusal_of("plan", text):
        QueryPlan(nodes)


def test_a_generator_that_fails_is_over() -> None:
    """If a generator yields an invalid node, the plan raises once, and then has no more nodes."""

    def nodes() -> Iterator[Any]:
        yield "n1"
        yield ["n2"]
        yield "n3"

    plan = QueryPlan(nodes())
    assert "n1" == plan.take()
    with pytest.raises(ArgumentError, match="not hashable"):
        plan.take()

    assert plan.take() is None
