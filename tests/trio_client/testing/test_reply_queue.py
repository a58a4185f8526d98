"""Unsent replies: order, the end, and who hears of it."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from triclinium.testing._reply_queue import ReplyQueue


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


async def test_who_waits_hears_of_what_was_written() -> None:
    """Taking it is not enough."""
    queue, events = ReplyQueue(), list[str]()

    async def wait() -> None:
        await queue.wait_written()
        events.append("written")

    queue.put(b"1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await queue.take()
        await trio.testing.wait_all_tasks_blocked()
        events.append("taken")
        queue.written()

    assert ["taken", "written"] == events
