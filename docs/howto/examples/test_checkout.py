"""Tests of an application on a cluster in memory: ``pytest test_checkout.py``, with pytest-trio installed."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from triclinium import Collection
from triclinium.errors import DocumentExistsException, RequestCanceledException, UnambiguousTimeoutException
from triclinium.testing import (
    Opcode,
    delay,
    hang_up,
    hang_up_mid_reply,
    open_fake_cluster,
    refuse_connection,
    temporary_failure,
)

# -- The application.


async def check_out(orders: Collection, order: str, total: int) -> str:
    """Create an order, unless it exists; a repeated call has no effect."""
    try:
        await orders.insert(order, {"total": total})
    except DocumentExistsException:
        return "there already"
    return "created"


# -- Tests of the application. ``autojump_clock`` is Trio's virtual clock: waiting takes no time.


async def test_survives_a_busy_node(autojump_clock: trio.testing.MockClock) -> None:
    """If the node is busy five times, the order is still created, with a delay."""
    async with open_fake_cluster(buckets=["shop"]) as fake, fake.open_client() as cluster:
        orders = cluster.bucket("shop").default_collection()
        fake.node.faults.next(Opcode.ADD, temporary_failure(), times=5)

        assert await check_out(orders, "o1", 42) == "created"
        assert fake.node.faults.pending == 0


async def test_a_read_survives_a_lost_connection(autojump_clock: trio.testing.MockClock) -> None:
    """If the connection closes in the middle of a response, the client repeats the read over a new connection."""
    async with open_fake_cluster(buckets=["shop"]) as fake, fake.open_client() as cluster:
        orders = cluster.bucket("shop").default_collection()
        await check_out(orders, "o1", 42)
        fake.node.faults.next(Opcode.GET, hang_up_mid_reply())
        fake.node.faults.next(None, refuse_connection(), times=2)

        assert (await orders.get("o1")).content == {"total": 42}


async def test_asks_again_when_in_doubt(autojump_clock: trio.testing.MockClock) -> None:
    """If the connection is lost, the client does not resend the write, but the application safely can."""
    async with open_fake_cluster(buckets=["shop"]) as fake, fake.open_client() as cluster:
        orders = cluster.bucket("shop").default_collection()
        await orders.exists("o1")
        fake.node.faults.next(Opcode.ADD, hang_up())

        with pytest.raises(RequestCanceledException, match="it may have been applied"):
            await check_out(orders, "o1", 42)
        assert await check_out(orders, "o1", 42) == "created"
        assert await check_out(orders, "o1", 42) == "there already"


async def test_gives_up_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """If the node responds too late, the read times out after the default limit of 2.5 seconds."""
    async with open_fake_cluster(buckets=["shop"]) as fake, fake.open_client() as cluster:
        orders = cluster.bucket("shop").default_collection()
        fake.node.faults.always(Opcode.GET, delay(60))
        began = trio.current_time()

        with pytest.raises(UnambiguousTimeoutException):
            await orders.get("o1")
        assert trio.current_time() - began == pytest.approx(2.5)
