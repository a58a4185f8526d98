"""Laws of requests to services, with mistakes that break them and a lawful history."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.contract.neutral import Token
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, RetryRequest, Service
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.fakes.services.request_log import LoggedRequest
from triclinium_core.testing.oracle.request_book import HELD_SIZE_MAX, RequestBook
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.request_templates import DrawnRequest
from triclinium_core.testing.simulation import MIDPOINT

READ, CHANGE = Token(1), Token(2)
STREAM = 7
ROWS = (b"1", b"2")
LONG_AGO = (-1.0, 0)


def drawn(number: int, *, readonly: bool) -> DrawnRequest:
    """Return a query with two rows."""
    mark = f"request-{number:05d}"
    query = QueryRequest(statement=f"SELECT {mark}", readonly=readonly, client_context_id=mark)
    return DrawnRequest(query, (b"POST", mark.encode()), ROWS)


@pytest.fixture
def book() -> RequestBook:
    """Return a book with a query that may be repeated and a query that must not be repeated."""
    book = RequestBook(1.0)
    for token in (READ, CHANGE):
        book.submitted(token, drawn(token, readonly=token == READ), (0.0, token), is_patient=True, is_ill=False)
    return book


def data_of(token: Token) -> bytes:
    """Return the bytes that a client sends for a request."""
    return b'POST /query/service\r\n\r\n{"statement":"SELECT request-%05d"}' % token


def send(book: RequestBook, token: Token) -> None:
    """Record that the client sends a request."""
    book.ordered(STREAM, data_of(token))
    book.left(STREAM, 1 << 20)


def apply(book: RequestBook, token: Token) -> None:
    """Record that a node executes a request."""
    book.logged(
        LoggedRequest(
            connection=STREAM,
            service=Service.QUERY,
            method="POST",
            target="/query/service",
            statement=None,
            body=data_of(token),
            now=0.0,
            fault=None,
            status=200,
            applied=True,
        )
    )


def retry(book: RequestBook, token: Token, reason: RetryReason) -> None:
    """Record that the client reports a retry."""
    request = RetryRequest(service=Service.QUERY, operation="query", idempotent=False, rng=MIDPOINT, remaining=1.0)
    book.retried(token, ReportRetry(token, request, reason, 0.1, True, None))


def fail(book: RequestBook, token: Token, reason: RetryReason | None = None) -> None:
    """Record that a request fails. With a ``reason``, the retry for this reason was refused."""
    context = ErrorContext(retry_attempts=0, refused_reason=reason and str(reason))
    book.failed(token, errors.InternalServerFailureException("query: refused", context), LONG_AGO)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([lambda b: send(b, CHANGE), lambda b: send(b, CHANGE)], "was sent 2 times"),
        ([lambda b: apply(b, CHANGE), lambda b: apply(b, CHANGE)], "was applied 2 times"),
        ([lambda b: retry(b, CHANGE, RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT)], "may have been applied"),
        ([lambda b: apply(b, CHANGE), lambda b: b.abandoned(CHANGE, ambiguous=False)], "was applied, "),
        ([lambda b: b.abandoned(READ, ambiguous=False), lambda b: send(b, READ)], " is sent "),
        ([lambda b: b.abandoned(READ, ambiguous=False), lambda b: b.completed(READ)], "its caller "),
        ([lambda b: b.handed_out(READ, ROWS), lambda b: b.handed_out(READ, ROWS)], "hands out rows, 2 in all"),
        ([lambda b: b.handed_out(READ, ())], "hands out rows, 0 in all"),
        ([lambda b: b.handed_out(READ, ROWS[::-1])], "handed out rows"),
        (
            [lambda b: b.handed_out(READ, ROWS), lambda b: retry(b, READ, RetryReason.QUERY_INDEX_NOT_FOUND)],
            "after rows were handed out",
        ),
        ([lambda b: apply(b, READ), lambda b: b.completed(READ)], "ended after 0 of 2 rows"),
        ([lambda b: b.handed_out(READ, ROWS), lambda b: b.wanted(READ), lambda b: b.completed(READ)], "no node has "),
        ([lambda b: fail(b, READ)], " failed "),
        ([lambda b: fail(b, READ, RetryReason.VIEWS_NO_ACTIVE_PARTITION)], "which is always retried"),
        ([lambda b: retry(b, READ, RetryReason.UNKNOWN), lambda b: fail(b, READ)], "reports retry_attempts=0"),
        ([lambda b: send(b, READ), lambda b: b.check_pauses([STREAM])], "no reader is behind"),
        (
            [
                lambda b: send(b, READ),
                lambda b: b.handed_out(READ, ROWS),
                lambda b: b.delivered(STREAM, HELD_SIZE_MAX + 10, is_paused=False),
            ],
            "holds [0-9]+ bytes",
        ),
    ],
)
def test_mistake_breaks_a_law(book: RequestBook, steps: Sequence[Callable[[RequestBook], object]], words: str) -> None:
    """The last step of a client that makes a mistake raises Violation with the mistake's own message."""
    *before, last = steps
    for step in before:
        step(book)

    with pytest.raises(Violation, match=words):
        last(book)


def test_lawful_requests(book: RequestBook) -> None:
    """A refusal permits another attempt, and a problem after its submission excuses the failure of a request."""
    send(book, CHANGE)
    retry(book, CHANGE, RetryReason.QUERY_INDEX_NOT_FOUND)
    send(book, CHANGE)
    apply(book, CHANGE)
    book.handed_out(CHANGE, ROWS)
    book.check_pauses([STREAM])
    book.wanted(CHANGE)
    book.completed(CHANGE)
    assert [READ] == [asked.token for asked in book.open]

    error = errors.UnambiguousTimeoutException("query: not done", ErrorContext(retry_attempts=0))
    book.failed(READ, error, (1.0, 0))
    assert [] == book.open
