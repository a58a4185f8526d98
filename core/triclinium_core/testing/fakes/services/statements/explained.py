"""Plans and profiles of statements: the answer to EXPLAIN, and the field ``profile`` of a response.

The operators are those of the fake's work: it reads scripted values, indexes, or nothing, and sends the result.

Source: Couchbase Server documentation, "EXPLAIN", "Monitor Queries: Profiling"; couchbase/query ``plan/``,
``server/http/service_respond.go`` (writeProfile).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from triclinium_core.testing.fakes.services.statements.select import Select

PROFILES = ("phases", "timings")
"""Values of the parameter ``profile`` that request a profile."""

Operator = Mapping[str, object]


def plan_of(select: Select | None) -> Operator:
    """Return the plan of a SELECT; for None, that of any other statement or of a scripted one."""
    return {"#operator": "Sequence", "~children": _operators_of(select)}


def explained(statement: str, select: Select | None) -> Mapping[str, object]:
    """Return the only row of EXPLAIN."""
    return {"plan": plan_of(select), "text": statement}


def profile_of(kind: str, select: Select | None, *, seconds: float, wall_seconds: float, host: str) -> Operator:
    """Return the profile of an executed statement.

    Args:
        kind: one of ``PROFILES``; timings add the plan.
        seconds: execution time.
    """
    names = [str(operator["#operator"]) for operator in _operators_of(select)]
    took = duration(seconds)
    found: dict[str, object] = {
        "phaseTimes": {"parse": took, "run": took},
        "phaseCounts": {},
        "phaseOperators": {name.lower(): names.count(name) for name in names},
        "requestTime": datetime.fromtimestamp(wall_seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
        "servicingHost": host,
    }
    if kind == "timings":
        found["executionTimings"] = {**plan_of(select), "#stats": {"#phaseSwitches": 1, "execTime": took}}
    return found


def duration(seconds: float) -> str:
    """Return a duration in the form of the service."""
    return f"{seconds * 1000:.6f}ms"


def _operators_of(select: Select | None) -> Sequence[Operator]:
    if select is None:
        return ({"#operator": "ValueScan"}, {"#operator": "Stream"})
    if select.source is None:
        scan: Operator = {"#operator": "DummyScan"}
    else:
        namespace, keyspace = (("", *select.source))[-2:]
        scan = {"#operator": "PrimaryScan", "keyspace": keyspace, "namespace": f"#{namespace}", "using": "system"}
    names = [{"as": column.name} for column in select.columns]
    return (
        scan,
        *([{"#operator": "Filter"}] if select.where is not None else []),
        {"#operator": "InitialProject", "result_terms": names},
        *([{"#operator": "Order"}] if select.orderings else []),
        {"#operator": "Stream"},
    )
