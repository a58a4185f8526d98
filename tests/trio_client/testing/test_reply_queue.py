"""Unsent replies: order, the end, and a bound on what one client may pile up."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from triclinium.testing._reply_queue import UNSENT_SIZE_MAX, ReplyQueue


async def test_what_piled_up_is_taken_at_once() -> None:
    """In the order in which it was put; after the end there is nothing."""
    queue = ReplyQueue()
    queue.put(b"a")
    queue.put(b"bc")
    first = await queue.take()
    queue.put(b"d")
    queue.end()
    queue.put(b"late")

    assert [b"abc", b"d", b""] == [first, await queue.take(), await queue.take()]


@pytest.mark.parametrize("end", [False, True])
async def test_taking_waits_for_something(end: bool) -> None:
    """For the next bytes, or for the end."""
    queue, taken = ReplyQueue(), list[bytes]()

    async def take() -> None:
        taken.append(await queue.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        assert [] == taken
        if end:
            queue.end()
        else:
            queue.put(b"a")

    assert [b"" if end else b"a"] == taken


@pytest.mark.parametrize("client_is_gone", [False, True])
async def test_a_client_that_does_not_read_is_not_read_either(client_is_gone: bool) -> None:
    """Until its replies are written, or forgotten; taking them is not enough."""
    queue, events = ReplyQueue(), list[str]()

    async def read() -> None:
        await queue.wait_for_room()
        events.append("room")

    queue.put(bytes(UNSENT_SIZE_MAX))
    await queue.wait_for_room()
    queue.put(b"1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        data = await queue.take()
        await trio.testing.wait_all_tasks_blocked()
        events.append("taken")
        if client_is_gone:
            queue.discard()
        else:
            queue.written(data)

    assert ["taken", "room"] == events


async def test_nothing_is_kept_for_a_client_that_is_gone() -> None:
    """What was there and what comes is forgotten."""
    queue = ReplyQueue()
    queue.put(b"a")
    queue.discard()
    queue.put(bytes(2 * UNSENT_SIZE_MAX))
    await queue.wait_for_room()

    assert b"" == await queue.take()
