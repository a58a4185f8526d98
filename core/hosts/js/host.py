"""Python half of the driver for Node: it feeds a machine, and turns the machine's actions into calls of JavaScript."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module, invalidate_caches
from types import ModuleType
from typing import Any

from js import Object  # type: ignore[import-not-found]  # only Pyodide has these two modules
from pyodide.ffi import to_js  # type: ignore[import-not-found]

from hosts.js.values import converted, described, fields_of, made, operation_of
from triclinium_core import ClientMachine, ClientOptions, errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import couchbase, neutral
from triclinium_core.error_context import ErrorContext, story
from triclinium_core.kv.operation import results
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.transcoding.flags import common_format

EVENTS: Mapping[str, Callable[..., Any]] = {
    "Abandoned": lambda token, why: couchbase.OperationAbandoned(token, reason=couchbase.AbandonReason(why)),
    "LookedUp": lambda name, found, text: couchbase.ServiceLookedUp(name, tuple(map(tuple, found.to_py())), text),
    "Lost": lambda stream, cause, *others: neutral.StreamLost(stream, neutral.LossCause[cause], *others),
    "Opened": lambda stream, *ends: neutral.StreamOpened(stream, secrets.token_urlsafe(24), *ends),
    "Received": lambda stream, data: neutral.BytesReceived(stream, data.to_bytes()),
    "TimePassed": lambda unsent, unread: neutral.TimePassed(dict(unsent.to_py()), frozenset(unread.to_py())),
    "Wanted": couchbase.RowsWanted,
}
QUESTIONS: Mapping[type, Callable[[Any], Any]] = {
    neutral.ConsultStrategy: lambda order: order.strategy.retry_after(order.request, order.reason),
    neutral.AcquirePermit: lambda order: order.permit.acquire(),
    neutral.RecordSuccess: lambda order: order.permit.record(),
}
LEVELS = {"ReportRetry": "debug", "PublishTopology": "debug", "ReportRefusal": "info", "ReportTelemetry": "info"}


class LazyCodec(ModuleType):
    """Stand-in for cramjam until the first compressed response. Meanwhile, values are sent uncompressed."""

    unpack: Callable[[], None]
    """Function that unpacks the wheel of cramjam; JavaScript sets it."""
    compress_raw = staticmethod(bytes)

    def __getattr__(self, name: str) -> Any:
        if name == "snappy":
            return self
        del sys.modules["cramjam"]
        self.unpack()
        invalidate_caches()
        module = import_module("cramjam")
        return getattr(module.snappy, name, None) or getattr(module, name)


codec = sys.modules["cramjam"] = LazyCodec("cramjam")


class Host:
    """Machine of one cluster, and the queue of its events. ``driver`` is the ``Driver`` of ``driver.mjs``."""

    def __init__(self, machine: Any, driver: Any) -> None:
        self._machine, self._driver = machine, driver
        self._events: deque[Any] = deque()
        self._alarm = math.inf
        self._tasks: set[asyncio.Task[None]] = set()
        perform, complete, log = driver.perform, driver.complete, driver.log
        self._execute: dict[type, Callable[[Any], object]] = {
            neutral.SendBytes: lambda order: perform("send", order.stream, to_js(order.data), order.unless_readable),
            neutral.OpenStream: lambda order: driver.open(order.stream, order.host, order.port, order.tls),
            neutral.CloseStream: lambda order: perform("end", order.stream, "CLOSED_BY_US"),
            neutral.PauseReading: lambda order: perform("flow", order.stream, False),
            neutral.ResumeReading: lambda order: perform("flow", order.stream, True),
            couchbase.LookUpService: lambda order: driver.lookUp(order.service),
            couchbase.RowsReceived: lambda order: complete(order.token, "rows", to_js([*order.rows])),
            couchbase.CompleteOperation: self._settle,
            couchbase.CompleteRequest: self._settle,
            couchbase.FailOperation: lambda order: self.fail(order.token, order.error),
            neutral.ReportConnection: lambda order: log(order.level.value, f"{order.node}: {order.text}"),
            **dict.fromkeys(QUESTIONS, lambda order: self._tasks.add(asyncio.ensure_future(self._ask(order)))),
        }

    def happen(self, kind: str, *given: Any) -> int:
        """Feed an event of ``EVENTS``, and return the work of the machine."""
        self.feed(EVENTS[kind](*given))
        return int(self._machine.work)

    def submit(self, token: neutral.Token, name: str, place: Any, given: Any, strategy: str | None) -> None:
        """Submit a query, or an operation on the document in ``place``. ``name`` is the name of its class."""
        try:
            chosen = converted("retry_strategy", strategy) if strategy is not None else None
            fields = given.to_py()
            if name == "QueryRequest":
                request = made(QueryRequest, fields)
                self.feed(couchbase.RequestSubmitted(token, request, chosen))
            else:
                self.feed(couchbase.OperationSubmitted(token, operation_of(name, place, fields), chosen))
        except (errors.CouchbaseException, ArgumentError) as mistake:
            self.fail(token, mistake)

    def expire(self, token: neutral.Token, seconds: float) -> None:
        """Abandon an operation or a query whose own timeout is over, and fail it."""
        context = self._machine.error_context(token, time.monotonic()) or ErrorContext()
        kind: type[errors.TimeoutException] = errors.UnambiguousTimeoutException
        verdict = "nothing was applied"
        if self._machine.is_ambiguous(token):
            kind, verdict = errors.AmbiguousTimeoutException, "it may have been applied: read before writing again"
        self.happen("Abandoned", token, "timeout")
        message = f"{context.operation}: not done within {seconds:g} s; {verdict}{story(context)}"
        self.fail(token, kind(message, replace(context, timeout=seconds)))

    def feed(self, event: couchbase.Event) -> None:
        """Feed an event, and execute the actions. Queue events that occur meanwhile."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            self._handle(self._events[0])
            self._events.popleft()

    def _handle(self, event: Any) -> None:
        now = time.monotonic()
        if type(event) is neutral.TimePassed:
            self._alarm = math.inf
        try:
            orders = self._machine.handle(event, now)
        except ArgumentError as mistake:
            if not isinstance(event, couchbase.OperationSubmitted | couchbase.RequestSubmitted):
                raise
            self.fail(event.token, mistake)
            return
        for order in orders:
            self._execute.get(type(order), self._report)(order)
        if self._machine.wakeup < self._alarm:
            self._alarm = self._machine.wakeup
            self._driver.setAlarm(self._alarm - now)

    def _settle(self, order: Any) -> None:
        result, complete = order.result, self._driver.complete
        if type(result) is results.GetResult:
            complete(order.token, "GetResult", result.cas, common_format(result.flags), to_js(result.data))
        else:
            fields = to_js(fields_of(result), dict_converter=Object.fromEntries)
            complete(order.token, type(result).__name__, fields)

    def _report(self, order: Any) -> None:
        level = LEVELS.get(type(order).__name__, "error")
        self._driver.log(level, getattr(order, "text", None) or repr(order))

    async def _ask(self, order: Any) -> None:
        answer, raised = None, None
        try:
            answer = await QUESTIONS[type(order)](order)
        except Exception as error:
            raised = error
        if not isinstance(order, neutral.RecordSuccess):
            self.feed(neutral.StrategyDecided(order.token, answer, raised))
        elif raised is not None:
            self._report(neutral.ReportStrategyError(order.token, raised))

    def fail(self, token: neutral.Token, error: Exception) -> None:
        """Fail an operation or a query."""
        self._driver.fail(token, to_js(described(error)))

    def close(self) -> None:
        """Log the last reports, and drop everything."""
        for report in self._machine.last_reports(time.monotonic()):
            self._report(report)
        for task in self._tasks:
            task.cancel()
        self.__dict__.clear()


def open_host(driver: Any, given: Any) -> object:
    """Return the host of a new client, or the description of an error."""
    try:
        return Host(ClientMachine(made(ClientOptions, given.to_py()), rng=random.Random()), driver)
    except errors.CouchbaseException as error:
        return to_js(described(error))
