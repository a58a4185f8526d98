"""Retry reasons, compared with the table of the RFC."""

from __future__ import annotations

import pickle

import pytest

from tests.core.retry.couchbase.doctored import import_with
from tests.rows import rows
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.retry.couchbase.tables import reasons

NO_YES = {"false": False, "true": True, "todo": None}

TABLE_OF_THE_RFC = """
| UNKNOWN                             | false                | false        |
| SOCKET_NOT_AVAILABLE                | true                 | false        |
| SERVICE_NOT_AVAILABLE               | true                 | false        |
| NODE_NOT_AVAILABLE                  | true                 | false        |
| KV_NOT_MY_VBUCKET                   | true                 | true         |
| KV_COLLECTION_OUTDATED              | true                 | true         |
| KV_ERROR_MAP_RETRY_INDICATED        | true                 | false        |
| KV_LOCKED                           | true                 | false        |
| KV_TEMPORARY_FAILURE                | true                 | false        |
| KV_SYNC_WRITE_IN_PROGRESS           | true                 | false        |
| KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS | true                 | false        |
| SERVICE_RESPONSE_CODE_INDICATED     | true                 | false        |
| SOCKET_CLOSED_WHILE_IN_FLIGHT       | false                | false        |
| CIRCUIT_BREAKER_OPEN                | true                 | false        |
| QUERY_PREPARED_STATEMENT_FAILURE    | true                 | false        |
| QUERY_INDEX_NOT_FOUND               | true                 | false        |
| ANALYTICS_TEMPORARY_FAILURE         | true                 | false        |
| SEARCH_TOO_MANY_REQUESTS            | true                 | false        |
| VIEWS_TEMPORARY_FAILURE             | true                 | false        |
| VIEWS_NO_ACTIVE_PARTITION           | true                 | true         |
| AUTHENTICATION_ERROR                | todo                 | todo         |
| TLS_ERROR                           | todo                 | todo         |
| BUCKET_ACCESS_ERROR                 | todo                 | todo         |
| SCOPE_NOT_FOUND                     | todo                 | todo         |
| COLLECTION_NOT_FOUND                | todo                 | todo         |
"""
"""The table of SDK-RFC 0049 rev 16 "RetryReason"."""

ROWS = [
    (name, NO_YES[non_idempotent], NO_YES[always])
    for name, non_idempotent, always in (
        [cell.strip() for cell in line.strip("|").split("|")] for line in TABLE_OF_THE_RFC.strip().splitlines()
    )
]

each_reason = rows("reason", RetryReason)


def test_the_rows_are_those_of_the_rfc() -> None:
    """The reasons are the RFC's 25, in its order."""
    assert 25 == len(ROWS)
    assert [name for name, _, _ in ROWS] == [reason.name for reason in RetryReason]


@rows(("name", "non_idempotent", "always"), ROWS)
def test_flags(name: str, non_idempotent: bool | None, always: bool | None) -> None:
    """Both flags equal the RFC's; a "todo" allows non-idempotent retries, as nothing was sent, but not always (C5)."""
    reason = RetryReason[name]

    assert (True if non_idempotent is None else non_idempotent) is reason.allows_non_idempotent_retry
    assert bool(always) is reason.always_retry


@each_reason
def test_pickles_as_itself(reason: RetryReason) -> None:
    """Pickling and unpickling a reason returns the original object."""
    assert reason is pickle.loads(pickle.dumps(reason))  # noqa: S301


def test_meanings_differ() -> None:
    """Each reason has its own meaning, as a phrase without a full stop."""
    meanings = {reason.meaning for reason in RetryReason}

    assert len(RetryReason) == len(meanings)
    assert [] == [meaning for meaning in meanings if not meaning or meaning.endswith(".")]


TLS_ROW = '    TLS_ERROR = "TLS_ERROR", True, False, "TLS could not be established"\n'


@rows(
    ("second", "error", "name"),
    [(TLS_ROW, TypeError, "TLS_ERROR"), (TLS_ROW.replace("TLS_ERROR =", "TLS_FAILURE ="), ValueError, "TLS_FAILURE")],
)
def test_a_duplicate_row_fails_at_import(second: str, error: type[Exception], name: str) -> None:
    """If a second row has the same name or value, the import fails."""
    with pytest.raises(error, match=name):
        import_with(reasons, TLS_ROW, TLS_ROW + second)
