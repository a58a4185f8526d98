"""Races of clients on a real memcached with several threads, in which a client that loses still counts exactly once."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from threading import Barrier, Thread

import pytest

from tests.live.memcached import WAIT_SECONDS, Memcached
from tests.live.waiting import PATIENT
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, FailOperation, OperationSubmitted
from triclinium_core.kv.operation.document_operations import Increment, Keyspace
from triclinium_core.kv.operation.results import CounterResult
from triclinium_core.options import ClientOptions
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.testing.simulation import MIDPOINT

pytestmark = pytest.mark.live

RACERS = 4
KEYS = 30
"""Number of counters that all racers create at the same time."""
ROUNDS_MAX = 3_000
"""Maximum number of rounds. On two cores, some dozen rounds suffice; if no round has a loser, memcached has changed."""


def connected(memcached: Memcached) -> socket.socket:
    """Return a connection."""
    return socket.create_connection(("127.0.0.1", memcached.port), WAIT_SECONDS)


class Racer:
    """Client that encodes all requests before it sends any, so that all racers send at the same time."""

    def __init__(self, connection: socket.socket, memcached: Memcached) -> None:
        options = ClientOptions(connection_string=memcached.connection_string, timeouts=PATIENT)
        self.machine = ClientMachine(options, rng=MIDPOINT)
        self.socket = connection
        self.stream = neutral.StreamId(0)
        self.unsent = b""
        self.settled: list[Action] = []

    def feed(self, event: Event) -> None:
        """Feed an event, and the events that follow from it immediately."""
        events = deque([event])
        while events:
            for action in self.machine.handle(events.popleft(), time.monotonic()):
                match action:
                    case neutral.OpenStream(stream):
                        self.stream = stream
                        events.append(neutral.StreamOpened(stream, "a-nonce-that-nobody-asks-for"))
                    case neutral.SendBytes(_, data):
                        self.unsent += data
                    case CompleteOperation() | FailOperation():
                        self.settled.append(action)
                    case _:
                        pass

    def count(self, keys: Sequence[str], start: Barrier) -> None:
        """Increment each document, or create it if it is missing. Send the requests when all racers are ready."""
        self.settled.clear()
        for number, key in enumerate(keys):
            self.feed(OperationSubmitted(neutral.Token(number), Increment(Keyspace(None), key, 1, 1)))
        start.wait()
        while len(self.settled) < len(keys):
            self.socket.sendall(self.unsent)
            self.unsent = b""
            self.socket.settimeout(max(0.0005, min(self.machine.wakeup - time.monotonic(), WAIT_SECONDS)))
            try:
                self.feed(neutral.BytesReceived(self.stream, self.socket.recv(65_536)))
            except TimeoutError:
                self.feed(neutral.TimePassed())


def race(racers: Sequence[Racer], keys: Sequence[str]) -> None:
    """Let all racers increment the same documents concurrently."""
    start = Barrier(len(racers), timeout=WAIT_SECONDS)
    threads = [Thread(target=racer.count, args=(keys, start)) for racer in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_lost_race_is_retried(memcached_program: str) -> None:
    """An increment that memcached refuses because of a concurrent creation is retried and counts once (D25)."""
    with Memcached(memcached_program, threads=RACERS) as memcached, ExitStack() as sockets:
        racers = [Racer(sockets.enter_context(connected(memcached)), memcached) for _ in range(RACERS)]
        lost = 0
        for number in range(ROUNDS_MAX):
            race(racers, [f"{number}-{key}" for key in range(KEYS)])
            settled = [action for racer in racers for action in racer.settled]
            contents = [
                action.result.content
                for action in settled
                if isinstance(action, CompleteOperation) and isinstance(action.result, CounterResult)
            ]

            assert [] == [action for action in settled if isinstance(action, FailOperation)]
            assert sorted(list(range(1, RACERS + 1)) * KEYS) == sorted(contents)
            reasons = [racer.machine.statistics().retries_by_reason for racer in racers]
            lost = sum(each.get(RetryReason.KV_TEMPORARY_FAILURE, 0) for each in reasons)
            if lost:
                break

    assert lost
