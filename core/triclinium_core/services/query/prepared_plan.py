"""The plan of a prepared statement, and the key under which a client remembers it."""

from __future__ import annotations

from typing import NamedTuple

from triclinium_core.services.request import ServiceResult
from triclinium_core.shown import total_repr


class PreparedPlan(ServiceResult, frozen=True):
    """Plan of a statement, as a node has made it. ``repr`` shows only its name."""

    name: str
    encoded_plan: str | None = None
    """Plan for nodes that do not know the name; None if the nodes ask each other."""

    @total_repr
    def __repr__(self) -> str:
        return f"PreparedPlan({self.name!r})"


class PlanKey(NamedTuple):
    """Everything on which a plan depends."""

    statement: str
    query_context: str
    flex_index: bool
