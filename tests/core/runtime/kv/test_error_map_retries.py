"""Statuses that only the node's error map describes: its attributes decide how an operation continues."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.carrier_cases import MAP, TWO
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import FailOperation, ReportRefusal, ReportRetry
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry import couchbase
from triclinium_core.testing.fakes import faults


@rows(
    ("code", "kind"),
    [
        (0x7F06, errors.InvalidArgumentException),
        (0x7F08, errors.CouchbaseException),
        (0x7EEE, errors.CouchbaseException),
    ],
)
def test_unknown_status_that_is_not_retried(code: int, kind: type[errors.CouchbaseException]) -> None:
    """Only attributes permit retries of an unknown status; a map entry gives exception, name and text (C13, C31)."""
    simulation = simulated.ready(error_map=MAP)
    simulation.node.faults.next(Opcode.SET, faults.status(code))
    error = simulation.failure(kind, simulated.upsert(), retry_strategy=couchbase.BestEffortRetryStrategy())
    row = next((row for row in MAP.rows if row.code == code), None)

    assert code == error.context.status
    assert (row.name if row else None, row.description if row else None) == (
        error.context.status_name,
        error.context.status_text,
    )
    assert 0 == error.context.retry_attempts


def test_schedule_of_the_map() -> None:
    """``ErrorMapRetryStrategy`` retries with the delays that the error map specifies (decision C14)."""
    simulation = simulated.ready(error_map=MAP)
    simulation.node.faults.next(Opcode.SET, faults.status(0x7F03), times=3)
    simulation.finish(simulated.upsert(), retry_strategy=couchbase.ErrorMapRetryStrategy())

    assert [0.02, 0.01, 0.01] == [retry.delay for retry in simulation.retries]


@pytest.mark.parametrize(("code", "settles"), [(0x7F09, True), (0x7F0A, True), (0x7F0B, False)])
def test_close_after_settling(code: int, settles: bool) -> None:
    """If a status closes the connection, the operation first fails or its retry is reported (decision C31)."""
    simulation = simulated.ready(error_map=MAP)
    _, request = simulation.submit_in_flight(simulated.upsert())
    del simulation.actions[:]
    simulation.inject(simulated.respond(request, code))
    first = FailOperation if settles else ReportRetry

    assert [first, neutral.CloseStream, neutral.ReportConnection] == [type(action) for action in simulation.actions]
    assert f"status 0x{code:02x}" in simulation.closings()[0]


def test_closing_takes_others_along_after_settling() -> None:
    """If a status closes the connection, the other operations in flight fail afterwards."""
    simulation = simulated.ready(error_map=MAP)
    first, request = simulation.submit_in_flight(simulated.upsert("a"))
    second, _ = simulation.submit_in_flight(simulated.upsert("b"))
    del simulation.actions[:]
    simulation.inject(simulated.respond(request, 0x7F09))
    kinds = [type(action) for action in simulation.actions]

    assert [FailOperation, neutral.CloseStream, neutral.ReportConnection, ReportRefusal, FailOperation] == kinds
    assert [first, second] == [action.token for action in simulation.actions if isinstance(action, FailOperation)]


@pytest.mark.parametrize("code", [0x7F08, 0x7F0C])
@pytest.mark.parametrize("body", [b"", b'{"error":{"context":"look"}}'])
def test_fetch_config(code: int, body: bytes) -> None:
    """A status with ``fetch-config`` requests a config for any body: only NOT_MY_VBUCKET contains a config (C31)."""
    simulation = simulated.ready(error_map=MAP)
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, code, value=body))

    assert Opcode.GET_CLUSTER_CONFIG == simulation.requests[TWO][-1].opcode
