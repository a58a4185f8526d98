"""Driver of a client machine in Node. ``Driver`` of ``driver.mjs`` performs its I/O in JavaScript."""

from __future__ import annotations

import logging
import random
import secrets
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module, invalidate_caches
from types import ModuleType
from typing import Any

from js import Object  # type: ignore[import-not-found]  # only Pyodide has these two modules
from pyodide.ffi import JsException, to_js  # type: ignore[import-not-found]

from hosts.js.values import converted, described, fields_of, made, request_of
from triclinium_core import ClientMachine, ClientOptions, errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.transcoding.flags import common_format
from triclinium_core.work import WORK_OF_A_PASS_MAX

FULL_READ_SIZE = 32 * 1024
"""Minimum number of bytes that Node reads from a stream in one pass of its event loop if that many have arrived."""


class LazyCodec(ModuleType):
    """Stand-in for cramjam until the first compressed response. Meanwhile, values are sent uncompressed."""

    unpack: Callable[[], None]
    """Function that unpacks the wheel of cramjam; JavaScript sets it."""
    compress_raw = staticmethod(bytes)

    def __getattr__(self, name: str) -> Any:
        if name == "snappy":
            return self
        if sys.modules["cramjam"] is self:
            del sys.modules["cramjam"]
            self.unpack()
            invalidate_caches()
        module = import_module("cramjam")
        return getattr(module.snappy, name, None) or getattr(module, name)


codec = sys.modules["cramjam"] = LazyCodec("cramjam")


class Stream:
    """One stream. ``Connection`` of ``connection.mjs`` performs its I/O."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.outbox = neutral.Outbox()
        self.is_writable = False
        """Whether JavaScript can write more now."""
        self._connect = connect

    def start(self) -> None:
        """Begin to connect."""
        try:
            self._connection = self._connect()
        except JsException as error:
            raise ValueError(error.message) from error  # Node.js refuses an invalid host before the lookup.
        self._write = self._connection.write

    def flush(self) -> None:
        """Write the outbox. If the stream must be checked first, JavaScript checks it and then calls ``Host.write``."""
        if self.outbox.is_checked:
            self._connection.check()
            self.is_writable = False
        while self.outbox and self.is_writable:
            self.is_writable = self._write(to_js(self.outbox.take()))

    def set_paused(self, is_paused: bool) -> None:
        """Stop reading, or resume it."""
        self._connection.setPaused(is_paused)

    def abort(self) -> None:
        """Close the connection."""
        self._connection.abort()


class Host(couchbase.ClientDriver[neutral.Token, Stream]):
    """Driver of one cluster. JavaScript calls its methods, and gives a token to each of its callers."""

    def __init__(self, machine: Any, js: Any) -> None:
        super().__init__(
            machine,
            now=time.monotonic,
            open_stream=lambda order: Stream(partial(js.connect, order.stream, order.host, order.port, order.tls)),
            make_nonce=partial(secrets.token_urlsafe, 24),
            log=self,
        )
        self.machine: Any = machine
        self._js, self._complete = js, js.complete
        self._arrived = Counter[neutral.StreamId]()
        self._steps: Iterator[None] = iter(())
        self._handlers[couchbase.LookUpService] = lambda action: js.lookUp(action.service)

    # -- Callers.

    def submit(self, token: neutral.Token, name: str, place: Any, given: Any, strategy: str | None) -> None:
        """Submit a query, or an operation on the document in ``place``. ``name`` is the name of its class."""
        try:
            chosen = converted("retry_strategy", strategy) if strategy is not None else None
            event = self.submission(token, request_of(name, place, given.to_py()), chosen)
        except (errors.CouchbaseException, ArgumentError) as mistake:
            self.wake(token, mistake)
        else:
            self.waiters[token] = token
            self.feed(event)

    def want(self, token: neutral.Token) -> None:
        """Request more rows of a query."""
        self.wait({token: token}, couchbase.RowsWanted(token))

    def abandon(self, token: neutral.Token, reason: str) -> None:
        """Abandon an operation or a query, unless it has ended."""
        self.leave(token, event=couchbase.OperationAbandoned(token, reason=couchbase.AbandonReason(reason)))

    def wake(self, waiter: neutral.Token, outcome: object) -> None:
        """Settle the promise of a caller. JavaScript itself rejects the promises that are left when the driver ends."""
        if type(outcome) is GetResult:
            self._complete(waiter, "GetResult", outcome.cas, common_format(outcome.flags), to_js(outcome.data))
        elif isinstance(outcome, couchbase.RowsReceived):
            self._complete(waiter, "rows", to_js([*outcome.rows]))
        elif not isinstance(outcome, Exception):
            fields = to_js(fields_of(outcome), dict_converter=Object.fromEntries)
            self._complete(waiter, type(outcome).__name__, fields)
        elif not isinstance(outcome, neutral.ClosedError):
            self._complete(waiter, "error", to_js(described(outcome)))

    # -- Streams, DNS, time and the log.

    def connected(self, number: neutral.StreamId, *names: object) -> None:
        """Report that a stream is open. ``names`` are the addresses and ports of both ends."""
        self.opened(number, names[:2], names[2:])

    def read(self, number: neutral.StreamId, data: Any, is_first: bool) -> bool:
        """Feed the bytes of one read. ``is_first`` marks the first read of all streams in this pass of the event loop.

        Return whether the stream must not be read again before the next pass.
        """
        if is_first:
            self._work_max = self.machine.work + WORK_OF_A_PASS_MAX
            self._arrived.clear()
        self._arrived[number] += len(data)
        self.received(number, data.to_bytes(), may_have_more=self._arrived[number] >= FULL_READ_SIZE)
        is_held: bool = self.machine.work >= self._work_max
        if is_held:
            self.unread.add(number)
        return is_held

    def write(self, number: neutral.StreamId) -> None:
        """Write the outbox of a stream whose connection accepts bytes and has passed the check, if there was one."""
        stream = self.streams.get(number)
        if stream is not None:
            stream.outbox.is_checked, stream.is_writable = False, True
            stream.flush()

    def lost(self, number: neutral.StreamId, cause: str, text: str = "") -> None:
        """Report the end of a connection."""
        self.lose(number, neutral.LossCause[cause], text)

    def looked_up(self, service: str, targets: Any, text: str) -> None:
        """Feed the result of a lookup in DNS: targets, or the text of an error."""
        self.feed(couchbase.ServiceLookedUp(service, tuple(map(tuple, targets.to_py())), text))

    def set_alarm(self, time: float) -> None:
        """Move the alarm to ``time``."""
        self._js.setAlarm(time - self.now())

    def step(self, is_first: bool) -> bool:
        """Take a step of ``pass_time``, the first when the alarm rings. Return whether another one must follow."""
        steps = self.pass_time() if is_first else self._steps
        for _ in steps:
            self._steps = steps
            return True
        return False

    def log(self, level: int, message: object, /, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Pass a report to the user's function."""
        fault = traceback.format_exception(exc_info) if exc_info is not None else ()
        self._js.log(logging.getLevelName(level).lower(), "\n".join([str(message) % arguments, *fault]))


def open_host(js: Any, given: Any) -> object:
    """Return the host of a new client, or the description of an error."""
    try:
        return Host(ClientMachine(made(ClientOptions, given.to_py()), rng=random.Random()), js)
    except errors.CouchbaseException as error:
        return to_js(described(error))
