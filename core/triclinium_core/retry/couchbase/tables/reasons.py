"""Table of retry reasons, with one row for each line of the RFC's table.

Source: SDK-RFC 0049 rev 16 "RetryReason". The RFC leaves the flags of the five terminal reasons open ("todo"); decision
C5 chooses them.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Self


@unique
class RetryReason(StrEnum):
    """Reason for a retry, with the two flags that the orchestrator and the strategies use.

    Each row has the name, the two flags and the meaning. The members are strings, so that an error context can contain
    their names without importing this module.
    """

    allows_non_idempotent_retry: bool
    """Whether the request has certainly changed nothing on the server, so that even a write may be sent again."""
    always_retry: bool
    """Whether the request is retried until its deadline, whatever its strategy is, with the controlled backoff."""
    meaning: str
    """Description of the failure, as part of a sentence."""

    def __new__(cls, name: str, allows_non_idempotent_retry: bool, always_retry: bool, meaning: str) -> Self:
        """Create the row of a member. Enum calls this method."""
        row = str.__new__(cls, name)
        row._value_ = name
        row.allows_non_idempotent_retry = allows_non_idempotent_retry
        row.always_retry = always_retry
        row.meaning = meaning
        return row

    # fmt: off
    UNKNOWN = "UNKNOWN", False, False, "something unexpected happened"
    SOCKET_NOT_AVAILABLE = "SOCKET_NOT_AVAILABLE", True, False, "there was no socket to write to"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE", True, False, "no node runs the service"
    NODE_NOT_AVAILABLE = "NODE_NOT_AVAILABLE", True, False, "the node could not be reached"
    KV_NOT_MY_VBUCKET = "KV_NOT_MY_VBUCKET", True, True, "the node does not hold the document's vbucket"
    KV_COLLECTION_OUTDATED = "KV_COLLECTION_OUTDATED", True, True, "the node does not know the collection id"
    KV_ERROR_MAP_RETRY_INDICATED = "KV_ERROR_MAP_RETRY_INDICATED", True, False, "the node's error map permits a retry of this unknown status"
    KV_LOCKED = "KV_LOCKED", True, False, "the document is locked"
    KV_TEMPORARY_FAILURE = "KV_TEMPORARY_FAILURE", True, False, "the node is temporarily unable to serve the request"
    KV_SYNC_WRITE_IN_PROGRESS = "KV_SYNC_WRITE_IN_PROGRESS", True, False, "another durable write on the document is pending"
    KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS = "KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS", True, False, "the document is being re-committed"
    SERVICE_RESPONSE_CODE_INDICATED = "SERVICE_RESPONSE_CODE_INDICATED", True, False, "the service's response code permits a retry"
    SOCKET_CLOSED_WHILE_IN_FLIGHT = "SOCKET_CLOSED_WHILE_IN_FLIGHT", False, False, "the socket was closed before the response arrived"
    CIRCUIT_BREAKER_OPEN = "CIRCUIT_BREAKER_OPEN", True, False, "the circuit breaker of the connection is open"
    QUERY_PREPARED_STATEMENT_FAILURE = "QUERY_PREPARED_STATEMENT_FAILURE", True, False, "the prepared statement is stale"
    QUERY_INDEX_NOT_FOUND = "QUERY_INDEX_NOT_FOUND", True, False, "the query index moved while the plan was in use"
    ANALYTICS_TEMPORARY_FAILURE = "ANALYTICS_TEMPORARY_FAILURE", True, False, "the analytics service is temporarily unavailable"
    SEARCH_TOO_MANY_REQUESTS = "SEARCH_TOO_MANY_REQUESTS", True, False, "the search service has too many requests"
    VIEWS_TEMPORARY_FAILURE = "VIEWS_TEMPORARY_FAILURE", True, False, "the view engine is temporarily unavailable"
    VIEWS_NO_ACTIVE_PARTITION = "VIEWS_NO_ACTIVE_PARTITION", True, True, "the node has no active partition of the view"
    AUTHENTICATION_ERROR = "AUTHENTICATION_ERROR", True, False, "authentication failed"
    TLS_ERROR = "TLS_ERROR", True, False, "TLS could not be established"
    BUCKET_ACCESS_ERROR = "BUCKET_ACCESS_ERROR", True, False, "the bucket does not exist or is not open to this user"
    SCOPE_NOT_FOUND = "SCOPE_NOT_FOUND", True, False, "the bucket has no such scope"
    COLLECTION_NOT_FOUND = "COLLECTION_NOT_FOUND", True, False, "the scope has no such collection"
    # fmt: on
