"""A node at work: its clock, and what one client can do to the others."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.trio_client.doubles import HalfDeafStream
from triclinium.testing import _node_server
from triclinium.testing._memory_stream import memory_stream_pair
from triclinium.testing._node_server import NodeServer, ReplyQueue, serving
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.testing import FakeNode, FakeNodes, delay, hang_up

QUESTION = encode_request(Opcode.SASL_LIST_MECHS, opaque=1)
"""Which anybody may ask."""


async def call(server: NodeServer) -> trio.abc.Stream:
    """Return the client's end of a new stream."""
    ours, theirs = memory_stream_pair()
    server.start_soon(server.serve_stream, theirs)
    await trio.testing.wait_all_tasks_blocked()
    return ours


async def test_the_clock_goes_on_where_it_stood(autojump_clock: MockClock) -> None:
    """A node that is served again does not see the time in between, and never sees it go back."""
    node = FakeNode()
    for _ in range(2):
        async with serving(node) as server:
            client = await call(server)
            await trio.sleep(2.5)
            await client.send_all(QUESTION)
            await client.receive_some()
        await trio.sleep(1000)

    assert [2.5, 5.0] == [pytest.approx(command.now) for command in node.command_log]


@pytest.mark.parametrize("began", [0.1, 1 / 3, 1e9 / 7])
async def test_rounding_does_not_stop_the_clock(autojump_clock: MockClock, began: float) -> None:
    """Whenever a node is first served, its delayed replies come: virtual time would wait for a late one for ever."""
    await trio.sleep(began)
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        for number in range(1, 50):
            node.faults.next(Opcode.SASL_LIST_MECHS, delay(number / 7))
            await client.send_all(QUESTION)
            assert 24 <= len(await client.receive_some())


async def test_the_clock_notices_what_is_due_earlier(autojump_clock: MockClock) -> None:
    """A reply that is due before the one it waits for; and one whose client has left."""
    node = FakeNode()
    async with serving(node) as server:
        slow, quick, gone = await call(server), await call(server), await call(server)
        for client, seconds in ((slow, 9), (quick, 3), (gone, 1)):
            node.faults.next(Opcode.SASL_LIST_MECHS, delay(seconds))
            await client.send_all(QUESTION)
            await trio.testing.wait_all_tasks_blocked()
        await gone.aclose()
        began = trio.current_time()
        await quick.receive_some()
        after_quick = trio.current_time() - began
        await slow.receive_some()

    assert [3, 9] == [pytest.approx(after_quick), pytest.approx(trio.current_time() - began)]


async def test_a_client_that_leaves_loses_no_request() -> None:
    """What it sent before it left is carried out, although nobody reads the reply."""
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        await client.send_all(QUESTION)
        await client.aclose()
        await trio.testing.wait_all_tasks_blocked()

    assert 1 == len(node.command_log)


async def test_a_client_that_cannot_be_written_to_is_still_heard(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests are carried out until it can be read no more either; nothing of that is a crash."""
    monkeypatch.setattr(_node_server, "UNSENT_SIZE_MAX", 1)
    node = FakeNode()
    requests = iter([100 * QUESTION, QUESTION])

    async def break_down(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError

    async def refuse_to_close() -> None:
        raise trio.BrokenResourceError

    async def receive() -> bytes:
        await trio.testing.wait_all_tasks_blocked()
        data = next(requests, None)
        if data is None:
            await break_down()
        return data or b""

    async with serving(node) as server:
        stream = HalfDeafStream(send_all=break_down, receive_some=receive, aclose=refuse_to_close)
        with trio.fail_after(1):
            await server.serve_stream(stream)

    assert 101 == len(node.command_log)
    assert 1 == len(stream.sent)
    assert stream.is_closed


async def test_a_client_that_does_not_read_is_not_served_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it sends stays with it, and what it has sent is carried out as its replies are read, to the last."""
    monkeypatch.setattr(_node_server, "UNSENT_SIZE_MAX", 1000)
    node, reads, progress, wakes = FakeNode(), list[None](), list[tuple[int, int]](), trio.Event()

    async def receive() -> bytes:
        await trio.lowlevel.checkpoint()
        reads.append(None)
        return 100 * QUESTION if len(reads) <= 2 else b""

    stream = HalfDeafStream(send_all=lambda _: wakes.wait(), receive_some=receive)
    async with serving(node) as server, trio.open_nursery() as nursery:
        nursery.start_soon(server.serve_stream, stream)
        await trio.testing.wait_all_tasks_blocked()
        progress.append((len(reads), len(node.command_log)))
        wakes.set()

    ((reads_then, commands_then),) = progress
    assert 1 == reads_then
    assert 0 < commands_then <= 2 * 1000 / len(QUESTION)
    assert 200 == len(node.command_log)


async def test_a_stream_without_half_an_end_is_closed(autojump_clock: MockClock) -> None:
    """The client reads the end when the whole stream is."""
    node = FakeNode()
    node.faults.always(Opcode.SASL_LIST_MECHS, hang_up())
    requests = iter([QUESTION])

    async def receive() -> bytes:
        await trio.lowlevel.checkpoint()
        return next(requests, None) or await trio.sleep_forever()

    async with serving(node) as server:
        stream = HalfDeafStream(receive_some=receive)
        await server.serve_stream(stream)

    assert stream.is_closed


async def test_nodes_share_a_clock(autojump_clock: MockClock) -> None:
    """Whichever is due is told the time, and no other reply waits for that."""
    nodes = FakeNodes(nodes=2)
    async with serving(nodes) as server:
        clients = []
        for node, seconds in zip(nodes, (9, 3), strict=True):
            ours, theirs = memory_stream_pair()
            server.start_soon(server.serve_stream, theirs, node)
            node.faults.next(Opcode.SASL_LIST_MECHS, delay(seconds))
            await ours.send_all(QUESTION)
            clients.append(ours)
        times = []
        for client in reversed(clients):
            await client.receive_some()
            times.append(trio.current_time())

    assert [3, 9] == [pytest.approx(time) for time in times]
    assert [1, 1] == [len(node.command_log) for node in nodes]


async def test_a_change_wakes_it(autojump_clock: MockClock) -> None:
    """A node that is killed hangs up now, not when something else is due; out of the block nobody is woken."""
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        node.faults.next(Opcode.SASL_LIST_MECHS, delay(60))
        await client.send_all(QUESTION)
        await trio.testing.wait_all_tasks_blocked()
        node.kill()
        heard = await client.receive_some()
    node.revive()
    node.kill()

    assert b"" == heard
    assert node.cluster.alarm is None


async def test_a_stream_that_comes_too_late(autojump_clock: MockClock) -> None:
    """A node that died after it had let the client in hangs up on it."""
    node = FakeNode()
    async with serving(node) as server:
        node.kill()
        client = await call(server)

        assert b"" == await client.receive_some()


async def test_nobody_is_accepted_outside_the_block() -> None:
    """Neither before it nor after it; the node is not asked, so no fault is spent."""
    server = NodeServer(FakeNode())
    before = server.accepts()
    async with serving(server.node) as server:
        inside = server.accepts()

    assert [False, True, False] == [before, inside, server.accepts()]


async def test_who_waits_hears_of_what_was_written() -> None:
    """Whoever waits for replies to be written hears of it then; taking them is not enough."""
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
