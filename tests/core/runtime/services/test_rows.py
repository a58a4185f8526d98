"""Rows of a response, which the client hands out when their reader wants them; an error follows the rows before it."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import upsert
from tests.core.runtime.services.asking import NO_INDEX, ROWS, STATEMENT, Asking, asking
from tests.core.runtime.services.request_cases import BASIC, refusals
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.services.answer.incoming_answer import HELD_SIZE_BYTES, HELD_SIZE_BYTES_MAX
from triclinium_core.services.query.result import QueryMetaData
from triclinium_core.testing.fakes.faults import drop_response
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer

LARGE_ROW = "x" * 1000


class ReadingOn(Asking):
    """Simulation whose driver ignores requests to pause reading."""

    def _carry_out(self, action: couchbase.Action) -> None:
        if not isinstance(action, neutral.PauseReading):
            super()._carry_out(action)


def test_rows_and_then_the_metadata() -> None:
    """A request hands out each row once and in order, and ends with the metadata."""
    simulation = Asking()

    token = simulation.finish(asking())

    assert ROWS == simulation.rows[token]
    assert isinstance(simulation.answers[token], QueryMetaData)
    assert 0 == simulation.open_operations


def test_handed_out_rows_prevent_a_retry() -> None:
    """If the connection is lost after a row was handed out, even a read-only request fails without a retry."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=1.0))
    token = simulation.request(asking(readonly=True))
    simulation.run(0.5)
    assert 1 == len(simulation.rows[token])
    (stream,) = (each.connection for each in simulation.asked)

    simulation.lose(neutral.StreamId(stream))
    simulation.run()

    error, (report,) = simulation.errors[token], refusals(simulation)

    assert isinstance(error, errors.RequestCanceledException)
    assert RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT == report.reason == error.context.refused_reason
    assert (token, "RequestCanceledException") == (report.token, report.error)
    assert 1 == len(simulation.asked)


def test_an_error_after_rows_is_raised_after_them() -> None:
    """If an error follows rows, they are handed out first; the request then fails, even if the error is retryable."""
    simulation = Asking()
    failing = FakeAnswer(rows=[{"n": 1}], errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    simulation.nodes.script.answer(STATEMENT, failing)

    token = simulation.finish(asking(readonly=True))

    error, (report,) = simulation.errors[token], refusals(simulation)

    assert [b'{"n":1}'] == simulation.rows[token]
    assert isinstance(error, errors.CouchbaseException)
    assert RetryReason.QUERY_INDEX_NOT_FOUND == report.reason == error.context.refused_reason
    assert 1 == len(simulation.asked)


def test_reading_pauses_while_rows_are_not_taken() -> None:
    """The client pauses reading once it holds 256 KiB of rows, and resumes when the reader has taken them."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=2000))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.flow()
    (stream,) = (neutral.StreamId(each.connection) for each in simulation.asked)
    taken, unread = len(simulation.rows[token]), len(simulation.links[stream].incoming)

    simulation.takes_rows = True
    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert taken < HELD_SIZE_BYTES // len(LARGE_ROW)
    assert unread > 2000 * len(LARGE_ROW) - 2 * HELD_SIZE_BYTES
    assert 1 == simulation.count(neutral.PauseReading) == simulation.count(neutral.ResumeReading)
    assert [f'"{LARGE_ROW}"'.encode()] * 2000 == simulation.rows[token]
    assert 0 == simulation.open_operations


def test_a_reader_takes_its_time() -> None:
    """If a reader takes longer than the timeout between rows, the query does not time out."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=2000))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(100.0)

    simulation.takes_rows = True
    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert 2000 == len(simulation.rows[token])


@pytest.mark.parametrize(
    ("readonly", "kind"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)]
)
def test_a_service_that_falls_silent_between_rows(readonly: bool, kind: type[errors.CouchbaseException]) -> None:
    """If a service sends no more rows, the query times out; the rows that have arrived are kept."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=60.0))

    token = simulation.request(asking(readonly=readonly))
    simulation.run(10.0)

    assert ROWS[:1] == simulation.rows[token]
    assert type(simulation.errors[token]) is kind


def test_silence_between_rows_is_no_earlier_failure() -> None:
    """If a query was retried and later stalls between rows, the error of its timeout omits the reason of the retry."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    stalling = FakeAnswer(rows=[{"n": 1}, {"n": 2}], seconds_between_rows=60.0)
    simulation.nodes.script.answer(STATEMENT, NO_INDEX, stalling)

    token = simulation.request(asking(readonly=True))
    simulation.run(10.0)

    error = simulation.errors[token]
    assert isinstance(error, errors.UnambiguousTimeoutException)
    assert 1 == error.context.retry_attempts
    assert RetryReason.QUERY_INDEX_NOT_FOUND.meaning not in str(error)


