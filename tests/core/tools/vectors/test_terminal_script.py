"""Terminal conditions, written as lines of text."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.terminal_script import EVENT_FORM, OPERATION_FORM, terminal_reason

REFUSED = "topology_conn:1 sasl status 0x20"
UNTRUSTED = "topology_conn:2 tls certificate untrusted"
NO_ACCESS = "bucket:travel select_bucket status 0x24"
NO_SCOPE = "manifest fetched without scope inventory"
NO_COLLECTION = "manifest fetched with scope inventory, without collection people"
R = RetryReason


@rows(
    ("events", "operation", "expected"),
    [
        ([], "kv_or_http", None),
        ([REFUSED], "kv_or_http", R.AUTHENTICATION_ERROR),
        ([REFUSED], "query", R.AUTHENTICATION_ERROR),
        ([REFUSED], "kv bucket travel", R.AUTHENTICATION_ERROR),
        ([REFUSED, "topology_conn:1 sasl ok"], "kv_or_http", None),
        ([REFUSED, "topology_conn:1 sasl status 0x00"], "kv_or_http", None),
        ([REFUSED, "topology_conn:1 sasl status 0x01"], "kv_or_http", R.AUTHENTICATION_ERROR),
        ([REFUSED, "topology_conn:3 sasl ok"], "kv_or_http", R.AUTHENTICATION_ERROR),
        ([REFUSED, "topology_conn:1 removed"], "kv_or_http", None),
        (["data_only_conn:1 sasl status 0x20"], "kv_or_http", None),
        ([UNTRUSTED], "kv_or_http", R.TLS_ERROR),
        ([UNTRUSTED, "topology_conn:1 tls handshake ok"], "kv_or_http", R.TLS_ERROR),
        ([UNTRUSTED, "topology_conn:2 sasl ok"], "kv_or_http", R.TLS_ERROR),
        ([UNTRUSTED, "topology_conn:2 tls handshake ok"], "kv_or_http", None),
        ([UNTRUSTED, "topology_conn:2 removed"], "kv_or_http", None),
        (["data_only_conn:2 tls certificate untrusted"], "kv_or_http", None),
        ([NO_ACCESS], "kv bucket travel", R.BUCKET_ACCESS_ERROR),
        ([NO_ACCESS], "kv bucket other", None),
        ([NO_ACCESS], "kv_or_http", None),
        ([NO_ACCESS, "bucket:travel select_bucket ok"], "kv bucket travel", None),
        (["no manifest fetched yet"], "kv inventory.people", None),
        ([NO_SCOPE], "kv inventory.people", R.SCOPE_NOT_FOUND),
        ([NO_SCOPE], "kv tenant.people", None),
        ([NO_COLLECTION], "kv inventory.people", R.COLLECTION_NOT_FOUND),
        ([NO_COLLECTION], "kv inventory.hotels", None),
        ([NO_SCOPE, NO_COLLECTION], "kv inventory.people", R.COLLECTION_NOT_FOUND),
    ],
)
def test_returns_the_terminal_reason(events: list[str], operation: str, expected: RetryReason | None) -> None:
    """The events give the operation its terminal reason, or none; later events can undo earlier ones."""
    assert expected is terminal_reason(events, operation)


@rows(
    "event",
    [
        "",
        "topology_conn:1",
        "topology_conn: removed",
        "topology_conn:1 sasl",
        "topology_conn:1 sasl ok ",
        "topology_conn:1 removed\n",
        "other_conn:1 removed",
        "bucket:travel removed",
        "manifest fetched",
        "manifest fetched with scope inventory",
    ],
)
def test_refuses_an_unknown_event(event: str) -> None:
    """The error gives the event's index and text, and the expected form."""
    with pytest.raises(MalformedQuestion) as caught:
        terminal_reason([REFUSED, event], "kv_or_http")

    assert f"events[1] {event!r} is not known; expected {EVENT_FORM}" == str(caught.value)


@rows("event", ["topology_conn:1 sasl status 20", "bucket:travel select_bucket status 0x"])
def test_refuses_a_status_that_is_not_hexadecimal(event: str) -> None:
    """The error gives the event's index and the status."""
    with pytest.raises(MalformedQuestion, match=r"^events\[0\] '(20|0x)' is not 0x and"):
        terminal_reason([event], "kv_or_http")


@rows("operation", ["", "kv", "kv bucket", "kv inventory", "kv a.b.c", "http", "query now"])
def test_refuses_an_unknown_operation(operation: str) -> None:
    """The error quotes the operation and lists the expected forms."""
    with pytest.raises(MalformedQuestion) as caught:
        terminal_reason([], operation)

    assert f"op {operation!r} is not known; expected {OPERATION_FORM}" == str(caught.value)
