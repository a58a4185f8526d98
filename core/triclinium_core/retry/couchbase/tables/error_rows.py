"""Rows of the tables with the errors of HTTP services, and the function that finds the row for a response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triclinium_core.retry.couchbase.tables.kv_status import ErrorClass
from triclinium_core.retry.couchbase.tables.service_answers import ServiceAnswer
from triclinium_core.retry.tables import table_of

NO_CODE = range(0)
"""Value of ``ErrorRow.codes`` for responses whose errors have no code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """Row of a table: exception class for a response that satisfies all conditions, and the clause that requires it.

    Args:
        codes: codes that the first error may have; None if it may have any code or no code.
        cause: code that the first error must give as its reason; None for no condition.
        http_status: HTTP status that the response must have; None for no condition.
        words: texts that must occur, in this order, in the message of the first error if it has a code, and otherwise
            in the body.
        body: text that must be equal to that message or body, without the blanks and quotes around it and the full
            stop at its end; empty for no condition.
        status: value that ``status`` must have in the body of a statement's response, in lower case; empty for no
            condition.
        names_collection: whether the keyspace in the error must be a collection.
        operations: requests to which the row applies, if the response has a format of the service; empty for all
            requests and all formats.
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
    """Return the range that contains only the code ``number``."""
    return range(number, number + 1)


def error_table(rows: Iterable[ErrorRow]) -> Sequence[ErrorRow]:
    """Return the rows as a table, in their order, because the first row that fits a response decides.

    Raises:
        ValueError: two rows have the same conditions for the same operation.
    """
    listed = tuple(rows)
    table_of(pair for row in listed for pair in _keys(row))
    return listed


def first_fitting(table: Iterable[ErrorRow], answer: ServiceAnswer) -> ErrorRow | None:
    """Return the first row that fits ``answer``, or None if no row fits it."""
    return next((row for row in table if row.fits(answer)), None)


def _keys(row: ErrorRow) -> Iterator[tuple[object, ErrorRow]]:
    for operation in row.operations or ("",):
        names = (row.codes, row.cause, row.http_status, row.words, row.body, row.status, row.names_collection)
        yield (operation, *names), row


def _stand_in_order(words: Sequence[str], text: str) -> bool:
    # A regular expression would need quadratic time in the size of the server's text.
    place = 0
    for word in words:
        place = text.find(word, place)
        if place < 0:
            return False
        place += len(word)
    return True
