"""One question of each kind, complete and understood, for tests to change; and what else may stand in its fields."""

from __future__ import annotations

from hypothesis import strategies as st

from triclinium_core.retry.error_map import Attribute

RETRY_NOW = {"name": "X", "desc": "x", "attrs": ["retry-now"]}
IDEMPOTENT: dict[str, object] = {"family": "couchbase", "ask": "idempotent", "service": "kv", "op": "get"}
REASON_KV: dict[str, object] = {"family": "couchbase", "ask": "reason", "service": "kv", "op": "get", "status": "0x86"}
REASON_HTTP: dict[str, object] = {
    "family": "couchbase",
    "ask": "reason",
    "service": "views",
    "op": "query",
    "http_status": 302,
    "body": "",
}
DECIDE: dict[str, object] = {
    "family": "couchbase",
    "ask": "decide",
    "strategy": "best_effort",
    "reason": "KV_LOCKED",
    "idempotent": False,
    "attempt": 3,
    "elapsed_ms": 0,
    "timeout_ms": 2500,
}
CAP: dict[str, object] = {
    "family": "couchbase",
    "ask": "cap",
    "requested_delay_ms": 10,
    "elapsed_ms": 0,
    "timeout_ms": 2500,
}
TERMINAL: dict[str, object] = {
    "family": "couchbase",
    "ask": "terminal",
    "events": ["topology_conn:1 sasl status 0x20"],
    "op": "query",
}
COUCHBASE = (IDEMPOTENT, REASON_KV, REASON_HTTP, DECIDE, CAP, TERMINAL)

QUESTIONS = COUCHBASE

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)

HUGE = st.sampled_from([10**400, 10**308, -1, 1e308, 5e-324, 2**64])
ENTRIES = st.fixed_dictionaries(
    {"attrs": st.lists(st.sampled_from([*Attribute, "other"])) | JSON_VALUES},
    optional={
        "retry": st.fixed_dictionaries(
            {
                "strategy": st.sampled_from(["constant", "linear", "exponential", "other"]),
                "interval": st.integers() | HUGE,
                "after": st.integers() | HUGE,
            },
            optional={"max-duration": st.integers() | HUGE, "ceil": st.integers() | HUGE},
        )
    },
)
EVENTS = st.lists(
    st.from_regex(
        r"(topology_conn|bucket):.( sasl| select_bucket)? (ok|status 0x[0-9a-f]{1,5}|removed)", fullmatch=True
    )
)
