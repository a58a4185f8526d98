"""Request as a script: the answers of each node in turn, passed to the request machine.

Layout of an answer, in any spelling that ``error_names`` accepts::

    rows, empty                     a result, with and without rows
    ServerError, INVALID ...        an ERROR
    WriteTimeout(SIMPLE)            an ERROR with the type of the write; default: SIMPLE
    Heartbeat(abort)                the reason for a missing answer; ClosedConnection and Heartbeat may omit (abort)
    ClosedConnection(unsent)        the same, before anything was written
    FrameTooLong                    the request or its answer does not fit a frame
    Throttled                       the driver's own throttle refused the request
    NodeUnavailable                 there was no connection to the node
    timeout                         no answer came before the client's own timeout
    prepared, prepared(other)       to a PREPARE: the statement has the same id again, or another one
    ServerError(prepare) ...        to a PREPARE: an ERROR

After ``UNPREPARED`` a node prepares the statement, unless the script has an answer to a PREPARE next.

Source: the retry page of the Cassandra Java driver.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS, aborted, answered, canonical, kind_of
from triclinium_core.retry import cassandra
from triclinium_core.shown import printable
from triclinium_core.tools.vectors.fields import quote

RequestEnd = cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail
"""End of a request."""

CassandraErrorT = TypeVar("CassandraErrorT", bound=cassandra.CassandraError)


class UnusableScript(ValueError):
    """Exception for an unknown answer, for a node without a further answer, or for an answer to an unsent PREPARE."""


class AskedPolicy(Exception):
    """Exception for a call of a policy that must not be called."""


class FixedPolicy:
    """Policy that always returns ``verdict``. With a ``verdict`` of None, every call raises AskedPolicy."""

    def __init__(self, verdict: cassandra.RetryVerdict | None) -> None:
        self.verdict: cassandra.RetryVerdict | None = verdict
        self.on_read_timeout: Callable[..., cassandra.RetryVerdict] = self._answer
        self.on_write_timeout: Callable[..., cassandra.RetryVerdict] = self._answer
        self.on_unavailable: Callable[..., cassandra.RetryVerdict] = self._answer
        self.on_request_aborted: Callable[..., cassandra.RetryVerdict] = self._answer
        self.on_error_response: Callable[..., cassandra.RetryVerdict] = self._answer

    def _answer(self, **_: object) -> cassandra.RetryVerdict:
        if self.verdict is None:
            raise AskedPolicy("this policy must not be consulted")
        return self.verdict


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """Answer of a node.

    Args:
        text: text of the answer in the script.
        event: takes the attempt number and the id of the prepared statement, and returns the event.
        is_to_prepare: whether the answer is to a PREPARE.
    """

    text: str
    event: Callable[[int, bytes], cassandra.CassandraEvent]
    is_to_prepare: bool = False


def play(request: cassandra.CassandraRequest, script: Sequence[tuple[str, str]]) -> RequestEnd:
    """Return the end of the request. Each error has a note with its name in the script.

    Args:
        request: the request.
        script: pairs of node and answer. The plan is the nodes in the order of their first occurrence. Each node gives
            its answers in order. Answers that are left at the end are unused.

    Raises:
        UnusableScript: an answer is unknown or missing, or is to a PREPARE that was not sent.
    """
    answers: dict[str, deque[ScriptedAnswer]] = {}
    for name, text in script:
        answers.setdefault(name, deque()).append(read_answer(text))
    machine = cassandra.RequestMachine(request, list(answers))
    orders = deque(machine.handle(cassandra.RequestStarted(), 0.0))
    while True:
        order = orders.popleft()
        match order:
            case cassandra.Complete() | cassandra.CompleteEmpty() | cassandra.Fail():
                return order
            case cassandra.Send(attempt=attempt, node=node):
                event = _next_answer(answers, str(node), to_prepare=False).event(attempt, b"")
            case cassandra.Reprepare(attempt=attempt, node=node, statement_id=statement_id):
                event = _next_answer(answers, str(node), to_prepare=True).event(attempt, statement_id)
            case _:
                continue
        orders.extend(machine.handle(event, machine.wakeup if isinstance(event, cassandra.TimerFired) else 0.0))


def _next_answer(answers: dict[str, deque[ScriptedAnswer]], node: str, *, to_prepare: bool) -> ScriptedAnswer:
    left = answers[node]
    if to_prepare and not (left and left[0].is_to_prepare):
        return _PREPARED
    if not left:
        raise UnusableScript(f"{quote(node)} receives one more request, but has no further answer")
    answer = left.popleft()
    if answer.is_to_prepare and not to_prepare:
        raise UnusableScript(f"{quote(node)} answers {quote(answer.text)}, but was sent no PREPARE")
    return answer


def read_answer(text: str) -> ScriptedAnswer:
    """Return the answer that ``text`` describes.

    Raises:
        UnusableScript: the text is unknown.
    """
    parts = _TEXT.fullmatch(text)
    name, detail = (parts[1], canonical(parts[2] or "")) if parts else (text, "")
    match canonical(name), detail:
        case ((("rows" | "empty") as result), ""):
            return ScriptedAnswer(text, lambda attempt, _: cassandra.ResultReceived(attempt, result))
        case "prepared", "":
            return _PREPARED
        case "prepared", "other":
            return ScriptedAnswer(
                text, lambda attempt, known: cassandra.StatementPrepared(attempt, known + b"?"), is_to_prepare=True
            )
        case (("nodeunavailable" | "noconnection"), ""):
            return ScriptedAnswer(text, lambda attempt, _: cassandra.ConnectionMissed(attempt))
        case (("timeout" | "drivertimeout"), ""):
            return ScriptedAnswer(text, lambda _, __: cassandra.TimerFired())
        case "frametoolong", ("" | "abort" | "unsent"):
            # No other node accepts the request either, whether it was sent or not (decision A9).
            too_long = _noted(cassandra.FrameTooLong(text), text)
            return ScriptedAnswer(text, lambda attempt, _: cassandra.AttemptAborted(attempt, too_long))
        case (("throttled" | "requestthrottled"), ("" | "unsent")):
            throttled = _noted(cassandra.RequestThrottled(text), text)
            return ScriptedAnswer(text, lambda attempt, _: cassandra.AttemptAborted(attempt, throttled, handed_over=0))
        case _, ("abort" | "unsent"):
            abort = _noted(aborted(name), text)
            handed_over = 0 if detail == "unsent" else None
            return ScriptedAnswer(
                text, lambda attempt, _: cassandra.AttemptAborted(attempt, abort, handed_over=handed_over)
            )
        case _, "" if kind_of(name, ABORTS):
            abort = _noted(aborted(name), text)
            return ScriptedAnswer(text, lambda attempt, _: cassandra.AttemptAborted(attempt, abort))
    error = _error_answered(name, "" if detail == "prepare" else detail)
    if error is None:
        raise UnusableScript(
            f"{quote(text)} is not known; an answer is rows, an error such as ReadTimeout or WriteTimeout(SIMPLE), "
            "an abort such as Heartbeat(abort), empty, prepared, NoConnection or Timeout"
        )
    noted = _noted(error, text)
    return ScriptedAnswer(
        text, lambda attempt, _: cassandra.ErrorReceived(attempt, noted), is_to_prepare=detail == "prepare"
    )


_TEXT = re.compile(r"\s*([^()]+?)\s*(?:\(([^()]*)\)\s*)?")

_PREPARED = ScriptedAnswer("prepared", cassandra.StatementPrepared, is_to_prepare=True)

_WRITE_TYPES = {canonical(write_type): write_type for write_type in cassandra.WriteType} | {
    "": cassandra.WriteType.SIMPLE
}


def _error_answered(name: str, detail: str) -> cassandra.CoordinatorError | None:
    """Return the ERROR, or None if the name is unknown or the detail does not fit the name.

    Its counts are for two replicas, one of which is missing.
    """
    level = cassandra.ConsistencyLevel.QUORUM
    match canonical(name), detail:
        case "readtimeout", "":
            return cassandra.ReadTimeout(consistency=level, block_for=2, received=1, data_present=True)
        case "writetimeout", detail if detail in _WRITE_TYPES:
            return cassandra.WriteTimeout(consistency=level, write_type=_WRITE_TYPES[detail], block_for=2, received=1)
        case "unavailable", "":
            return cassandra.Unavailable(consistency=level, required=2, alive=1)
        case _, "" if kind_of(name, ANSWERS):
            return answered(name)
    return None


def _noted(error: CassandraErrorT, text: str) -> CassandraErrorT:
    # A note stays with the error even if the machine returns a copy.
    error.add_note(printable(text))
    return error
