"""Span and metric of a cancelled call, whose error depends on the scope that cancelled the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from tests.trio_client.pair import Pair
from tests.trio_client.telemetry_tables import STATEMENT, open_recorded
from triclinium.testing import FakeAnswer, Opcode, drop_response
from triclinium_core.telemetry.span_names import DISPATCH


async def read_silently(pair: Pair) -> None:
    """Read a document from a node that does not respond."""
    pair.fake.node.faults.next(Opcode.GET, drop_response())
    await pair.people.get("ada")


async def write_silently(pair: Pair) -> None:
    """Write a document to a node that does not respond."""
    pair.fake.node.faults.next(Opcode.SET, drop_response())
    await pair.people.upsert("ada", 2)


async def manage_silently(pair: Pair) -> None:
    """Send an idempotent request to a service that does not respond."""
    pair.fake.node.faults.next(triclinium.Service.MANAGEMENT, drop_response())
    await pair.cluster.buckets().get_bucket("travel")


async def query_silently(pair: Pair) -> None:
    """Wait for the first row of a statement that may write."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1], seconds=60))
    async with pair.cluster.query(STATEMENT):
        pytest.fail("a row came")


async def wait_for_rows(pair: Pair) -> None:
    """Wait for the second row."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        async for _ in result:
            pass


async def keep_rows(pair: Pair) -> None:
    """Stay in the block of a query whose response is incomplete."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        await anext(result)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)


async def ask_for_rows_too_late(pair: Pair) -> None:
    """Read the second row after the outer scope has expired."""
    pair.fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], seconds_between_rows=60))
    async with pair.cluster.query(STATEMENT, readonly=True) as result:
        await anext(result)
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        await anext(result)


@rows(
    ("body", "name", "late"),
    [
        (read_silently, "get", "UnambiguousTimeout"),
        (write_silently, "upsert", "AmbiguousTimeout"),
        (manage_silently, "manager_buckets_get_bucket", "UnambiguousTimeout"),
        (query_silently, "query", "AmbiguousTimeout"),
        (wait_for_rows, "query", "UnambiguousTimeout"),
        (keep_rows, "query", "UnambiguousTimeout"),
        (ask_for_rows_too_late, "query", "UnambiguousTimeout"),
    ],
)
@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_a_call_cancelled_by_its_scope(
    autojump_clock: MockClock,
    limit: Callable[[float], AbstractContextManager[object]],
    body: Callable[[Pair], Awaitable[None]],
    name: str,
    late: str,
) -> None:
    """A cancelled call has a timeout error in an expired ``fail_after`` block, and otherwise a cancellation error."""
    async with open_recorded() as (pair, tracer, meter):
        await pair.people.upsert("ada", 1)
        with suppress(trio.TooSlowError), limit(1):
            await body(pair)

    span, (_, tags, microseconds) = tracer.roots[-1], meter.values[-1]
    status, error = (
        (triclinium.telemetry.StatusCode.ERROR, late)
        if limit is triclinium.fail_after
        else (triclinium.telemetry.StatusCode.UNSET, "RequestCanceled")
    )
    assert (name, status, error) == (span.name, span.status, span.attributes.get("error.type"))
    assert (name, error, 1_000_000) == (tags["db.operation.name"], tags.get("error.type"), microseconds)
    assert 2 == len(meter.values)


@rows(("body", "name"), [(manage_silently, "manager_buckets_get_bucket"), (query_silently, "query")])
@pytest.mark.parametrize("limit", [trio.move_on_after, triclinium.fail_after])
async def test_a_call_in_an_expired_scope(
    autojump_clock: MockClock,
    limit: Callable[[float], AbstractContextManager[object]],
    body: Callable[[Pair], Awaitable[None]],
    name: str,
) -> None:
    """In an expired scope, a call is not sent even if another operation is open; its span has the scope's error."""
    async with open_recorded() as (pair, tracer, _), trio.open_nursery() as nursery:
        await pair.people.upsert("ada", 1)
        nursery.start_soon(read_silently, pair)
        await trio.testing.wait_all_tasks_blocked()
        with suppress(trio.TooSlowError), limit(1):
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            await body(pair)
        nursery.cancel_scope.cancel()

    span = tracer.roots[-1]
    error = "UnambiguousTimeout" if limit is triclinium.fail_after else "RequestCanceled"
    assert (name, error) == (span.name, span.attributes.get("error.type"))
    assert DISPATCH not in {child.name for child in span.children}
