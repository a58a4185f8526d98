"""What a failure at one path surfaces as, and what is told of it."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase.failures import at_path, surfaced
from triclinium_core.retry.couchbase.tables.kv_status import KV_STATUSES
from triclinium_core.retry.couchbase.tables.path_failures import FailedPath

CONTEXT = ErrorContext(operation="mutate_in", key="ada", status=0xCC, status_name="FAILED", status_text="some path")


@rows("status", [status for status in KV_STATUSES if status >= 0xC0])
def test_statuses_of_paths(status: int) -> None:
    """Each surfaces as the exception that it has as a status of the whole."""
    expected = KV_STATUSES[status].error or errors.CouchbaseException

    assert expected is FailedPath(0, "a", status).error


@pytest.mark.parametrize(
    ("status", "error"),
    [(0x24, errors.XattrNoAccessException), (0x87, errors.CouchbaseException), (0x7FF0, errors.CouchbaseException)],
)
def test_other_statuses(status: int, error: type[errors.CouchbaseException]) -> None:
    """A right that is missing is one to a system attribute; what nobody knows is the base of all."""
    assert error is FailedPath(0, "a", status).error


def test_words() -> None:
    """Place, path and status in one line; the words for the whole say no more."""
    failed = FailedPath(2, "a.b", 0xC0)

    assert "specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0]" == str(failed)
    assert "specs[0], path '': an unknown status [0x7ff0]" == str(FailedPath(0, "", 0x7FF0))
    assert "mutate_in 'ada': specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0]" == str(at_path(CONTEXT, failed))
    assert (
        "mutate_in 'ada': the server answered FAILED [0xcc] (specs[2], path 'a.b': SUBDOC_PATH_NOT_FOUND [0xc0])"
        == str(surfaced(failed.error, CONTEXT, failed))
    )
    assert "mutate_in 'ada': the server answered FAILED [0xcc] (some path)" == str(
        surfaced(errors.CouchbaseException, CONTEXT)
    )


def test_context() -> None:
    """It has the three as fields."""
    context = at_path(CONTEXT, FailedPath(2, "a.b", 0xC0)).context

    assert (2, "a.b", 0xC0, "ada") == (context.path_index, context.path, context.path_status, context.key)
