"""What the log says of retries, refusals and connections."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tests.trio_client.doubles import REQUEST, STREAM
from triclinium._log import Log
from triclinium_core.kv.actions import ReportConnection, ReportLevel, ReportRefusal, ReportRetry
from triclinium_core.kv.events import Token
from triclinium_core.retry.reasons import RetryReason


def retry(key: str | None = "ada", *, dispatches: bool = True) -> ReportRetry:
    """Return the report of a retry."""
    return ReportRetry(Token(1), replace(REQUEST, key=key), RetryReason.KV_LOCKED, 0.004, dispatches, "node:11210")


REFUSAL = ReportRefusal(Token(1), REQUEST, RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT, "RequestCanceledException", None)


@pytest.fixture(autouse=True)
def _all_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="triclinium")


def test_a_retry_is_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """Operation, document, delay, reason, node and attempts stand in one line."""
    Log().retry(retry())

    assert [
        (
            "triclinium.retry",
            logging.DEBUG,
            "upsert of 'ada' is sent again in 0.004 s (KV_LOCKED, node node:11210, retries so far: 2)",
        )
    ] == caplog.record_tuples


def test_a_retry_that_comes_too_late_is_told_as_such(caplog: pytest.LogCaptureFixture) -> None:
    """A delay that was cut to the deadline ends without sending anything."""
    Log().retry(retry(dispatches=False))

    assert ["upsert of 'ada' fails unsent in 0.004 s (KV_LOCKED, node node:11210, retries so far: 2)"] == (
        caplog.messages
    )


def test_a_refusal_is_told_at_info(caplog: pytest.LogCaptureFixture) -> None:
    """The same, with what the caller gets and how old the operation was."""
    Log().refusal(REFUSAL)

    assert [
        (
            "triclinium.retry",
            logging.INFO,
            (
                "upsert of 'ada' is not retried and fails with RequestCanceledException "
                "(SOCKET_CLOSED_WHILE_IN_FLIGHT, node None, retries so far: 2, 0.250 s old)"
            ),
        )
    ] == caplog.record_tuples


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what a record says besides what every record says."""
    plain = vars(logging.makeLogRecord({}))
    return {name: value for name, value in vars(record).items() if name not in plain and name != "message"}


def test_what_is_told_of_a_retry_is_there_as_data(caplog: pytest.LogCaptureFixture) -> None:
    """A handler need not take the sentence apart."""
    Log().retry(retry())

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


def test_what_is_told_of_a_refusal_is_there_as_data(caplog: pytest.LogCaptureFixture) -> None:
    """With the name of the exception, and without a delay."""
    Log().refusal(REFUSAL)

    assert {
        "operation": "upsert",
        "key": "ada",
        "reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        "node": None,
        "retry_attempts": 2,
        "age": 0.25,
        "error": "RequestCanceledException",
    } == fields_of(caplog.records[0])


@pytest.mark.parametrize(("key", "expected"), [("ada", "<ud>ada</ud>"), (None, None)])
def test_document_ids_are_marked_in_the_data_too(
    caplog: pytest.LogCaptureFixture, key: str | None, expected: str | None
) -> None:
    """What a handler writes down is what Couchbase's tools look through."""
    Log(redact=True).retry(retry(key))

    assert expected == fields_of(caplog.records[0])["key"]


@pytest.mark.parametrize("level", ReportLevel)
def test_connections_are_told_as_loudly_as_the_machine_wants(
    caplog: pytest.LogCaptureFixture, level: ReportLevel
) -> None:
    """In the words of the machine, by a logger of their own."""
    Log().connection(ReportConnection(STREAM, "node:11210", "ready", level))

    name, number, text = caplog.record_tuples[0]
    assert ("triclinium.connection", "node:11210: ready") == (name, text)
    assert level.name == logging.getLevelName(number)


def test_document_ids_are_marked_where_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Couchbase's tools know how to remove what stands between the marks."""
    log = Log(redact=True)
    log.retry(retry())
    log.refusal(REFUSAL)

    assert all("upsert of <ud>ada</ud>" in message for message in caplog.messages)
    assert 2 == len(caplog.messages)


@pytest.mark.parametrize("redact", [False, True])
def test_a_document_id_cannot_forge_a_line(caplog: pytest.LogCaptureFixture, redact: bool) -> None:
    """Line breaks and the like are escaped."""
    Log(redact=redact).retry(retry("ada\nERROR all is lost"))

    assert "\n" not in caplog.messages[0]
    assert "ada\\nERROR" in caplog.messages[0]


def test_an_operation_without_a_document_has_nothing_to_mark(caplog: pytest.LogCaptureFixture) -> None:
    """A NOOP is not about user data."""
    Log(redact=True).retry(retry(None))

    assert "upsert of None" in caplog.messages[0]
