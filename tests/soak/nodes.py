"""Three fake nodes on loopback in a separate process, with continuous faults.

The process prints its connection data as one line of JSON, and then answers each line of JSON with another:
``{"do": "tally"}`` returns the figures of the nodes so far, ``{"do": "calm"}`` stops the faults for the rest
of the run and returns the figures. The process ends when its input ends.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import trio

from triclinium.testing import open_tcp_cluster
from triclinium_core import errors, testing
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import delay

NODES = 3
BUCKET = "travel"
SCOPE = "inventory"
LASTING, PASSING = "people", "visitors"
"""Names of two collections: ``LASTING`` always exists, and ``PASSING`` is dropped and created repeatedly."""

FAULT_SECONDS = 0.1
"""Average seconds between two faults."""
COMMANDS_PER_FAULT = 20
"""Minimum number of commands between two faults, so that a slow machine performs operations besides faults, too."""
CHANGE_SECONDS = 0.8
"""Average seconds between two changes of the cluster."""
DRAIN_SECONDS = 0.2
"""Seconds between two readings of the nodes' logs, which are bounded."""

FAULTS: dict[str, Callable[[random.Random], testing.Fault]] = {
    "temporary failure": lambda rng: testing.temporary_failure(),
    "locked": lambda rng: testing.locked(),
    "busy": lambda rng: testing.status(Status.BUSY),
    "not my vbucket": lambda rng: testing.not_my_vbucket(with_config=rng.random() < 0.5),
    "delay": lambda rng: delay(rng.uniform(0.0, 0.4)),
    "hang up before applying": lambda rng: testing.hang_up(),
    "hang up after applying": lambda rng: testing.hang_up_after_applying(),
    "hang up in a reply": lambda rng: testing.hang_up_mid_reply(bytes_sent=rng.randrange(30)),
    "garbled reply": lambda rng: testing.garble(),
    "dropped reply": lambda rng: testing.drop_response(),
    "refused connection": lambda rng: testing.refuse_connection(),
}


