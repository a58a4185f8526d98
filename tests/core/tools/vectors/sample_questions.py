"""One complete question of each kind, for tests to change, and further values for its fields."""

from __future__ import annotations

from hypothesis import strategies as st

from triclinium_core.retry.couchbase.tables.error_map import Attribute


def question(family: str, ask: str, **fields: object) -> dict[str, object]:
    """Return a question."""
    return {"family": family, "ask": ask, **fields}


IDEMPOTENT = question("couchbase", "idempotent", service="kv", op="get")
REASON_KV = question("couchbase", "reason", service="kv", op="get", status="0x86")
REASON_HTTP = question("couchbase", "reason", service="views", op="query", http_status=302, body="")
TIMES: dict[str, object] = {"elapsed_ms": 0, "timeout_ms": 2500}
DECIDE = question(
    "couchbase", "decide", strategy="best_effort", reason="KV_LOCKED", idempotent=False, attempt=3, **TIMES
)
TIMEOUT = question("couchbase", "timeout", idempotent=False, on_the_wire=True)
CAP = question("couchbase", "cap", requested_delay_ms=10, **TIMES)
TERMINAL = question("couchbase", "terminal", events=["topology_conn:1 sasl status 0x20"], op="query")
COUCHBASE = (IDEMPOTENT, REASON_KV, REASON_HTTP, DECIDE, TIMEOUT, CAP, TERMINAL)

TIMED_OUT: dict[str, object] = {
    "policy": "downgrading",
    "cl": "QUORUM",
    "block_for": 2,
    "received": 1,
    "retry_count": 0,
}
READ_TIMEOUT = question("cassandra", "verdict", event="read_timeout", data_present=True, **TIMED_OUT)
WRITE_TIMEOUT = question("cassandra", "verdict", event="write_timeout", write_type="SIMPLE", **TIMED_OUT)
UNAVAILABLE = question(
    "cassandra", "verdict", policy="default", event="unavailable", cl="QUORUM", required=2, alive=1, retry_count=0
)
REQUEST_ABORTED = question(
    "cassandra", "verdict", policy="default", event="request_aborted", error="Heartbeat", retry_count=5
)
ERROR_RESPONSE = REQUEST_ABORTED | {"event": "error_response", "error": "Overloaded"}
REQUEST = question(
    "cassandra", "request", idempotent=True, verdict="RETRY_NEXT", script=[["n1", "Unavailable"], ["n2", "rows"]]
)
CASSANDRA = (READ_TIMEOUT, WRITE_TIMEOUT, UNAVAILABLE, REQUEST_ABORTED, ERROR_RESPONSE, REQUEST)

BACKOFF = question("smithy", "backoff", jitter="FULL", base_s=2, max_s=20, random=0.5, attempts=[0, 1, 2, 5, 2000])
SEQUENCE = question(
    "smithy",
    "sequence",
    strategy="standard",
    numbers="2026",
    quota_capacity=500,
    max_attempts=3,
    random=1.0,
    operations=[{"responses": ["E", "T", "ok"]}, {"responses": ["N"]}],
)
SMITHY = (BACKOFF, SEQUENCE)

QUESTIONS = (*COUCHBASE, *CASSANDRA, *SMITHY)

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
