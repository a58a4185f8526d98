"""Rows in the error tables of HTTP services, and the search for the row of a response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer
from triclinium_core.retry.tables import table_of

NO_CODE = range(0)
"""``codes`` of a row for responses whose errors have no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """Error of a response that satisfies all conditions of the row.

    Args:
        codes: the code of the first error is one of these; None for any code or none.
        cause: code of the error that the first error gives as its reason.
        words: texts that occur in this order in the message of the first error if it has a code, otherwise in the body.
        body: the whole text, except for blanks and quotes around it and a full stop at its end.
        status: the ``status`` of a statement's body, in lower case.
        names_collection: whether the keyspace of the error must be a collection.
        operations: the request is one of these, and the response has a format of the service; empty for any request and
            any format.
    """

    error: ErrorClass
    clause: str
    codes: range | None = None
    cause: int | None = None
    http_status: int | None = None
    words: tuple[str, ...] = ()
    body: str = ""
    status: str = ""
    names_collection: bool = False
    operations: tuple[str, ...] = ()

    def fits(self, answer: ServiceAnswer) -> bool:
        """Return whether the response satisfies all conditions of the row."""
        if self.http_status is not None and answer.http_status != self.http_status:
            return False
        if self.operations and (answer.is_foreign or answer.operation not in self.operations):
            return False
        if self.codes is not None and (answer.code is None if self.codes else answer.code is not None):
            return False
        if self.codes and answer.code not in self.codes:
            return False
        if self.cause is not None and answer.cause != self.cause:
            return False
        if self.status and answer.failed_status != self.status:
            return False
        if self.names_collection and not answer.names_collection:
            return False
        text = answer.raw if answer.code is None else answer.message
        if self.body and text.strip().strip('"').removesuffix(".") != self.body:
            return False
        return not self.words or _stand_in_order(self.words, text)


def code(number: int) -> range:
    """Return the range that contains one code."""
    return range(number, number + 1)


def error_table(rows: Iterable[ErrorRow]) -> Sequence[ErrorRow]:
    """Return the rows in their order: the first row that fits decides.

    Raises:
        ValueError: two rows have the same conditions for the same operation.
    """
    listed = tuple(rows)
    table_of(pair for row in listed for pair in _keys(row))
    return listed


def first_fitting(table: Iterable[ErrorRow], answer: ServiceAnswer) -> ErrorRow | None:
    """Return the row that decides about a response; None if the RFCs name only the base class."""
    return next((row for row in table if row.fits(answer)), None)


def _keys(row: ErrorRow) -> Iterator[tuple[object, ErrorRow]]:
    for operation in row.operations or ("",):
        names = (row.codes, row.cause, row.http_status, row.words, row.body, row.status, row.names_collection)
        yield (operation, *names), row


def _stand_in_order(words: Sequence[str], text: str) -> bool:
    # A regular expression would do the same, but in quadratic time in the size of the server's text.
    place = 0
    for word in words:
        place = text.find(word, place)
        if place < 0:
            return False
        place += len(word)
    return True
