"""Unsent replies: who hears of them; the node that serves them proves their order and the end."""

from __future__ import annotations

import trio
import trio.testing

from triclinium.testing._reply_queue import ReplyQueue


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
