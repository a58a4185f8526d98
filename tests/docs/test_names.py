"""Tables of names: every name of a source has a row, and every row names an object."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, code_of, object_at, rows_of
from tests.rows import rows

PAGE = DOCS / "reference" / "names.md"

SOURCES = {
    "SDK-RFC 0049": """
        Request idempotent retryStrategy retryAttempts retryReasons incrementRetryAttempts RequestContext context
        clientContext RetryStrategy retryAfter RetryAction duration withDuration noRetry BestEffortRetryStrategy
        calculateBackoff FailFast FastFailOnTerminalErrorRetryStrategy RetryReason allowsNonIdempotentRetry alwaysRetry
        UNKNOWN SOCKET_NOT_AVAILABLE SERVICE_NOT_AVAILABLE NODE_NOT_AVAILABLE KV_NOT_MY_VBUCKET KV_COLLECTION_OUTDATED
        KV_ERROR_MAP_RETRY_INDICATED KV_LOCKED KV_TEMPORARY_FAILURE KV_SYNC_WRITE_IN_PROGRESS
        KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS KV_SYNC_RE_COMMIT_IN_PROGRESS SERVICE_RESPONSE_CODE_INDICATED
        SOCKET_CLOSED_WHILE_IN_FLIGHT CIRCUIT_BREAKER_OPEN QUERY_PREPARED_STATEMENT_FAILURE QUERY_INDEX_NOT_FOUND
        ANALYTICS_TEMPORARY_FAILURE SEARCH_TOO_MANY_REQUESTS VIEWS_TEMPORARY_FAILURE VIEWS_NO_ACTIVE_PARTITION
        AUTHENTICATION_ERROR TLS_ERROR BUCKET_ACCESS_ERROR SCOPE_NOT_FOUND COLLECTION_NOT_FOUND RetryOrchestrator
        maybeRetry dispatchSdkSpecificRetry logRetryAttempt logNotRetried failRequest controlledBackoff
        potentiallyCapDuration CouchbaseException AuthenticationFailureException ScopeNotFoundException
        CollectionNotFoundException readonly GetCollectionID SyncWriteInProgress SyncWriteReCommitInProgress NO_ACCESS
        cappedDuration retry-now retry-later
    """,
    "SDK-RFC 0013": """
        version revision errors name desc attrs retry strategy constant linear exponential after interval ceil floor
        max-duration item-only invalid-input fetch-config conn-state-invalidated auth special-handling support temp
        internal retry-now retry-later subdoc dcp auto-retry CMD_GET_ERROR_MAP
    """,
    "The Cassandra Java driver": """
        RetryPolicy DefaultRetryPolicy ConsistencyDowngradingRetryPolicy CustomRetryPolicy RetryVerdict RetryDecision
        onUnavailableVerdict onReadTimeoutVerdict onReadTimeout onWriteTimeoutVerdict onRequestAbortedVerdict
        onErrorResponseVerdict dataPresent UnavailableException UNAVAILABLE ReadTimeoutException READ_TIMEOUT
        WriteTimeoutException WRITE_TIMEOUT DriverTimeoutException ClosedConnectionException HeartbeatException
        OverloadedException ServerError TruncateException ReadFailureException WriteFailureException
        QueryValidationException FunctionFailureException ProtocolError AllNodesFailedException SIMPLE BATCH
        UNLOGGED_BATCH BATCH_LOG QUORUM ONE LOCAL_QUORUM session.execute read_request_timeout_in_ms
        datastax-java-driver advanced.retry-policy advanced.retry-policy.class profiles request.timeout
        SpeculativeExecutionPolicy nextExecution NoSpeculativeExecutionPolicy ConstantSpeculativeExecutionPolicy
        advanced.speculative-execution-policy max-executions delay basic.request.timeout basic.request.consistency
        basic.request.serial-consistency basic.request.default-idempotence
    """,
    "The Smithy Python retry design": """
        RetryStrategy backoff_strategy max_attempts acquire_initial_retry_token token_scope
        refresh_retry_token_for_retry token_to_renew error record_success token RetryToken retry_count retry_delay
        RetryError ErrorRetryInfo is_retry_safe retry_after is_throttling_error Fault HasFault fault RetryBackoffStrategy
        BackoffStrategy compute_next_backoff_delay retry_attempt ExponentialRetryBackoffStrategy retry_strategy
    """,
}
"""Names of interfaces, members, exceptions and options, by the heading of their source."""

ROWS = [row for row in rows_of(PAGE) if row[0] != "called there"]

pytestmark = pytest.mark.native


def found(path: str) -> object:
    """Return the object of a dotted path, which may end with a parameter in brackets.

    Raises:
        ImportError: the module does not exist.
        LookupError: an object has no such attribute, or a callable no such parameter.
    """
    path, _, parameter = path.removesuffix(")").partition("(")
    value = object_at(path)
    if not parameter:
        return value
    assert callable(value)
    return inspect.signature(value).parameters[parameter]


def names_there(source: str) -> Iterator[str]:
    """Yield the names in the first column of the section of a source; a member also without its interface."""
    (section,) = re.findall(rf"^## {source}.*?(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in section.splitlines():
        for name in code_of(line.split("|")[1]) if line.startswith("| ") else []:
            plain = re.sub(r"\(.*\)", "", name)
            yield plain
            yield plain.rpartition(".")[2]


@rows("row", ROWS)
def test_a_row_names_objects_that_exist(row: list[str]) -> None:
    """Every path of the second column is an object of this library."""
    _, here, _ = row
    paths = code_of(here)
    for path in paths:
        found(path)

    assert paths
    assert {"triclinium", "triclinium_core"} >= {path.partition(".")[0] for path in paths}


@pytest.mark.parametrize("source", SOURCES)
def test_every_name_of_a_source_has_a_row(source: str) -> None:
    """Each name is in the first column of the table of its source."""
    assert set() == set(SOURCES[source].split()) - set(names_there(source))


@rows(
    "path",
    ["triclinium.no_name", "triclinium.RetryAction.no_name", "triclinium.retry(no_name)", "triclinium.errors.No"],
)
def test_a_nonexistent_path_raises(path: str) -> None:
    """A path with a name that does not exist raises."""
    with pytest.raises((ImportError, LookupError)):
        found(path)
