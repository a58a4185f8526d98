"""Errors for responses of the cluster manager, by operation, compared with SDK-RFC 0054."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from tests.core.retry.couchbase.tables.service_cases import error_class
from tests.rows import rows
from triclinium_core.retry.couchbase import MANAGEMENT_OPERATIONS, SEARCH_INDEX_OPERATIONS, Service
from triclinium_core.retry.couchbase.tables.management_errors import MANAGEMENT_ERRORS
from triclinium_core.retry.couchbase.tables.service_answers import read_answer
from triclinium_core.retry.couchbase.tables.service_errors import error_row
from triclinium_core.services import management
from triclinium_core.services.service_request import ServiceRequest

NO_COLLECTION = '{"errors":{"_":"Collection with name \\"c\\" in scope \\"s\\" is not found."}}'
NO_SCOPE = '{"errors":{"_":"Scope with name \\"s\\" is not found."}}'
NO_BUCKET = "Requested resource not found.\r\n"
OLDER = '"Not allowed on this version of cluster"'

EXPECTED: list[tuple[str, int, str, str]] = [
    ("create_bucket", 400, '{"errors":{"name":"Bucket with given name already exists"}}', "BucketExists"),
    ("create_bucket", 400, '{"errors":{"ramQuota":"RAM quota cannot be less than 100 MiB"}}', "InvalidArgument"),
    ("update_bucket", 400, '{"errors":{"name":"Bucket with given name already exists"}}', "InvalidArgument"),
    *((name, 404, NO_BUCKET, "BucketNotFound") for name in ("update_bucket", "drop_bucket", "get_bucket", "flush_bucket")),
    ("flush_bucket", 400, '{"_":"Flush is disabled for the bucket"}', "BucketNotFlushable"),
    ("flush_bucket", 400, "", "InvalidArgument"),
    ("create_scope", 400, '{"errors":{"_":"Scope with name \\"s\\" already exists"}}', "ScopeExists"),
    ("create_scope", 404, NO_BUCKET, "BucketNotFound"),
    ("create_scope", 400, OLDER, "FeatureNotAvailable"),
    ("create_collection", 400, '{"errors":{"_":"Collection with name \\"c\\" in scope \\"s\\" already exists"}}', "CollectionExists"),
    ("create_collection", 404, NO_SCOPE, "ScopeNotFound"),
    ("create_collection", 404, NO_BUCKET, "BucketNotFound"),
    ("create_collection", 429, 'Maximum number of collections has been reached for scope "s"', "QuotaLimited"),
    ("drop_collection", 404, NO_COLLECTION, "CollectionNotFound"),
    ("drop_collection", 404, NO_SCOPE, "ScopeNotFound"),
    ("update_collection", 404, NO_COLLECTION, "CollectionNotFound"),
    ("drop_scope", 404, NO_SCOPE, "ScopeNotFound"),
    ("get_all_scopes", 404, NO_BUCKET, "BucketNotFound"),
    ("get_user", 404, '"Unknown user."', "UserNotFound"),
    ("drop_user", 404, '"User was not found."', "UserNotFound"),
    ("upsert_user", 400, '{"errors":{"roles":"Cannot assign roles"}}', "InvalidArgument"),
    ("get_group", 404, '"Unknown group."', "GroupNotFound"),
    ("drop_group", 404, '"Group was not found."', "GroupNotFound"),
    ("change_password", 400, OLDER, "FeatureNotAvailable"),
    ("change_password", 400, '{"errors":{"password":"too short"}}', "InvalidArgument"),
    *((name, 404, body, "FeatureNotAvailable") for name in ("get_group", "get_all_scopes") for body in ('"Not Found"', "Not found.")),
    ("get_user", 404, "<html>404</html>", "Couchbase"),
    ("get_bucket", 429, "Limit(s) exceeded [num_concurrent_requests,egress]", "RateLimited"),
    ("get_all_users", 404, "", "Couchbase"),
    ("", 404, "", "Couchbase"),
    ("", 409, "", "Couchbase"),
]  # fmt: skip


@rows(("operation", "http_status", "body", "name"), EXPECTED)
def test_errors(operation: str, http_status: int, body: str, name: str) -> None:
    """For each listed text of the cluster manager, the operation fails with the exception of the RFC."""
    assert error_class(name) is error_row(read_answer(Service.MANAGEMENT, http_status, body, operation)).error


def test_rows_name_existing_operations() -> None:
    """Every operation that a row names exists, and ``MANAGEMENT_OPERATIONS`` has no operation twice."""
    named = {operation for row in MANAGEMENT_ERRORS for operation in row.operations}

    assert set() == named - set(MANAGEMENT_OPERATIONS)
    assert len(MANAGEMENT_OPERATIONS) == len(set(MANAGEMENT_OPERATIONS))


def requests_of(base: type[ServiceRequest]) -> Iterator[type[ServiceRequest]]:
    """Yield all request classes of management that have a name."""
    for kind in base.__subclasses__():
        yield from requests_of(kind)
        if kind.name and kind.__module__.startswith(management.__name__):
            yield kind


def test_requests_have_the_names_of_the_rows() -> None:
    """The tables have exactly the names of the management requests as operations."""
    for module in pkgutil.iter_modules(management.__path__):
        importlib.import_module(f"{management.__name__}.{module.name}")
    names = {
        service: {kind.name for kind in requests_of(ServiceRequest) if kind.service is service} for service in Service
    }

    assert set(MANAGEMENT_OPERATIONS) == names[Service.MANAGEMENT]
    assert set(SEARCH_INDEX_OPERATIONS) == names[Service.SEARCH]
