"""Tables of the errors of the HTTP services, by the code of the first error, HTTP status and text.

Source: SDK-RFC 0058 "Error Definitions" for the conditions of each exception; SDK-RFC 0049 for requests whose retry is
refused; decisions C22 and D37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from triclinium_core import errors
from triclinium_core.retry.couchbase.tables.error_rows import NO_CODE, ErrorRow, code, error_table, first_fitting
from triclinium_core.retry.couchbase.tables.management_errors import MANAGEMENT_ERRORS
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_answers import TIMED_OUT, ServiceAnswer

SEARCH_INDEX_OPERATIONS: tuple[str, ...] = (
    *("upsert_search_index", "get_search_index", "get_all_search_indexes", "drop_search_index"),
    *("get_indexed_documents_count", "analyze_document", "pause_ingest", "resume_ingest"),
    *("allow_querying", "disallow_querying", "freeze_plan", "unfreeze_plan"),
)
"""Names of the requests to the search service that concern indexes and are not searches."""

_INDEXES_MAX = "Limit for number of indexes that can be created per scope has been reached"


def _query() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(codes=code(1000), error=errors.InvalidArgumentException,
              clause="RFC 0058, 3 InvalidArgument: a statement that writes, sent as readonly; decision D37")
    for feature in ("query_context", "preserve_expiry", "use_replica"):
        yield row(codes=code(1065), words=(feature,), error=errors.FeatureNotAvailableException,
                  clause=f"RFC 0056 {feature}: an older server does not know the parameter; decision D37")
    yield row(codes=code(1065), error=errors.InvalidArgumentException,
              clause="RFC 0058, 3 InvalidArgument: a parameter that the service does not know; decision D37")
    yield row(codes=code(1080), error=errors.TimeoutException,
              clause="RFC 0058, 1 Timeout: the service stopped at the timeout in the request; decision D37")
    for limit in (1191, 1192, 1193, 1194):
        yield row(codes=code(limit), error=errors.RateLimitedException, clause=f"RFC 0058, 21 RateLimited, Query: Code {limit}")
    yield row(codes=code(2120), error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, Query: code 2120")
    yield row(codes=code(3000), error=errors.ParsingFailureException, clause="RFC 0058, 8 ParsingFailure, Query: code 3000")
    for prepared in (4040, 4050, 4060, 4070, 4080, 4090):
        yield row(codes=code(prepared), error=errors.PreparedStatementFailureException,
                  clause=f"RFC 0058, 203 PreparedStatementFailure, Query: code {prepared}")
    yield row(codes=code(4300), words=("index ", "already exist"), error=errors.IndexExistsException,
              clause="RFC 0058, 18 IndexExists, Query: Code 4300 AND message contains index .+ already exist")
    yield row(codes=range(4000, 5000), error=errors.PlanningFailureException,
              clause="RFC 0058, 201 PlanningFailure, Query: code range 4xxx")
    yield row(codes=code(5000), words=("queryport.indexNotFound",), error=errors.IndexNotFoundException,
              clause="RFC 0049 Response Code Retry List, Query: Error code 5000; decision C32")
    yield row(codes=code(5000), words=("index ", " not found"), error=errors.IndexNotFoundException,
              clause="RFC 0058, 17 IndexNotFound, Query: Codes 5000 AND message contains index .+ not found")
    yield row(codes=code(5000), words=("Index ", "already exist"), error=errors.IndexExistsException,
              clause="RFC 0058, 18 IndexExists, Query: Code 5000 AND message contains Index .+ already exist")
    yield row(codes=code(5000), words=(_INDEXES_MAX,), error=errors.QuotaLimitedException,
              clause=f'RFC 0058, 22 QuotaLimited, Query: Code 5000, Body contains "{_INDEXES_MAX}"')
    yield row(codes=range(5000, 6000), error=errors.InternalServerFailureException,
              clause="RFC 0058, 5 InternalServerFailure, Query: Error range 5xxx")
    yield row(codes=range(10000, 11000), error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, Query: Error range 10xxx")
    yield row(codes=code(12003), names_collection=True, error=errors.CollectionNotFoundException,
              clause="RFC 0058, 11 CollectionNotFound, by the keyspace of the error; decision D74")
    yield row(codes=code(12003), error=errors.BucketNotFoundException,
              clause="RFC 0058, 10 BucketNotFound, by the keyspace of the error; decision D74")
    yield row(codes=code(12021), error=errors.ScopeNotFoundException,
              clause="RFC 0058, 16 ScopeNotFound, of the query service; decision D74")
    yield row(codes=code(12004), error=errors.IndexNotFoundException,
              clause="RFC 0058, 17 IndexNotFound, Query: Codes 12004, 12016")
    yield row(codes=code(12016), error=errors.IndexNotFoundException,
              clause="RFC 0058, 17 IndexNotFound, Query: Codes 12004, 12016")
    yield row(codes=code(12009), words=("CAS mismatch",), error=errors.CasMismatchException,
              clause="RFC 0058, 9 CasMismatch, Query: code 12009 AND message contains `CAS mismatch`")
    yield row(codes=code(12009), cause=12033, error=errors.CasMismatchException,
              clause="RFC 0058, 9 CasMismatch: the reason of newer servers; decision D37")
    yield row(codes=code(12009), cause=17014, error=errors.DocumentNotFoundException,
              clause="RFC 0058, 101 DocumentNotFound: the reason of newer servers; decision D37")
    yield row(codes=code(12009), cause=17012, error=errors.DocumentExistsException,
              clause="RFC 0058, 105 DocumentExists: the reason of newer servers; decision D37")
    yield row(codes=code(12009), error=errors.DmlFailureException,
              clause="RFC 0058, 204 DmlFailure, Query: code 12009 AND message does not contain `CAS mismatch`")
    yield row(codes=range(12000, 13000), error=errors.IndexFailureException,
              clause="RFC 0058, 202 IndexFailure, Query: code range 12xxx")
    yield row(codes=code(13014), error=errors.AuthenticationFailureException,
              clause="RFC 0036 Server Responses, Query: code 13014; decision D37")
    yield row(codes=range(14000, 15000), error=errors.IndexFailureException,
              clause="RFC 0058, 202 IndexFailure, Query: code range 14xxx")
    yield _timed_out()
    # fmt: on
    yield from _any_service(NO_CODE)


def _analytics() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(codes=range(20000, 21000), error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, Analytics: Error range 20xxx")
    yield row(codes=code(21002), error=errors.TimeoutException, clause="RFC 0027, 21002: Request timed out and will be cancelled")
    for temporary in (23000, 23003):
        yield row(codes=code(temporary), error=errors.TemporaryFailureException,
                  clause=f"RFC 0058, 7 TemporaryFailure, Analytics: {temporary}")
    yield row(codes=code(23007), error=errors.JobQueueFullException,
              clause="RFC 0058, 302 JobQueueFull, Analytics: Error code 23007")
    yield row(codes=code(24000), error=errors.ParsingFailureException,
              clause="RFC 0058, 8 ParsingFailure, Analytics: codes 24000")
    yield row(codes=code(24006), error=errors.LinkNotFoundException, clause="RFC 0058, 307 LinkNotFound, Analytics: 24006")
    for missing in (24025, 24044, 24045):
        yield row(codes=code(missing), error=errors.DatasetNotFoundException,
                  clause=f"RFC 0058, 303 DatasetNotFound, Analytics: {missing}")
    yield row(codes=code(24034), error=errors.DataverseNotFoundException,
              clause="RFC 0058, 304 DataverseNotFound, Analytics: 24034")
    yield row(codes=code(24039), error=errors.DataverseExistsException, clause="RFC 0058, 306 DataverseExists, Analytics: 24039")
    yield row(codes=code(24040), error=errors.DatasetExistsException, clause="RFC 0058, 305 DatasetExists, Analytics: 24040")
    yield row(codes=code(24047), error=errors.IndexNotFoundException, clause="RFC 0058, 17 IndexNotFound, Analytics: 24047")
    yield row(codes=code(24048), error=errors.IndexExistsException, clause="RFC 0058, 18 IndexExists, Analytics: 24048")
    yield row(codes=code(24055), error=errors.LinkExistsException,
              clause="RFC 0054 CreateLink: AnalyticsLinkExistsException; decision D37")
    yield row(codes=range(24000, 25000), error=errors.CompilationFailureException,
              clause="RFC 0058, 301 CompilationFailure, Analytics: Error range 24xxx")
    yield row(codes=range(25000, 26000), error=errors.InternalServerFailureException,
              clause="RFC 0058, 5 InternalServerFailure, Analytics: Error range 25xxx")
    yield _timed_out()
    # fmt: on
    yield from _any_service(NO_CODE)


def _search() -> Iterable[ErrorRow]:
    row = ErrorRow
    # fmt: off
    yield row(http_status=400, words=("index not found",), error=errors.IndexNotFoundException,
              clause='RFC 0058, 17 IndexNotFound, Search: Http status code 400 AND text contains "index not found"')
    yield row(http_status=400, words=("num_fts_indexes",), error=errors.QuotaLimitedException,
              clause='RFC 0058, 22 QuotaLimited, Search: HTTP 400, match body contains "num_fts_indexes"')
    for status in (400, 500):
        yield row(http_status=status, words=("no indexName:",), error=errors.IndexNotFoundException,
                  clause="RFC 0058, 17 IndexNotFound: another text of the service; decision D37")
        yield row(http_status=status, words=("no planPIndexes for indexName",), error=errors.IndexNotReadyException,
                  clause="RFC 0058, 0 CouchbaseException; decision D7")
        yield row(http_status=status, words=("index with the same name already exists",), error=errors.IndexExistsException,
                  clause="RFC 0058, 18 IndexExists; decision D37")
    for text in ("page not found", "Page not found"):
        yield row(http_status=404, words=(text,), error=errors.FeatureNotAvailableException,
                  clause="RFC 0054 Feature Not Found, in the words of the search service; decision D37")
    for limit in ("num_concurrent_requests", "num_queries_per_min", "ingress_mib_per_min", "egress_mib_per_min"):
        yield row(http_status=429, words=(limit,), error=errors.RateLimitedException,
                  clause=f'RFC 0058, 21 RateLimited, Search: HTTP 429, match body contains "{limit}"')
    # fmt: on
    yield from _any_service(None)


def _views() -> Iterable[ErrorRow]:
    # A 404 without "not_found" or "missing" does not mean that the view is missing: a proxy may have sent it.
    row = ErrorRow
    # fmt: off
    yield row(http_status=401, error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, View: HTTP status 401")
    yield row(http_status=403, error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure; decision D37")
    yield row(words=("not_found",), error=errors.ViewNotFoundException,
              clause='RFC 0058, 501 ViewNotFound: Reason or error contains "not_found"')
    yield row(http_status=404, words=("missing",), error=errors.ViewNotFoundException,
              clause="RFC 0058, 501 ViewNotFound: Http status code 404; decision D37")
    # fmt: on


def _timed_out() -> ErrorRow:
    """Return the row for a statement that timed out, if the errors in the response have no code."""
    return ErrorRow(
        codes=NO_CODE,
        status=TIMED_OUT,
        error=errors.TimeoutException,
        clause="RFC 0058, 1 Timeout, by the status of a body that has no error code; decision D39",
    )


def _any_service(codes: range | None) -> Iterable[ErrorRow]:
    """Yield the rows for HTTP statuses that the query, analytics and search services have in common."""
    row = ErrorRow
    # fmt: off
    yield row(http_status=401, error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, Search: HTTP status 401, 403; decision D37")
    yield row(http_status=403, error=errors.AuthenticationFailureException,
              clause="RFC 0058, 6 AuthenticationFailure, Search: HTTP status 401, 403; decision D37")
    yield row(http_status=429, codes=codes, error=errors.RateLimitedException,
              clause="RFC 6585, 4: Too Many Requests; decision D37")
    yield row(http_status=500, codes=codes, error=errors.InternalServerFailureException,
              clause="RFC 0058, 5 InternalServerFailure, Search: HTTP 500; decision D37")
    yield row(http_status=503, codes=codes, error=errors.TemporaryFailureException,
              clause="RFC 9110, 15.6.4: Service Unavailable; decision D37")
    # fmt: on


SERVICE_ERRORS: Mapping[Service, Sequence[ErrorRow]] = {
    Service.QUERY: error_table(_query()),
    Service.ANALYTICS: error_table(_analytics()),
    Service.SEARCH: error_table(_search()),
    Service.VIEWS: error_table(_views()),
    Service.MANAGEMENT: MANAGEMENT_ERRORS,
}
"""Table of errors for each service. The first row that fits a response decides."""

UNLISTED = ErrorRow(
    error=errors.CouchbaseException, clause="RFC 0058, 0 CouchbaseException: no line lists this response"
)
FOREIGN = ErrorRow(
    error=errors.DecodingFailureException,
    clause="RFC 0058, 20 DecodingFailure: a success in an unexpected format",
)
BROKEN_OFF = ErrorRow(
    error=errors.DecodingFailureException,
    clause="RFC 0058, 20 DecodingFailure: a statement that ended early and lists no error; decision D39",
)


def error_row(answer: ServiceAnswer) -> ErrorRow:
    """Return the row that determines the exception for a response that reports a failure."""
    if answer.is_foreign and answer.http_status < 300:
        return FOREIGN
    row = first_fitting(SERVICE_ERRORS.get(answer.service, ()), answer)
    if row is None and answer.http_status < 300 and answer.failed_status is not None and not answer.lists_errors:
        return BROKEN_OFF
    return row or UNLISTED
