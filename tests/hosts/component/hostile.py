"""Hostile input for the component."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence

from tests.core.tools.vectors.sample_questions import DECIDE, REASON_HTTP as REASON
from tests.hosts.component.recorded import QUESTIONS
from triclinium_core.json_depth import LEVELS_MAX, LEVELS_REFUSED

QUESTION_LENGTH_MAX, BODY_LENGTH_MAX = 65_536, 1_048_576


def nested(depth: int) -> str:
    """Return JSON of that depth, with brackets in strings that must not count."""
    return '{"]": [' * (depth // 2) + '"[[[{{{"' + "]}" * (depth // 2)


REFUSED_QUESTIONS: Sequence[str] = (
    "",
    " ",
    "null",
    "[]",
    '"x"',
    "{}",
    "{",
    "NaN",
    "\x00",
    "\ufeff{}",
    '{"family": "couchbase", "ask": "\\ud800"}',
    '{"family": ["couchbase"], "ask": {}}',
    "[" * 60_000,
    "[" * 2 * LEVELS_MAX,
    '{"a":' * 12_000,
    nested(LEVELS_MAX),
    nested(LEVELS_REFUSED),
    '["]]]]]]]]", ' * 5_000,
    json.dumps(REASON | {"http_status": 99}),
    json.dumps(DECIDE | {"error_map_entry": {"attrs": [[]]}}),
    json.dumps(DECIDE | {"attempt": -1}),
    json.dumps(DECIDE | {"attempt": 1.5}),
    json.dumps(DECIDE | {"attempt": float("nan")}),
    json.dumps(DECIDE | {"timeout_ms": float("inf")}),
    json.dumps(DECIDE)[:-1] + ', "attempt": 1' + "0" * 400 + "}",
    json.dumps(DECIDE)[:-1] + ', "attempt": 1' + "0" * 60_000 + "}",
    json.dumps(DECIDE)[:-1] + ', "elapsed_ms": 1e400}',
    " " * QUESTION_LENGTH_MAX + "{}",
)
"""Questions that are refused."""

ANSWERED_QUESTIONS: Sequence[str] = (
    json.dumps(REASON | {"body": "[" * 50_000}),
    json.dumps(REASON | {"body": nested(LEVELS_MAX)}),
    json.dumps(REASON | {"body": "[" * 2 * LEVELS_MAX}),
    json.dumps(REASON)[:-1] + f', "padding": {nested(LEVELS_MAX - 2)}}}',
    json.dumps(REASON | {"body": '"' + "[{" * 20_000}),
    json.dumps(REASON | {"body": "\ud800\udfff\x1b]0;\u202e"}),
    json.dumps(REASON | {"op": "\ud800", "id": "\udfff"}),
    json.dumps(REASON | {"padding": "x" * (QUESTION_LENGTH_MAX - 200)}),
    json.dumps(DECIDE | {"attempt": 10**18, "timeout_ms": 1e300}),
    json.dumps(
        {"family": "smithy", "ask": "backoff", "jitter": "DECORRELATED", "base_s": 1e300, "max_s": 1.7e308}
        | {"random": 1, "attempts": [10**18, *range(9_000)]}
    ),
)
"""Extreme questions that are answered."""

NUMBERS: Sequence[object] = (None, True, -1, 0, 0.1, 2**31, 10**30, 1e308)
OTHERS: Sequence[object] = ("", "\ud800", "x" * 2_000, "0x" + "f" * 5_000, [], {}, [[[[]]]], {"attrs": ["retry-now"]})


def mutated_questions(seed: int, count: int) -> Iterator[str]:
    """Yield recorded questions with fields that have other, missing or hostile values."""
    rng = random.Random(seed)
    questions: list[Mapping[str, object]] = [json.loads(line) for line in QUESTIONS]
    for _ in range(count):
        question = dict(rng.choice(questions))
        for name in rng.sample(sorted(question), k=rng.randint(1, 3)):
            other = rng.choice(questions)
            value = rng.choice([rng.choice([*NUMBERS, *OTHERS]), other.get(name), *other.values()])
            question[name] = value
        if rng.random() < 0.1:
            del question[rng.choice(sorted(question))]
        text = json.dumps(question)
        yield text[: rng.randrange(len(text))] if rng.random() < 0.05 else text


REQUEST = {"service": "kv", "operation": "get", "idempotent": True, "strategy": "best-effort", "timeout": 2.5}
QUERY = REQUEST | {"service": "query", "operation": "query"}
RESPONSE = {"tag": "kv-response-received", "val": {"status": 0x86, "node": "n1"}}
LONG = "x" * 257


def served(body: str, status: int = 200) -> Mapping[str, object]:
    """Return the response of an HTTP service."""
    return {"tag": "service-response-received", "val": {"http-status": status, "body": body, "is-partial": False}}


def failed(reason: str, node: str | None = None) -> Mapping[str, object]:
    """Return a failed dispatch."""
    return {"tag": "dispatch-failed", "val": {"reason": reason, "node": node}}


REFUSED_CALLS: Sequence[Sequence[object]] = (
    ["open", REQUEST, "NaN"],
    ["open", REQUEST, "-Infinity"],
    ["open", REQUEST | {"timeout": "NaN"}, 0.0],
    ["open", REQUEST | {"timeout": "Infinity"}, 0.0],
    ["open", REQUEST | {"timeout": -1e-300}, 0.0],
    ["open", REQUEST | {"timeout": -1.0}, 0.0],
    ["open", REQUEST | {"timeout": 1.7e308}, 1.7e308],
    ["open", REQUEST | {"operation": LONG}, 0.0],
    ["handle", 0, {"tag": "time-passed"}, 0.0],
    ["handle", 999, {"tag": "time-passed"}, 0.0],
    ["handle", 2**53, {"tag": "time-passed"}, 0.0],
    ["wakeup", 999],
    ["close", 999],
    # Machine 1 has a request to kv and got an event at 10 s; machine 2 has a request to query.
    ["handle", 1, {"tag": "time-passed"}, 9.999],
    ["handle", 1, {"tag": "time-passed"}, -1e308],
    ["handle", 1, {"tag": "time-passed"}, "NaN"],
    ["handle", 1, {"tag": "time-passed"}, "Infinity"],
    ["handle", 1, {"tag": "dispatched", "val": LONG}, 11.0],
    ["handle", 1, RESPONSE, 11.0],
    ["handle", 1, {"tag": "socket-closed", "val": "all"}, 11.0],
    ["handle", 1, failed("kv-not-my-vbucket"), 11.0],
    ["handle", 1, failed("node-not-available", LONG), 11.0],
    ["handle", 1, served("{}"), 11.0],
    ["handle", 2, RESPONSE, 11.0],
    ["handle", 2, failed("bucket-access-error"), 11.0],
    ["handle", 2, served("", 99), 11.0],
    ["handle", 2, served("", 600), 11.0],
    ["handle", 2, served("x" * (BODY_LENGTH_MAX + 1)), 11.0],
    ["load-error-map", "n1", ""],
    ["load-error-map", "n1", "[" * 100_000],
    ["load-error-map", "n1", "x" * (BODY_LENGTH_MAX + 1)],
    ["load-error-map", "n1", '{"version": 1, "revision": 1' + "0" * 5_000 + ', "errors": {}}'],
    ["load-error-map", "n1", '{"version": 3, "revision": 1, "errors": {}}'],
    ["load-error-map", LONG, '{"version": 1, "revision": 1, "errors": {}}'],
)
"""Calls that are refused, after which nothing has changed."""
