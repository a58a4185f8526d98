"""Facts of decision tapes: invented ones for particular tests, and strategies that draw any tape of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.reading import TapeReader
from triclinium_core.retry.couchbase import HandedOver, RetryReason, Service

HEADER = lines.Header(version=lines.FORMAT, core="0.1", at=0.0)
NODE, OTHER = "n1:11210", "n2:11210"
STRATEGY = lines.StrategyFacts("BestEffortRetryStrategy", is_default=True)
CLAUSE = "RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86"


def operation(token: int = 1, began: float = 10.0, took: float | None = 0.5, **facts: Any) -> lines.Operation:
    """Return an operation with one attempt, which took ``took`` seconds; None for an open operation."""
    given = {
        "name": "upsert",
        "service": Service.KV,
        "idempotent": False,
        "strategy": STRATEGY,
        "deadline": began + 2.5,
        "ended_at": None if took is None else began + took,
        "result": "open" if took is None else "completed",
        "steps": (lines.Sent(at=began, node=NODE, stream=3, opaque=7),),
    }
    return lines.Operation(token=token, submitted_at=began, **{**given, **facts})


def retried_steps(began: float, delays: Sequence[float], node: str = NODE) -> tuple[lines.Step, ...]:
    """Return attempts that the node refuses temporarily, each with its delay, and a last one without a response."""
    steps: list[lines.Step] = []
    at = began
    for number, delay in enumerate(delays):
        retry = lines.Decision(kind="retry", reason=RetryReason.KV_TEMPORARY_FAILURE, delay=delay, clause=CLAUSE)
        steps.append(lines.Sent(at=at, node=node, stream=3, opaque=20 + number))
        steps.append(lines.Responded(at=at, decision=retry, answer=lines.Answer(delay=delay), status=0x86, node=node))
        at += delay
        steps.append(lines.Woken(at=at, decision=lines.Decision(kind="dispatch")))
    return (*steps, lines.Sent(at=at, node=node, stream=3, opaque=20 + len(delays)))


def lost(at: float) -> lines.Lost:
    """Return the loss of a connection with a part of a write handed over, and the failure that follows."""
    fail = lines.Decision(
        kind="fail", reason=RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, error="RequestCanceledException"
    )
    return lines.Lost(at=at, decision=fail, handed_over=HandedOver.PART, reason=RetryReason.SOCKET_NOT_AVAILABLE)


def opening(at: float, stream: int, node: str = NODE) -> lines.Connection:
    """Return the opening of a connection."""
    return lines.Connection(at=at, stream=stream, event="opening", node=node)


def tape_of(*facts: lines.Fact, is_cut_off: bool = False) -> bytes:
    """Return a tape with these facts."""
    end = () if is_cut_off else (lines.End(at=1e12, reason="saved"),)
    return b"".join(msgspec.json.encode(line) + b"\n" for line in (HEADER, *facts, *end))


def read(tape: bytes) -> list[lines.Fact]:
    """Return the checked facts of a tape."""
    return [fact for _, fact in TapeReader([tape])]


# -- Arbitrary tapes.


def drawn(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a type of the schema, which draws values as in JSON."""
    match inspect.type_info(kind) if not isinstance(kind, inspect.Type) else kind:
        case inspect.StructType(fields=fields, tag_field=tag_field, tag=tag):
            tagged = {} if tag_field is None else {tag_field: st.just(tag)}
            needed = {field.encode_name: drawn(field.type) for field in fields if field.required}
            others = {field.encode_name: drawn(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries({**tagged, **needed}, optional=others)
        case inspect.UnionType(types=types):
            return st.one_of(*map(drawn, types))
        case inspect.VarTupleType(item_type=item):
            return st.lists(drawn(item), max_size=6)
        case inspect.StrType(pattern=pattern) if pattern is not None:
            return st.from_regex(pattern)
        case inspect.IntType(ge=least, le=most):
            return st.integers(least, most)
        case inspect.FloatType(ge=least, le=most):
            return st.floats(least, most)
        case inspect.BoolType():
            return st.booleans()
        case inspect.EnumType(cls=enum):
            return st.sampled_from([member.value for member in enum])
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.NoneType():
            return st.none()
        case unexpected:
            raise TypeError(f"the schema has a type without a strategy: {unexpected}")


FACTS = drawn(lines.Operation | lines.Connection | lines.Breaker | lines.ClusterMap)


@st.composite
def tapes(draw: st.DrawFn) -> bytes:
    """Draw a tape with any facts of the schema, in the order of their times, complete or cut off."""
    facts = draw(st.lists(FACTS, max_size=8))
    facts.sort(key=lambda fact: fact.get("at") or fact.get("ended_at") or 0.0)
    newest = max([fact.get("at") or fact.get("ended_at") or 0.0 for fact in facts], default=0.0)
    ends = draw(st.lists(st.just(lines.End(at=newest, reason="saved", lost=2)), max_size=1))
    return b"".join(msgspec.json.encode(line) + b"\n" for line in (HEADER, *facts, *ends))
