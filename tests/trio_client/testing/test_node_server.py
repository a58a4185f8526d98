"""Server of fake nodes: its clock, and the isolation of its clients."""

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
"""Request that needs no authentication."""


async def call(server: NodeServer, node: FakeNode | None = None) -> trio.abc.Stream:
    """Return the client's end of a new stream to a node, by default the only one."""
    ours, theirs = memory_stream_pair()
    server.start_soon(server.serve_stream, theirs, node)
    await trio.testing.wait_all_tasks_blocked()
    return ours


async def test_the_clock_resumes(autojump_clock: MockClock) -> None:
    """The clock of a node that is served again resumes where it stopped, and never goes back."""
    node = FakeNode()
    for _ in range(2):
        async with serving(node) as server:
            client = await call(server)
            await trio.sleep(2.5)
            await client.send_all(QUESTION)
            await client.receive_some()
        await trio.sleep(1000)

    assert [2.5, 5.0] == [pytest.approx(command.now) for command in node.command_log]


async def test_time_read_between_events_counts(autojump_clock: MockClock) -> None:
    """If ``seconds`` is read after the last event, the clock resumes from there, and a command lasts its time."""
    nodes = FakeNodes(nodes=1)
    async with serving(nodes):
        await trio.sleep(3.0)
        assert nodes.seconds == pytest.approx(3.0)
    async with serving(nodes):
        nodes.kill(0, for_seconds=0.5)
        await trio.sleep(0.6)

        assert nodes[0].is_alive
        assert nodes.seconds == pytest.approx(3.6)


@pytest.mark.parametrize("began", [0.1, 1 / 3, 1e9 / 7])
async def test_rounding_does_not_stop_the_clock(autojump_clock: MockClock, began: float) -> None:
    """Delayed responses arrive despite rounded times, at whatever time the node is first served."""
    await trio.sleep(began)
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        for number in range(1, 50):
            node.faults.next(Opcode.SASL_LIST_MECHS, delay(number / 7))
            await client.send_all(QUESTION)
            assert 24 <= len(await client.receive_some())


async def test_the_clock_follows_the_earliest_response(autojump_clock: MockClock) -> None:
    """A response is sent when it is due, even if the server already waits for a later one, or a client has left."""
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


async def test_requests_of_a_closed_client_are_executed() -> None:
    """Requests that a client sent before it closed are executed, although nothing reads the responses."""
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        await client.send_all(QUESTION)
        await client.aclose()
        await trio.testing.wait_all_tasks_blocked()

    assert 1 == len(node.command_log)


async def test_a_client_that_cannot_be_written_to(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing to a client fails, the server executes its requests until reading fails, too, and does not crash."""
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


async def test_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a client reads no responses, its further requests are not read; once it reads, all are executed."""
    monkeypatch.setattr(_node_server, "UNSENT_SIZE_MAX", 1000)
    node, reads, wakes = FakeNode(), list[None](), trio.Event()

    async def receive() -> bytes:
        await trio.lowlevel.checkpoint()
        reads.append(None)
        return 100 * QUESTION if len(reads) <= 2 else b""

    stream = HalfDeafStream(send_all=lambda _: wakes.wait(), receive_some=receive)
    async with serving(node) as server, trio.open_nursery() as nursery:
        nursery.start_soon(server.serve_stream, stream)
        await trio.testing.wait_all_tasks_blocked()
        reads_then, commands_then = len(reads), len(node.command_log)
        wakes.set()

    assert 1 == reads_then
    assert 0 < commands_then <= 2 * 1000 / len(QUESTION)
    assert 200 == len(node.command_log)


async def test_a_stream_without_send_eof_is_closed(autojump_clock: MockClock) -> None:
    """A stream without half-close is closed completely if the node hangs up."""
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
    """Each node is called when its own response is due, and responses of other nodes do not wait for that."""
    nodes = FakeNodes(nodes=2)
    async with serving(nodes) as server:
        clients = []
        for node, seconds in zip(nodes, (9, 3), strict=True):
            clients.append(await call(server, node))
            node.faults.next(Opcode.SASL_LIST_MECHS, delay(seconds))
            await clients[-1].send_all(QUESTION)
        times = []
        for client in reversed(clients):
            await client.receive_some()
            times.append(trio.current_time())

    assert [3, 9] == [pytest.approx(time) for time in times]
    assert [1, 1] == [len(node.command_log) for node in nodes]


async def test_a_change_wakes_the_server(autojump_clock: MockClock) -> None:
    """A killed node closes its streams immediately, not at the next due time; after the block, no alarm is left."""
    node = FakeNode()
    async with serving(node) as server:
        client = await call(server)
        node.faults.next(Opcode.SASL_LIST_MECHS, delay(60))
        await client.send_all(QUESTION)
        await trio.testing.wait_all_tasks_blocked()
        node.kill()
        received = await client.receive_some()
    node.revive()
    node.kill()

    assert b"" == received
    assert node.cluster.alarm is None


async def test_a_stream_to_a_dead_node(autojump_clock: MockClock) -> None:
    """A node that dies after accepting a stream closes it."""
    node = FakeNode()
    async with serving(node) as server:
        node.kill()
        client = await call(server)

        assert b"" == await client.receive_some()


async def test_streams_are_accepted_in_the_block_only() -> None:
    """Streams are refused before and after the block."""
    server = NodeServer(FakeNode())
    before = server.accepts()
    async with serving(server.node) as server:
        inside = server.accepts()

    assert [False, True, False] == [before, inside, server.accepts()]


async def test_wait_written_returns_after_the_write() -> None:
    """``wait_written`` returns after the responses were written, not as soon as the server takes them from the node."""
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
