"""Log records of retries, refusals, connections, timeouts and telemetry, and the marks of user data in them."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace

import msgspec
import pytest

from tests.rows import rows
from tests.trio_client.doubles import REQUEST, STREAM
from triclinium._cluster_driver.log import Log
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRefusal, ReportRetry, ReportTelemetry, TelemetryKind
from triclinium_core.contract.neutral import ReportConnection, ReportLevel, Token
from triclinium_core.error_context import LISTED_MAX, TEXT_MAX, ErrorContext
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.shown import STATEMENT_SHOWN_MAX


def retry(key: str | None = "ada", *, dispatches: bool = True) -> ReportRetry:
    """Return the report of a retry."""
    return ReportRetry(Token(1), replace(REQUEST, key=key), RetryReason.KV_LOCKED, 0.004, dispatches, "node:11210")


REFUSAL = ReportRefusal(Token(1), REQUEST, RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, "RequestCanceledException", None)


@pytest.fixture(autouse=True)
def _all_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="triclinium")


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the extra fields of a record."""
    plain = vars(logging.makeLogRecord({}))
    return {name: value for name, value in vars(record).items() if name not in plain and name != "message"}


def test_a_retry_is_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """A retry is logged at DEBUG as one line with extra fields; the line states if the retry misses the deadline."""
    Log().retry(retry())
    Log().retry(retry(dispatches=False))

    assert [("triclinium.retry", logging.DEBUG)] * 2 == [record[:2] for record in caplog.record_tuples]
    in_time, late = caplog.messages
    assert all(fact in in_time for fact in ("upsert", "'ada'", "0.004 s", "KV_LOCKED", "node:11210", "2"))
    assert "unsent" in late
    assert {
        "operation": "upsert",
        "key": "ada",
        "reason": "KV_LOCKED",
        "node": "node:11210",
        "retry_attempts": 2,
        "age": 0.25,
        "delay": 0.004,
        "dispatches": True,
    } == fields_of(caplog.records[0])


def test_a_request_without_key_is_named_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The line about a request without a key, such as a query, has no ``None`` in place of the key."""
    Log().retry(retry(key=None))

    assert caplog.messages[0].startswith(f"{REQUEST.operation} is sent again")


def test_a_refusal_is_logged_at_info(caplog: pytest.LogCaptureFixture) -> None:
    """A refusal is logged at INFO with the caller's exception and the age of the operation, but without a delay."""
    Log().refusal(REFUSAL)

    ((name, level, message),) = caplog.record_tuples
    assert ("triclinium.retry", logging.INFO) == (name, level)
    assert all(fact in message for fact in ("SOCKET_CLOSED_WHILE_IN_FLIGHT", "RequestCanceledException", "0.250 s"))
    assert {
        "operation": "upsert",
        "key": "ada",
        "reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        "node": None,
        "retry_attempts": 2,
        "age": 0.25,
        "error": "RequestCanceledException",
    } == fields_of(caplog.records[0])


@pytest.mark.parametrize("level", ReportLevel)
def test_connection_events_have_the_machines_level(caplog: pytest.LogCaptureFixture, level: ReportLevel) -> None:
    """The connection logger uses the text and the level of the machine's report."""
    Log().connection(ReportConnection(STREAM, "node:11210", "ready", level))

    name, number, text = caplog.record_tuples[0]
    assert ("triclinium.connection", "node:11210: ready") == (name, text)
    assert level.name == logging.getLevelName(number)


@rows("redact", [False, True])
def test_a_timeout_is_logged_with_its_context(caplog: pytest.LogCaptureFixture, redact: bool) -> None:
    """A timeout is logged at WARNING with its context as JSON; with redaction, document id and statement are marked."""
    context = ErrorContext(operation="upsert", key="ada", statement="SELECT 1", retry_attempts=2, elapsed=2.5)
    Log(redact=redact).timeout(errors.AmbiguousTimeoutException("too late", context))

    name, level, message = caplog.record_tuples[-1]
    error, _, reported = message.partition(": ")
    key, statement = ("<ud>ada</ud>", "<ud>SELECT 1</ud>") if redact else ("ada", "SELECT 1")
    assert ("triclinium.timeout", logging.WARNING, "AmbiguousTimeoutException") == (name, level, error)
    assert json.loads(replace(context, key=key, statement=statement).to_json()) == json.loads(reported)


@pytest.mark.parametrize(
    ("kind", "name", "level"),
    [
        (TelemetryKind.SLOW_OPERATIONS, "triclinium.threshold", logging.WARNING),
        (TelemetryKind.ORPHANS, "triclinium.orphan", logging.WARNING),
        (TelemetryKind.DURATIONS, "triclinium.meter", logging.INFO),
    ],
)
def test_telemetry_is_logged_as_plain_json(
    caplog: pytest.LogCaptureFixture, kind: TelemetryKind, name: str, level: int
) -> None:
    """A telemetry record consists of the JSON alone; its logger identifies the kind."""
    Log().telemetry(ReportTelemetry(kind, '{"kv":{}}'))

    assert [(name, level, '{"kv":{}}')] == caplog.record_tuples


