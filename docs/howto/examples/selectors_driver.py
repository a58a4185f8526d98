"""The core with sockets and ``selectors``: key-value operations without TLS. The lookup of a name has no time limit."""

from __future__ import annotations

import logging
import random
import secrets
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from triclinium_core import ClientMachine, ClientOptions, JsonTranscoder, PasswordAuthenticator
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.work import PIECE_SIZE_BYTES_MAX

logger = logging.getLogger("selectors_driver")
make_nonce = partial(secrets.token_urlsafe, 24)


class SelectorsClient(couchbase.ClientDriver[neutral.Token, "Stream"]):
    """Driver of the client machine, which works only during calls. After ``close``, they raise ClosedError."""

    def __init__(self, machine: couchbase.DrivenClient, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(machine, now=clock, open_stream=partial(Stream, self), make_nonce=make_nonce, log=logger)
        self.outcomes: dict[neutral.Token, object] = {}
        """Results and exceptions of the operations that have ended."""
        self.feed(neutral.TimePassed())

    def perform(self, *operations: Operation) -> Sequence[object]:
        """Perform operations at the same time, and return the result or the exception of each."""
        tokens = self.submit(*operations)
        try:
            while not self.waiters.keys().isdisjoint(tokens):
                self.turn()
        finally:
            self.leave(*tokens)
        return [self.outcomes.pop(token) for token in tokens]

    def submit(self, *operations: Operation) -> Sequence[neutral.Token]:
        """Send operations and return their tokens. Call ``turn`` until ``outcomes`` has them, or ``leave`` with one."""
        # Streams may have ended since the last call, which shows only when they are read.
        self.turn(0.0)
        submissions = [couchbase.OperationSubmitted(next(self.tokens), operation) for operation in operations]
        tokens = [submission.token for submission in submissions]
        self.wait(dict(zip(tokens, tokens, strict=True)), couchbase.OperationsSubmitted(submissions))
        return tokens

    def turn(self, seconds: float = 60.0) -> None:
        """Wait at most ``seconds`` for a stream or the alarm; read and write, and let time pass."""
        self._serve(max(0.0, min(seconds, self.alarm_time - self.now())))
        if self.alarm_time <= self.now():
            for _ in self.pass_time():
                self._serve(0.0)

    def _serve(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            for stream in self.streams.values():
                stream.watch(selector)
            ready = selector.select(seconds)
        try:
            for key, events in ready:
                if events & selectors.EVENT_READ:
                    key.data.read()
                if events & selectors.EVENT_WRITE:
                    key.data.flush()
        except BaseException:
            # Control-C between a system call and the use of its result may lose bytes of a stream or send them twice.
            self.close()
            raise

    def wake(self, waiter: neutral.Token, outcome: object) -> None:
        """Keep the outcome for the caller."""
        self.outcomes[waiter] = outcome


class Stream:
    """One connection, from the order to open it until its loss."""

    def __init__(self, client: SelectorsClient, order: neutral.OpenStream) -> None:
        self.outbox = neutral.Outbox()
        self._client, self._order = client, order
        self._is_paused = False
        self._send_error: OSError | None = None

    def start(self) -> None:
        """Connect. A lookup stops the program until the system has answered; a numeric address needs none."""
        if self._order.tls:
            raise OSError("selectors_driver does not support TLS")
        # Connecting blocks the whole program, so each address of the host gets little time.
        self._socket = socket.create_connection((self._order.host, self._order.port), timeout=1.0)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client.opened(self._order.stream, self._socket.getsockname(), self._socket.getpeername())

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Let the selector report when there is something to read, or room for the rest of the outbox."""
        events = selectors.EVENT_READ * (not self._is_paused) | selectors.EVENT_WRITE * bool(self.outbox)
        if events:
            selector.register(self._socket, events, self)

    def read(self) -> None:
        """Feed what has arrived, or the end of the stream."""
        try:
            data = self._socket.recv(PIECE_SIZE_BYTES_MAX)
            if not data and self._send_error is not None:
                raise self._send_error
        except BlockingIOError:
            return
        except OSError as error:
            self._client.lose(self._order.stream, *neutral.loss_of(error))
        else:
            self._client.received(self._order.stream, data, may_have_more=len(data) == PIECE_SIZE_BYTES_MAX)

    def flush(self) -> None:
        """Write what the system accepts. Before a checked request, read: if there is anything, the stream ends."""
        if self.outbox.is_checked:
            self.read()
        try:
            while self.outbox:
                self.outbox.advance(self._socket.send(self.outbox.peek()))
        except BlockingIOError:
            pass
        except OSError as error:
            # Data that arrived before is still read. A socket raises its error only once, so keep it.
            self.outbox.clear()
            self._send_error = error

    def set_paused(self, is_paused: bool) -> None:
        """Stop reading, or resume it."""
        self._is_paused = is_paused

    def abort(self) -> None:
        """Close the connection."""
        self._socket.close()


def main(address: str) -> None:
    """Write two documents at the same time, then read one of them and a missing one."""
    options = ClientOptions(connection_string=address, authenticator=PasswordAuthenticator("Administrator", "password"))
    people, document = Keyspace("default"), JsonTranscoder().encode({"born": 1815})
    with SelectorsClient(ClientMachine(options, rng=random.Random())) as client:
        client.perform(*(Upsert(people, name, document.data, document.flags) for name in ("ada", "charles")))
        for outcome in client.perform(Get(people, "ada"), Get(people, "bob")):
            print(outcome.content if isinstance(outcome, GetResult) else outcome)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python selectors_driver.py CONNECTION_STRING, such as couchbase://127.0.0.1:11210")
    main(sys.argv[1])
