"""Agreement between the client and the predictions of ``explain``, for each operation and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from tests.core.kv.operation.examples import VALID, make
from tests.core.runtime.kv.simulated import SMALL_MAP, Recorded, client_options, ready, respond
from tests.rows import rows
from triclinium_core.contract.couchbase import Action, CompleteOperation, FailOperation, ReportRetry
from triclinium_core.contract.neutral import BytesReceived, CloseStream
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.explain.explanation import Outcome, milliseconds
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.operation.validation import REPLICAS_MAX
from triclinium_core.retry import couchbase

MAPPED = SMALL_MAP.rows[0].code
STATUSES = sorted(
    {*map(int, couchbase.Status), *range(0x0F, 0x100, 0x10), MAPPED, 0x7FF1, 0xFFFF} - {couchbase.Status.SUCCESS}
)
"""Statuses under test: all known ones except success, one in the node's error map, and some unknown ones."""


class Comparable(NamedTuple):
    """Result of an operation, as far as both ``explain`` and the client describe it."""

    outcome: Outcome
    reason: str | None = None
    delay_ms: float | None = None
    error: str | None = None
    closes: bool = False


def entry_of(status: int) -> couchbase.ErrorMapEntry | None:
    """Return the entry of a status in the node's error map."""
    return couchbase.parse_error_map(SMALL_MAP.encode(2)).entries.get(status)


def explained(operation: Operation, status: int, strategy: couchbase.RetryStrategy) -> Comparable:
    """Return the result that ``explain`` predicts."""
    case = CouchbaseCase(
        service=couchbase.Service.KV,
        operation=operation.name,
        happened=KvAnswer(status, entry_of(status)),
        strategy=strategy,
    )
    steps: Mapping[str, Any] = explain(case).facts
    closes = any(order.startswith("close the connection") for order in steps["orders"])
    outcome = Outcome(steps["action"])
    reason = steps["reason"] if outcome is Outcome.RETRY else None
    return Comparable(outcome, reason, steps["delay_ms"], steps["error"], closes)


def done(actions: Sequence[Action]) -> Comparable:
    """Return the result that the client's actions show."""
    closes = any(isinstance(action, CloseStream) for action in actions)
    for action in actions:
        match action:
            case ReportRetry(reason=reason, delay=delay):
                return Comparable(Outcome.RETRY, str(reason), milliseconds(delay), None, closes)
            case FailOperation(error=error):
                return Comparable(Outcome.FAIL, None, None, type(error).__name__, closes)
            case CompleteOperation():
                return Comparable(Outcome.COMPLETE, closes=closes)
            case _:
                pass
    raise AssertionError(f"no action retries, fails or completes the operation: {actions}")


BODIES: Mapping[type[Operation], Mapping[int, bytes]] = {
    LookupIn: dict.fromkeys((0xCC, 0xCD, 0xD3), b"\x00\x00" + bytes(4)),
    LookupInReplica: dict.fromkeys((0xCC, 0xCD, 0xD3), b"\x00\x00" + bytes(4)),
    MutateIn: dict.fromkeys((0xCC, 0xD3), b"\x00" + b"\x00\x87"),
}
"""Bodies of the statuses that need one: they have the results of the paths."""


def answered(simulation: Recorded, operation: Operation, status: int) -> Comparable:
    """Submit an operation, respond with this status, and return the result in the client."""
    token, request = simulation.submit_in_flight(operation)
    actions = simulation.feed(
        BytesReceived(
            simulation.newest, respond(request, status, value=BODIES.get(type(operation), {}).get(status, b""))
        )
    )
    simulation.abandon(token)
    return done(actions)


@rows("strategy", [couchbase.FastFailOnTerminalErrorRetryStrategy(), couchbase.BestEffortRetryStrategy()])
@pytest.mark.parametrize("kind", VALID, ids=lambda kind: kind.name)
def test_the_client_agrees_with_explain(kind: type[Operation], strategy: couchbase.RetryStrategy) -> None:
    """For each status, the client retries, fails or closes the connection as ``explain`` predicts."""
    operation = make(kind)
    simulation = None
    for status in STATUSES:
        simulation = simulation or ready(options=client_options(retry_strategy=strategy), replicas=REPLICAS_MAX)
        verdict = answered(simulation, operation, status)
        if verdict.closes:
            simulation = None

        assert (status, explained(operation, status, strategy)) == (status, verdict)