def test_an_error_behind_rows_waits_for_their_reader() -> None:
    """If a request fails after rows that wait for their reader, it has no deadline; the error follows the rows."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    body = b'{"results":[' + b",".join([b'"%s"' % LARGE_ROW.encode()] * 200) + b",oops"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(head + body))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.live(10.0)

    assert {} == simulation.errors
    first = len(simulation.rows[token])

    for _ in range(2):
        simulation.feed(couchbase.RowsWanted(token))

    assert isinstance(simulation.errors[token], errors.DecodingFailureException)
    assert 0 < first < len(simulation.rows[token]) < 200


def test_tokens_of_operations_are_unknown_to_readers() -> None:
    """If a reader uses the token of an operation, nothing changes."""
    simulation = Asking()
    simulation.run()
    token = simulation.submit(upsert("k"))
    simulation.feed(couchbase.RowsWanted(token))
    simulation.flow()

    assert token in simulation.results


def test_a_driver_without_pauses_fails_the_request() -> None:
    """If the driver does not pause reading, a request fails once its held rows reach a limit."""
    simulation = ReadingOn()
    size = HELD_SIZE_BYTES_MAX * 2 // len(LARGE_ROW)
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[LARGE_ROW], repeat=size))
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run(5.0)
    simulation.takes_rows = True

    simulation.feed(couchbase.RowsWanted(token))
    simulation.run()

    assert isinstance(simulation.errors[token], errors.DecodingFailureException)
    assert HELD_SIZE_BYTES_MAX + HELD_SIZE_BYTES >= sum(map(len, simulation.rows[token])) >= HELD_SIZE_BYTES


def test_rows_that_hold_the_credentials() -> None:
    """If rows contain the credentials, they are handed out unchanged, because they are data."""
    simulation = Asking()
    simulation.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"n": BASIC}]))

    assert [f'{{"n":"{BASIC}"}}'.encode()] == simulation.rows[simulation.finish(asking())]


def test_an_error_with_many_rows() -> None:
    """If an error response has rows, the client drops them and reads to the end without a pause."""
    simulation = Asking()
    size = 2 * HELD_SIZE_BYTES // len(LARGE_ROW)
    syntax = FakeAnswer(http_status=400, rows=[LARGE_ROW], repeat=size, errors=[{"code": 3000, "msg": "syntax"}])
    simulation.nodes.script.answer(STATEMENT, syntax)

    simulation.failure(errors.ParsingFailureException, asking())

    assert not simulation.count(neutral.PauseReading)


def test_a_complete_response_has_no_obstacle() -> None:
    """If a response is complete and its rows are not taken, the context has no obstacle and no retry reason."""
    simulation = Asking()
    simulation.takes_rows = False
    token = simulation.request(asking())
    simulation.run()

    context = simulation.machine.error_context(token, simulation.now)
    assert context is not None
    assert (None, frozenset()) == (context.last_dispatch_error, context.retry_reasons)


def test_wanting_rows_again_and_again() -> None:
    """If a reader requests the same rows repeatedly, the deadline is not extended."""
    simulation = Asking(timeouts=TimeoutOptions(query=2.0))
    simulation.nodes[0].faults.next(Service.QUERY, drop_response())
    token = simulation.request(asking())

    for _ in range(5):
        simulation.live(0.5)
        simulation.feed(couchbase.RowsWanted(token))

    assert isinstance(simulation.errors[token], errors.AmbiguousTimeoutException)