class Disruptions:
    """Faults and changes of the nodes, and the counts of their commands."""

    def __init__(self, nodes: testing.FakeNodes, seed: int) -> None:
        self._nodes = nodes
        self._rng = random.Random(seed)
        self.events: Counter[str] = Counter()
        self.commands: Counter[str] = Counter()
        self.applied: Counter[str] = Counter()
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._changes: dict[str, Callable[[int], Awaitable[None]]] = {
            "moved vbuckets": self._move,
            "killed and revived": self._kill,
            "failed over and taken in": self._fail_over,
            "removed and added": self._remove,
            "stale map": self._stale,
            "collection dropped and created": self._recreate,
            "all connections lost": self._hang_up,
        }

    async def happen(self) -> None:
        """Cause faults and changes until ``calm`` is called."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._strike)
                nursery.start_soon(self._change)
        self._over.set()

    @property
    def _asked(self) -> int:
        """Number of commands on all nodes."""
        return self.commands.total() + sum(len(node.command_log) for node in self._nodes)

    def _in_turn(self, names: Iterable[str]) -> Iterator[str]:
        """Yield all names in random order, repeatedly, so that a short soak has all kinds of faults, too."""
        deck = list(names)
        while True:
            self._rng.shuffle(deck)
            yield from deck

    async def _strike(self) -> None:
        """Inject faults into commands and connections of random nodes."""
        for name in self._in_turn(FAULTS):
            due = self._asked + COMMANDS_PER_FAULT
            await trio.sleep(self._rng.expovariate(1 / FAULT_SECONDS))
            while self._asked < due:  # noqa: ASYNC110 - there is no event to wait for
                await trio.sleep(FAULT_SECONDS)
            fault = FAULTS[name](self._rng)
            faults = self._nodes[self._rng.randrange(NODES)].faults
            # Skip a node that has many pending faults, because faults of a node without traffic would accumulate.
            if faults.pending < 100:
                faults.next(None, fault)
                self.events[name] += 1

    async def _change(self) -> None:
        """Change the cluster at intervals. The next change begins after the last one is complete."""
        for name in self._in_turn(self._changes):
            await trio.sleep(self._rng.expovariate(1 / CHANGE_SECONDS))
            self.events[name] += 1
            await self._changes[name](self._rng.randrange(NODES))

    async def count(self) -> None:
        """Count the nodes' commands before their logs drop them."""
        while True:
            await trio.sleep(DRAIN_SECONDS)
            self.drain()

    def drain(self) -> None:
        """Count the nodes' commands since the last call."""
        for node in self._nodes:
            for command in node.command_log:
                name = Opcode(command.opcode).name
                self.commands[name] += 1
                self.applied[name] += command.applied
            node.command_log.clear()

    def tally(self) -> Mapping[str, object]:
        """Return the counts of events and commands so far, and the resident memory of this process."""
        self.drain()
        return {
            "events": self.events,
            "commands": self.commands,
            "applied": self.applied,
            "resident": resident_bytes(),
        }

    async def calm(self) -> None:
        """Restore all nodes, and close all connections with their pending responses."""
        self._scope.cancel()
        await self._over.wait()
        for index, node in enumerate(self._nodes):
            node.faults.clear()
            self._nodes.release_config(index)
            if index not in self._nodes.map.members:
                self._nodes.add_node(index)
            self._nodes.kill(index)
            self._nodes.revive(index)
        with suppress(errors.InvalidArgumentException):
            self._nodes.collections.create(SCOPE, PASSING)
        self._nodes.rebalance()

    async def _pause(self) -> None:
        await trio.sleep(self._rng.uniform(0.05, 1.0))

    async def _move(self, index: int) -> None:
        count = len(self._nodes.map.owners)
        self._nodes.move(self._rng.sample(range(count), count // 8), to=index)

    async def _kill(self, index: int) -> None:
        self._nodes.kill(index)
        await self._pause()
        self._nodes.revive(index)

    async def _fail_over(self, index: int) -> None:
        self._nodes.kill(index)
        await self._pause()
        self._nodes.fail_over(index)
        await self._pause()
        self._nodes.rebalance()
        await self._pause()
        self._nodes.revive(index)
        self._nodes.add_node(index)
        self._nodes.rebalance()

    async def _remove(self, index: int) -> None:
        self._nodes.remove_node(index)
        await self._pause()
        self._nodes.add_node(index)
        self._nodes.rebalance()

    async def _stale(self, index: int) -> None:
        self._nodes.hold_config(index)
        await self._move((index + 1) % NODES)
        await self._pause()
        self._nodes.release_config(index)

    async def _recreate(self, index: int) -> None:
        self._nodes.collections.drop(SCOPE, PASSING)
        if self._rng.random() < 0.5:
            await self._pause()
        self._nodes.collections.create(SCOPE, PASSING)

    async def _hang_up(self, index: int) -> None:
        self._nodes.kill(index)
        self._nodes.revive(index)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def serve(seed: int) -> None:
    """Serve until the input ends."""
    collections = {"_default": {"_default": 0}, SCOPE: {LASTING: 8, PASSING: 9}}
    options = testing.FakeNodeOptions(buckets=(BUCKET,), collections=collections, replicas=1)
    nodes = testing.FakeNodes(options, NODES)
    troubles = Disruptions(nodes, seed)
    async with open_tcp_cluster(nodes) as fake, trio.open_nursery() as nursery:
        credentials = {"username": options.username, "password": options.password}
        _say({"connection_string": fake.connection_string, **credentials})
        nursery.start_soon(troubles.count)
        nursery.start_soon(troubles.happen)
        received = b""
        async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as questions:
            while piece := await questions.receive_some():
                *lines, received = (received + piece).split(b"\n")
                for line in lines:
                    if json.loads(line)["do"] == "calm":
                        await troubles.calm()
                    _say(troubles.tally())
        nursery.cancel_scope.cancel()


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]))
