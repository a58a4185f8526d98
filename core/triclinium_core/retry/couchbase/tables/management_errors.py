"""Table of the errors of the cluster manager, by operation, HTTP status and text.

Source: SDK-RFC 0054, exceptions of each method; SDK-RFC 0058, 3, 21, 22 and 601 to 607. If the RFCs name an exception
but not the server's text, the row has the text that ns_server sends and that other Couchbase clients search for
(decision D37).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triclinium_core import errors
from triclinium_core.retry.couchbase.tables.error_rows import ErrorRow, error_table

MANAGEMENT_OPERATIONS: tuple[str, ...] = (
    *("create_bucket", "update_bucket", "drop_bucket", "get_bucket", "get_all_buckets", "flush_bucket"),
    *("create_scope", "drop_scope", "create_collection", "update_collection", "drop_collection", "get_all_scopes"),
    *("upsert_user", "get_user", "get_all_users", "drop_user", "change_password", "get_roles"),
    *("upsert_group", "get_group", "get_all_groups", "drop_group"),
)
"""Names of the requests to the cluster manager, as in the table and in errors."""

_OF_A_BUCKET = ("update_bucket", "drop_bucket", "get_bucket", "flush_bucket")
_OF_A_SCOPE = ("create_collection", "update_collection", "drop_collection", "drop_scope")
_OF_A_COLLECTION = ("update_collection", "drop_collection")
_OF_COLLECTIONS = ("create_scope", "get_all_scopes", *_OF_A_SCOPE)

_LIMIT = "Limit(s) exceeded"
_COLLECTIONS_MAX = "Maximum number of collections has been reached for scope"
_OLDER = "Not allowed on this version of cluster"


def _collections() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(error=errors.ScopeExistsException, operations=("create_scope",), http_status=400, words=("Scope with name ", " already exists"),
              clause="RFC 0058, 602 ScopeExists; decision D37")
    yield row(error=errors.CollectionExistsException, operations=("create_collection",), http_status=400, words=("Collection with name ", " already exists"),
              clause="RFC 0054 CreateCollection: CollectionAlreadyExistsException; decision D37")
    yield row(error=errors.CollectionNotFoundException, operations=_OF_A_COLLECTION, http_status=404, words=("Collection with name ", " is not found"),
              clause="RFC 0054 UpdateCollection, DropCollection: CollectionNotFoundException; decision D37")
    yield row(error=errors.ScopeNotFoundException, operations=_OF_A_SCOPE, http_status=404, words=("Scope with name ", " is not found"),
              clause="RFC 0054 CreateCollection, UpdateCollection, DropScope: ScopeNotFoundException; decision D37")
    yield row(error=errors.FeatureNotAvailableException, operations=_OF_COLLECTIONS, http_status=400, words=(_OLDER,),
              clause="RFC 0058, 15 FeatureNotAvailable; decision D37")
    yield row(error=errors.FeatureNotAvailableException, operations=_OF_COLLECTIONS, http_status=400, words=("Not allowed on this type of bucket",),
              clause="RFC 0058, 15 FeatureNotAvailable; decision D37")
    yield row(error=errors.BucketNotFoundException, operations=_OF_COLLECTIONS, http_status=404,
              clause="RFC 0058, 10 BucketNotFound; decision D37")
    # fmt: on


def _buckets() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(error=errors.BucketExistsException, operations=("create_bucket",), http_status=400, words=("Bucket with given name already exists",),
              clause="RFC 0054 CreateBucket: HTTP 400 and content contains `Bucket with given name already exists`")
    yield row(error=errors.BucketNotFlushableException, operations=("flush_bucket",), http_status=400, words=("Flush is disabled",),
              clause="RFC 0054 FlushBucket: BucketNotFlushableException; decision D37")
    yield row(error=errors.BucketNotFoundException, operations=_OF_A_BUCKET, http_status=404,
              clause="RFC 0054 UpdateBucket, DropBucket, GetBucket, FlushBucket: BucketNotFoundException")
    # fmt: on


def _users() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(error=errors.UserNotFoundException, operations=("get_user", "drop_user"), http_status=404,
              clause="RFC 0054 GetUser, DropUser: UserNotFoundException")
    yield row(error=errors.GroupNotFoundException, operations=("get_group", "drop_group"), http_status=404,
              clause="RFC 0054 GetGroup, DropGroup: GroupNotFoundException")
    yield row(error=errors.FeatureNotAvailableException, operations=("change_password",), http_status=400, words=(_OLDER,),
              clause="RFC 0058, 15 FeatureNotAvailable; decision D37")
    # fmt: on


def _all() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(error=errors.AuthenticationFailureException, http_status=401,
              clause="RFC 0058, 6 AuthenticationFailure; decision D37")
    yield row(error=errors.AuthenticationFailureException, http_status=403,
              clause="RFC 0058, 6 AuthenticationFailure; decision D37")
    yield row(error=errors.RateLimitedException, http_status=429, words=(_LIMIT,),
              clause='RFC 0058, 21 RateLimited, Cluster Manager: HTTP 429, Body contains "Limit(s) exceeded"')
    yield row(error=errors.QuotaLimitedException, http_status=429, words=(_COLLECTIONS_MAX,),
              clause=f'RFC 0058, 22 QuotaLimited, Cluster Manager: HTTP 429, Body contains "{_COLLECTIONS_MAX}"')
    yield row(error=errors.RateLimitedException, http_status=429, clause="RFC 6585, 4: Too Many Requests; decision D37")
    yield row(error=errors.FeatureNotAvailableException, http_status=404, body="Not Found",
              clause='RFC 0054 Feature Not Found: 404 containing the body "Not Found"')
    yield row(error=errors.FeatureNotAvailableException, http_status=404, body="Not found",
              clause='RFC 0054 Feature Not Found: 404 containing the body "Not Found"')
    yield from _buckets()
    yield from _collections()
    yield from _users()
    yield row(error=errors.InvalidArgumentException, http_status=400,
              clause="RFC 0058, 3 InvalidArgument, Management: HTTP status 400, if no more specific error type applies")
    yield row(error=errors.InternalServerFailureException, http_status=500,
              clause="RFC 9110, 15.6.1: Internal Server Error; decision D37")
    yield row(error=errors.TemporaryFailureException, http_status=503,
              clause="RFC 9110, 15.6.4: Service Unavailable; decision D37")
    # fmt: on


MANAGEMENT_ERRORS: Sequence[ErrorRow] = error_table(_all())
"""Errors of the cluster manager. The first row that fits a response decides."""
