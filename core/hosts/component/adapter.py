"""Exports of the component: answers to questions, and retry machines by their ids.

componentize-py runs this module at build time and keeps the memory of the interpreter, but no files: every module must
be loaded by then. An exception other than ``Err`` would trap and end the instance.
"""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

from componentize_py_types import Err
from wit_world.exports import decisions, machines

from triclinium_core.explain.couchbase.reaction import LONGEST_DELAYS
from triclinium_core.retry import cassandra, couchbase, smithy
from triclinium_core.retry.couchbase import RetryMachine, RetryReason, Service
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.shown import json_text, printable
from triclinium_core.tools.vectors.couchbase import STRATEGIES
from triclinium_core.tools.vectors.fields import HTTP_STATUS_MAX, HTTP_STATUS_MIN, MalformedQuestion
from triclinium_core.tools.vectors.questions import answer, clauses, decode

for _package in (cassandra, couchbase, smithy):
    for _member in _package.__all__:
        getattr(_package, _member)  # Load the module of each lazy name now: the component reads no files later.
_CODECS = printable("\x7f"), json_text("\x7f")  # Each of these two calls loads the codec for unprintable characters.

QUESTION_LENGTH_MAX, BODY_LENGTH_MAX, NAME_LENGTH_MAX = 65_536, 1_048_576, 256
MACHINES_MAX, ERROR_MAPS_MAX = 10_000, 256


class Decisions:
    """Exported interface ``decisions``."""

    def decide(self, question: str) -> decisions.Decision:
        """Return the answer to a question, and the clauses for the answer."""
        _bounded(question, "the question", QUESTION_LENGTH_MAX)
        try:
            fields = decode(question)
            if isinstance(fields, dict) and isinstance(fields.get("body"), str):
                _bounded(fields["body"], "body", QUESTION_LENGTH_MAX)
            return decisions.Decision(json_text(answer(fields)), list(clauses(fields)))
        except MalformedQuestion as error:
            raise Err(printable(str(error))) from error


class Machines:
    """Exported interface ``machines``. componentize-py creates an object for each call, so the class has the state."""

    _open: ClassVar[dict[int, tuple[RetryMachine, float]]] = {}  # Machine, and the time of its opening or newest event.
    _ids = itertools.count(1)
    _error_maps = couchbase.ErrorMapStore()
    _mapped_nodes: ClassVar[list[str]] = []

    def open(self, request: machines.Request, now: float) -> int:
        """Open a machine, and return its id."""
        _check_time(now, "now", -math.inf)
        _check_time(now + request.timeout, "now + timeout", now)
        if len(self._open) >= MACHINES_MAX:
            raise Err(f"{MACHINES_MAX} machines are open, the maximum; close one first")
        annotation = couchbase.RequestAnnotation(
            operation=_bounded(request.operation, "operation"),
            idempotent=request.idempotent,
            strategy=STRATEGIES[request.strategy.name.lower()],
            submitted_at=now,
            deadline=now + request.timeout,
            service=Service[request.service.name],
        )
        number = next(self._ids)
        # The strategies of the interface draw no random numbers.
        self._open[number] = RetryMachine(annotation, rng=LONGEST_DELAYS, error_maps=self._error_maps), now
        return number

    def handle(self, machine: int, event: machines.Event, now: float) -> list[machines.Action]:
        """Pass an event to a machine, and return its actions."""
        found, before = self._find(machine)
        _check_time(now, "now", before)
        try:
            actions = found.handle(_event(found.annotation, event), now)
        except InvalidEvent as error:
            raise Err(str(error)) from error
        self._open[machine] = found, now
        return [_action(action) for action in actions]

    def wakeup(self, machine: int) -> float | None:
        """Return the time at which ``time-passed`` is due; None after the end of the request."""
        wakeup = self._find(machine)[0].wakeup
        return wakeup if math.isfinite(wakeup) else None

    def close(self, machine: int) -> None:
        """Close a machine."""
        self._find(machine)
        del self._open[machine]

    def load_error_map(self, node: str, document: str) -> None:
        """Store the error map of a node. Beyond ``ERROR_MAPS_MAX`` nodes, drop the oldest map."""
        _bounded(document, "document", BODY_LENGTH_MAX)
        try:
            error_map = couchbase.parse_error_map(document)
        except couchbase.MalformedErrorMap as error:
            raise Err(f"document: {printable(str(error))}") from error
        self._error_maps.load(_bounded(node, "node"), self._error_maps.shared(error_map))
        self._mapped_nodes[:] = [*(each for each in self._mapped_nodes if each != node), node]  # The newest is last.
        if len(self._mapped_nodes) > ERROR_MAPS_MAX:
            self._error_maps.forget(self._mapped_nodes.pop(0))

    def _find(self, machine: int) -> tuple[RetryMachine, float]:
        if machine not in self._open:
            raise Err(f"machine {machine} is not open; pass the id of an open machine")
        return self._open[machine]