def test_document_ids_are_marked_for_redaction(caplog: pytest.LogCaptureFixture) -> None:
    """With redaction, document ids are inside the marks of Couchbase's tools; a NOOP, which has no id, has no marks."""
    log = Log(redact=True)
    log.retry(retry())
    log.refusal(REFUSAL)
    log.retry(retry(None))

    assert [True, True, False] == ["<ud>ada</ud>" in message for message in caplog.messages]
    assert ["<ud>ada</ud>", "<ud>ada</ud>", None] == [fields_of(record)["key"] for record in caplog.records]


USER = "alice.smith@example.org"
CONTEXT = ErrorContext(
    operation="get_user",
    key=f"u::{USER}",
    path=f"people.{USER}",
    statement=f"SELECT '{USER}'",
    parameters=(f"${USER}",),
    http_path=f"/settings/rbac/users/local/{USER}",
    server_context=f"document of {USER}",
    error_message=f"near {USER}",
    body_start=f"<html>{USER}",
    last_dispatch_error=f"refused the credentials of '{USER}'",
    connections=(f"node:11210 refused the credentials of '{USER}'",),
)


def unmarked(text: str) -> str:
    """Return the text without marked user data, as a tool would."""
    return re.sub("<ud>.+?</ud>", "", text)


def test_all_user_data_of_a_timeout_is_marked(caplog: pytest.LogCaptureFixture) -> None:
    """In the log of a timeout, every field that contains user data, or may quote it, is inside marks."""
    Log(redact=True).timeout(errors.AmbiguousTimeoutException("too late", CONTEXT))

    assert "get_user" in unmarked(caplog.text)
    assert USER not in unmarked(caplog.text)


@rows("mark", ["</ud>", "<ud>", "</UD>", "</md>", "</ud></ud>"])
def test_a_mark_inside_user_data_is_escaped(caplog: pytest.LogCaptureFixture, mark: str) -> None:
    """A document id that contains a mark stays inside the marks in lines, fields and contexts of timeouts."""
    caplog.clear()
    log, key = Log(redact=True), f"x{mark}{USER}"
    log.retry(retry(key))
    log.timeout(errors.AmbiguousTimeoutException("too late", ErrorContext(key=key)))
    reported = [*caplog.messages, str(fields_of(caplog.records[0])["key"])]

    assert [True] * 3 == [USER in text and USER not in unmarked(text) for text in reported]


def test_user_names_in_events_of_connections_are_marked(caplog: pytest.LogCaptureFixture) -> None:
    """The names of the first and of later users are marked in log texts; longer words that contain a name are not."""
    log = Log(redact=True)
    log.options(ClientOptions(connection_string="couchbase://h", authenticator=PasswordAuthenticator(USER, "secret")))
    log.authenticator(PasswordAuthenticator("bob\n", "secret"))
    log.connection(ReportConnection(STREAM, "node:11210", f"refused user {USER!r} and 'bob\\n', not bobby"))
    options, event = caplog.messages

    assert USER not in unmarked(options)
    assert "node:11210: refused user '' and '', not bobby" == unmarked(event)


def test_user_names_are_unmarked_without_redaction(caplog: pytest.LogCaptureFixture) -> None:
    """Without redaction, an event of a connection is logged unchanged."""
    log = Log()
    log.authenticator(PasswordAuthenticator(USER, "secret"))
    log.connection(ReportConnection(STREAM, "node:11210", f"refused {USER}"))

    assert [f"node:11210: refused {USER}"] == caplog.messages


@rows("redact", [False, True])
def test_lines_are_printable_and_bounded(caplog: pytest.LogCaptureFixture, redact: bool) -> None:
    """Log lines and their fields are printable and of limited length for any text of a node or a caller."""
    caplog.clear()
    evil = "\n\x1b[31m\x9b\u202e\u2028\ud800\x7f" * 10_000
    log = Log(redact=redact)
    log.retry(retry(evil))
    log.refusal(msgspec.structs.replace(REFUSAL, request=replace(REQUEST, key=evil), node=evil))
    log.connection(ReportConnection(STREAM, evil, evil))
    context = ErrorContext(key=evil, statement=evil, parameters=(evil,) * 1000, connections=(evil,) * 1000)
    log.timeout(errors.AmbiguousTimeoutException("too late", context))
    log.telemetry(ReportTelemetry(TelemetryKind.ORPHANS, json.dumps({"kv": "\x7f"})))
    reported = [*caplog.messages, *(str(fields_of(record)) for record in caplog.records)]

    assert "\\n\\x1b[31m" in caplog.messages[0]
    assert all(text.isprintable() for text in reported)
    assert all(len(text) < 2 * (LISTED_MAX + 2) * 6 * TEXT_MAX for text in reported)


@rows("redact", [False, True])
def test_a_statement_is_cut_inside_its_marks(caplog: pytest.LogCaptureFixture, redact: bool) -> None:
    """A timeout logs a thousand characters of a long statement; with redaction, they include both complete marks."""
    caplog.clear()
    context = QueryRequest(statement="SELECT '" + "x" * 1_000_000 + "'").error_context()
    Log(redact=redact).timeout(errors.AmbiguousTimeoutException("too late", context))
    logged = json.loads(caplog.messages[0].partition(": ")[2])["statement"]

    assert STATEMENT_SHOWN_MAX == len(logged)
    assert redact == bool(re.fullmatch("<ud>[^<]+</ud>", logged))
