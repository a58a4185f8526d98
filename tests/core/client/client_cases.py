"""Helpers that several tests of the client machine share."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.core.runtime.kv import simulated
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.wire.frame import Frame, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer

ONE, TWO = neutral.StreamId(1), neutral.StreamId(2)


class Bare:
    """Client of a plain memcached server; ``requests`` has the frames that the client sent."""

    def __init__(self, *, open_stream: bool = True) -> None:
        self.client = simulated.machine("memcached://127.0.0.1:11211", authenticator=None)
        self.buffer = FrameBuffer(SERVER_ACCEPTS)
        self.actions: list[couchbase.Action] = []
        self.requests: list[Frame] = []
        self.now = 0.0
        self.feed(neutral.TimePassed())
        if open_stream:
            self.feed(neutral.StreamOpened(ONE, ""))

    def feed(self, event: Any, now: float | None = None) -> None:
        """Feed an event at ``now``, or at the time of the previous event, and record the resulting actions."""
        self.now = self.now if now is None else now
        for action in self.client.handle(event, self.now):
            self.actions.append(action)
            if isinstance(action, neutral.SendBytes):
                self.requests += self.buffer.receive(action.data)

    def submit(self, token: int, operation: document_operations.Operation) -> None:
        """Remove the bucket from the keyspace of an operation, and submit the operation."""
        keyspace = msgspec.structs.replace(operation.keyspace, bucket=None)
        self.feed(
            couchbase.OperationSubmitted(neutral.Token(token), msgspec.structs.replace(operation, keyspace=keyspace))
        )

    def answer(self, **parts: Any) -> None:
        """Respond to the newest request."""
        request = self.requests[-1]
        self.feed(neutral.BytesReceived(ONE, encode_response(request.opcode, opaque=request.opaque, **parts)))