def _event(annotation: couchbase.RequestAnnotation, event: machines.Event) -> couchbase.RequestEvent:
    service, is_kv = annotation.service, annotation.service is Service.KV
    match event:
        case machines.Event_Dispatched(node):
            return couchbase.Dispatched(node and _bounded(node, "node"))
        case machines.Event_DispatchFailed(machines.DispatchFailure(given, node)):
            reason, possible = RetryReason[given.name], couchbase.unsent_reasons(service, couchbase.DispatchFailed)
            if reason not in possible:
                raise Err(f"reason is {reason}, but a dispatch to {service} fails for one of {', '.join(possible)}")
            error = couchbase.error_of_lookup(reason)
            return couchbase.DispatchFailed(reason, error=error, node=node and _bounded(node, "node"))
        case machines.Event_SocketClosed(handed_over):
            return couchbase.SocketClosed(couchbase.HandedOver[handed_over.name])
        case machines.Event_KvResponseReceived(machines.KvResponse(status, node)) if is_kv:
            return couchbase.ResponseReceived(couchbase.KvResponse(status, node and _bounded(node, "node")))
        case machines.Event_ServiceResponseReceived(machines.ServiceResponse(status, body, is_partial)) if not is_kv:
            if not HTTP_STATUS_MIN <= status <= HTTP_STATUS_MAX:
                raise Err(f"http-status is {status}, expected {HTTP_STATUS_MIN} to {HTTP_STATUS_MAX}")
            _bounded(body, "body", BODY_LENGTH_MAX)
            answered = couchbase.ServiceResponse(service, status, body, annotation.operation, is_partial)
            return couchbase.ResponseReceived(answered)
        case machines.Event_TimePassed():
            return couchbase.WakeupReached()
        case machines.Event_Abandoned():
            return couchbase.Abandoned()
    raise Err(
        f"the event does not apply to {service}; pass kv-response-received for kv, and service-response-received for "
        "other services"
    )


def _action(action: couchbase.RequestAction) -> machines.Action:
    match action:
        case couchbase.RetryAfter(seconds, dispatches):
            return machines.Action_RetryAfter(machines.Delay(seconds, dispatches))
        case couchbase.Fail(error):
            message, context = printable(str(error)), error.context.to_json()
            return machines.Action_Fail(machines.Failure(error.rfc_class.__name__, message, context))
        case couchbase.CloseConnection(why):
            return machines.Action_CloseConnection(printable(why))
        case couchbase.ReportRetry(reason=reason):
            return machines.Action_ReportRetry(machines.Reason[reason.name])
        case couchbase.ReportRefusal(reason=reason):
            return machines.Action_ReportRefusal(machines.Reason[reason.name])
        case _:  # In the interface, the other actions have no fields.
            plain: machines.Action = getattr(machines, f"Action_{type(action).__name__}")()
            return plain


def _check_time(value: float, name: str, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        bound = f", at least {least}" if math.isfinite(least) else ""
        raise Err(f"{name} is {value}, expected a finite number of seconds{bound}")


def _bounded(text: str, what: str, most: int = NAME_LENGTH_MAX) -> str:
    if len(text) > most:
        raise Err(f"{what} has {len(text)} characters; the maximum is {most}")
    return text
