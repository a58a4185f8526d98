"""Rows of a timeline: the actor, the event and the decision about it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import NamedTuple, assert_never

from triclinium_core.decision_tape import lines
from triclinium_core.explain.explanation import milliseconds
from triclinium_core.retry.couchbase import status_name

NetworkFact = lines.Connection | lines.Breaker | lines.ClusterMap
Judged = lines.NotSent | lines.Lost | lines.Responded | lines.ServiceResponded | lines.Woken | lines.StrategyResponded
"""Steps with a decision."""


@unique
class Source(StrEnum):
    """Actor of a row."""

    CALLER = "caller"
    CLIENT = "client"
    NETWORK = "network"
    NODE = "node"


class Row(NamedTuple):
    """Row of a timeline."""

    at: float
    """Monotonic seconds."""
    source: Source
    text: str
    numbers: str = ""
    """Stream and opaque."""
    decided: str = ""
    """Decision in words; empty without one."""
    decision: lines.Decision | None = None
    fact: lines.Step | NetworkFact | None = None
    """Fact of the tape; None for the beginning and the end of an operation, which are fields of ``lines.Operation``."""


def in_ms(seconds: float) -> str:
    """Return a duration in milliseconds, as text with the unit."""
    return f"{milliseconds(seconds)} ms"


def step_row(step: lines.Step, node: str | None, strategy: str) -> Row:
    """Return the row of a step.

    Args:
        node: node of the newest attempt, for a step that names none.
        strategy: class name of the retry strategy.
    """
    source = Source.CLIENT
    match step:
        case lines.Sent(at=at, stream=stream, opaque=opaque):
            text, numbers = f"sends an attempt{_to(step.node)}", _numbers(stream=stream, opaque=opaque)
            return Row(at, source, text, numbers, fact=step)
        case lines.NotSent(reason=reason):
            text = f"cannot send an attempt{_to(step.node)}: {reason.meaning}"
        case lines.Lost(handed_over=handed_over):
            source = Source.NETWORK
            text = f"connection{_to(node)} is lost after {handed_over.value} of the request was handed over"
        case lines.Responded(status=status):
            name = status_name(status) or "an unknown status"
            source, text = Source.NODE, f"{step.node or node or 'the node'} returns {name} [0x{status:02x}]"
        case lines.ServiceResponded(http_status=http_status, code=code):
            error = "" if code is None else f", error {code}"
            source, text = Source.NODE, f"{node or 'the node'} returns HTTP status {http_status}{error}"
        case lines.Woken(decision=decision):
            text = "the deadline has passed" if decision.kind == "fail" else "the delay is over"
        case lines.StrategyResponded():
            text = f"{strategy} has responded"
        case unexpected:
            assert_never(unexpected)
    return Row(step.at, source, text, decided=decision_words(step, strategy), decision=step.decision, fact=step)


def _to(node: str | None) -> str:
    return "" if node is None else f" to {node}"


def _numbers(**numbers: int | None) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number is not None)


_DECIDED: Mapping[str, str] = {
    "none": "",
    "retry": "retry in {delay}",
    "expire": "fail in {delay}",
    "consult": "await {strategy}",
    "dispatch": "",
    "complete": "complete",
    "fail": "fail with {error}",
}
"""Words for each kind of decision. A dispatch has none, because the row of the attempt follows."""

_ORDERS: Mapping[str, str] = {
    "refresh_topology": "refresh the cluster map",
    "refresh_collection": "request the collection id again",
    "close_connection": "close the connection",
}


def decision_words(step: Judged, strategy: str) -> str:
    """Return the decision about a step in words; empty without one.

    Args:
        strategy: class name of the retry strategy.
    """
    decision, answer = step.decision, step.answer
    delay, error = in_ms(decision.delay or 0.0), decision.error or "an error"
    parts = [_DECIDED[decision.kind].format(delay=delay, error=error, strategy=strategy)]
    parts += [words for order, words in _ORDERS.items() if getattr(decision, order)]
    reason = "" if decision.reason is None else f": {decision.reason}"
    if answer is not None and (answer.delay is None or answer.delay != decision.delay):
        permits = "refuses" if answer.delay is None else f"permits a delay of {in_ms(answer.delay)}"
        reason += f"; {strategy} {permits if answer.raised is None else f'raises {answer.raised}'}"
    return ", ".join(filter(None, parts)) + reason


_MILESTONES: Mapping[str, str] = {
    "opening": "is being opened",
    "opened": "is open",
    "connecting": "connects",
    "negotiating": "negotiates features",
    "authenticating": "authenticates",
    "joining": "selects the bucket",
    "ready": "is ready",
    "lost": "is out of use",
    "stream_lost": "has ended",
}


def network_row(fact: NetworkFact, node: str | None) -> Row:
    """Return the row of an event of a connection, a circuit breaker or a cluster map.

    Args:
        node: node of the connection, for an event that names none.
    """
    of_bucket = "" if fact.bucket is None else f" for bucket {named(fact.bucket)}"
    source, numbers = Source.CLIENT, ""
    match fact:
        case lines.Connection(stream=stream, cause=cause, handed_over=handed_over):
            source, numbers = Source.NETWORK, _numbers(stream=stream)
            text = f"connection{_to(fact.node or node)}{of_bucket} {_MILESTONES[fact.event]}"
            text += "" if cause is None else f": {cause.value}"
            text += "" if handed_over is None else f", {handed_over} bytes were handed over"
        case lines.Breaker(state=state):
            text = f"circuit breaker of {fact.node or 'a node'}{of_bucket} is {state.value.replace('_', ' ')}"
        case lines.ClusterMap(nodes=nodes, moved=moved):
            text = f"accepts map {fact.epoch}.{fact.revision}{of_bucket} (nodes: {nodes}, moved vbuckets: {moved})"
        case unexpected:
            assert_never(unexpected)
    return Row(fact.at, source, text, numbers, fact=fact)


def named(*names: str | int | None) -> str:
    """Return the names of a bucket, scope, collection and index as one; a number stands for a replaced name."""
    return ".".join(f"#{name}" if isinstance(name, int) else name for name in names if name is not None)
