"""Schema of the lines: only facts of the allow-list, and no text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect

from triclinium_core.decision_tape import lines
from triclinium_core.kv.operation.operation_codec import CODECS
from triclinium_core.retry.couchbase.deciders import CAPPING_CLAUSE, DECISION_CLAUSES
from triclinium_core.retry.couchbase.tables import kv_responses
from triclinium_core.retry.couchbase.tables.service_responses import RETRYABLE_ERROR_CODES, RETRYABLE_HTTP_STATUSES


def described(hint: object) -> Any:
    """Return msgspec's description of a type."""
    return msgspec.inspect.type_info(hint)


PATTERNS = {
    described(hint).pattern
    for hint in (lines.Version, lines.ClassName, lines.OperationName, lines.Node, lines.Clause, lines.Pseudonym)
} | {lines.NAME_PATTERN}

ALLOWED = {
    "Header": "at core names pseudonyms unix_time version",
    "Operation": "abandoned began_in_flight bucket collection deadline ended_at error idempotent index key name omitted "
    "result scope service steps strategy submitted_at token",
    "StrategyFacts": "is_async is_default name",
    "Sent": "at node opaque stream",
    "NotSent": "answer at decision error node reason",
    "Lost": "answer at decision handed_over is_partial reason",
    "Responded": "answer at decision entry error node status",
    "ServiceResponded": "answer at clause code decision error http_status is_partial reason",
    "Woken": "answer at decision is_partial",
    "StrategyResponded": "answer at decision",
    "Answer": "delay error is_invalid raised within",
    "Decision": "clause close_connection delay error kind reason refresh_collection refresh_topology",
    "MapEntry": "after_ms algorithm attributes ceil_ms has_unknown_algorithm interval_ms max_duration_ms",
    "Connection": "at bucket cause event handed_over node stream",
    "Breaker": "at bucket node state",
    "ClusterMap": "at bucket epoch moved nodes revision",
    "End": "at lost reason",
}
"""Allow-list of the fields, written down here because a new field may let a secret through."""


def types_in(kind: Any, seen: set[type]) -> Iterator[Any]:
    """Yield a described type and all types inside of it."""
    yield kind
    inner = [*getattr(kind, "types", ()), *getattr(kind, "item_types", ()), getattr(kind, "item_type", None)]
    if isinstance(kind, msgspec.inspect.StructType) and kind.cls not in seen:
        seen.add(kind.cls)
        inner += [field.type for field in kind.fields]
    for each in inner:
        if each is not None:
            yield from types_in(each, seen)


SCHEMA = [kind for root in (lines.Header, lines.Fact) for kind in types_in(described(root), set())]

LIMITED = (
    msgspec.inspect.StrType,
    msgspec.inspect.IntType,
    msgspec.inspect.FloatType,
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
    msgspec.inspect.EnumType,
    msgspec.inspect.LiteralType,
    msgspec.inspect.UnionType,
    msgspec.inspect.StructType,
    msgspec.inspect.VarTupleType,
)
"""Kinds of types in the schema. Of these, only strings could contain text."""


def test_each_string_has_a_pattern() -> None:
    """Each string of the schema is an enumeration or has one of the patterns, so that no field can contain a text."""
    texts = [kind for kind in SCHEMA if isinstance(kind, msgspec.inspect.StrType)]

    assert {kind.pattern for kind in texts} == PATTERNS
    assert not [kind for kind in SCHEMA if not isinstance(kind, LIMITED)]


def test_fields_are_on_the_allow_list() -> None:
    """The lines have exactly the fields of the allow-list."""
    structs = {kind.cls.__name__: kind for kind in SCHEMA if isinstance(kind, msgspec.inspect.StructType)}

    assert {name: " ".join(sorted(field.name for field in kind.fields)) for name, kind in structs.items()} == ALLOWED


def test_names_of_operations_fit() -> None:
    """The name of each operation fits into its field."""
    name = re.compile(described(lines.OperationName).pattern)

    assert [] == [kind.name for kind in CODECS if name.fullmatch(kind.name) is None]


def test_clauses_fit() -> None:
    """The clauses for any response, for its decision and for a cut delay fit into their field together."""
    clause = re.compile(described(lines.Clause).pattern)
    of_responses = {
        kv_responses.classify(kind.name, status, None).clause for kind in CODECS for status in range(0x200)
    } | {line.clause for line in (*RETRYABLE_ERROR_CODES.values(), *RETRYABLE_HTTP_STATUSES.values())}

    longest = max(of_responses, key=len)
    assert [] == [
        each for each in DECISION_CLAUSES.values() if not clause.fullmatch(f"{longest}; {each}; {CAPPING_CLAUSE}")
    ]


def test_lines_are_bounded() -> None:
    """The longest steps, in their maximum number, fit into a line together."""
    clause = "c" * 400
    decision = lines.Decision(kind="retry", delay=1 / 3, error="E" * 100, clause=clause, refresh_topology=True)
    answer = lines.Answer(delay=1 / 3, error="E" * 100, within=1 / 3)
    step = lines.Responded(at=1e9 / 3, decision=decision, answer=answer, status=0xFFFF, node="n" * 300, error="E" * 100)

    assert lines.STEPS_MAX * len(msgspec.json.encode(step)) < lines.LINE_SIZE_MAX
