"""Service requests that a history draws, each with its result without faults.

Every request contains a *mark* in its bytes, which identifies it on streams and in logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.management.collections import CreateCollection, DropCollection
from triclinium_core.services.management.users import GetUser
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.search.queries import TermQuery
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.script import FakeScript

_MARK = re.compile(rb"request-\d{5}")

PREPARED_STATEMENTS: Sequence[str] = ("SELECT plans of airlines", "SELECT plans of hotels")
"""Statements that many requests use, so that they share a plan."""

FEW_ROWS, MANY_ROWS = 7, 120
FILLING = "x" * 4000
"""Content of a row. ``MANY_ROWS`` of them exceed the size that a client buffers for a reader that requests none."""

INDEX_NOT_FOUND = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
"""Response after which the client retries, because the service did nothing."""
HALFWAY: Mapping[str, object] = {"code": 5001, "msg": "it failed halfway"}


def _view_error(status: int, error: str, reason: str) -> FakeAnswer:
    body = msgspec.json.encode({"error": error, "reason": reason}).decode()
    return FakeAnswer(http_status=status, body=body)


VIEW_STATUSES: Sequence[int] = (300, 301, 302, 303, 307, 401, 408, 409, 412, 416, 417, 501, 502, 503, 504)
"""Statuses after which the client retries a view request, regardless of the body."""

SERVICE_REFUSALS: Mapping[Service, Sequence[FakeAnswer]] = {
    Service.ANALYTICS: [
        FakeAnswer(errors=[{"code": code, "msg": "the service is busy"}]) for code in (23000, 23003, 23007)
    ],
    Service.SEARCH: [FakeAnswer(http_status=429, errors=[{"msg": "too many concurrent queries"}])],
    Service.VIEWS: [
        *(_view_error(status, "busy", "the view engine is busy") for status in VIEW_STATUSES),
        _view_error(404, "not_found", "missing"),
        _view_error(500, "error", "the index is being built"),
    ],
}
"""Responses after which the client retries, because the service did nothing.

Source: SDK-RFC 0049 "Response Code Retry List".
"""

VIEW_FAILURES: Sequence[tuple[FakeAnswer, type[errors.CouchbaseException]]] = (
    (_view_error(404, "not_found", "deleted"), errors.ViewNotFoundException),
    (_view_error(500, "error", "{not_found, missing_named_view}"), errors.ViewNotFoundException),
    (_view_error(500, "badarg", "a key is invalid"), errors.CouchbaseException),
)
"""Final responses, each with its error: the retry list excludes them."""

RequestKey = tuple[bytes, bytes]
"""HTTP method and mark. The method is needed because two requests, which create and drop a collection, share a mark."""


@dataclass(frozen=True, slots=True)
class DrawnRequest:
    """One request and its expected result."""

    request: ServiceRequest
    key: RequestKey
    rows: Sequence[bytes] = ()
    """Rows that the reader must get, each once and in order."""
    refusals: int = 0
    """Number of refusals before the final response; each permits another attempt."""
    error: type[errors.CouchbaseException] | None = None
    """Exception expected without faults; None if the request succeeds."""

    @property
    def is_prepared(self) -> bool:
        """Whether the client executes the statement as a prepared statement."""
        return isinstance(self.request, QueryRequest) and not self.request.adhoc


def key_of(method: bytes, text: bytes) -> RequestKey | None:
    """Return the key of the request in these bytes; None if the bytes have no mark."""
    mark = _MARK.search(text)
    return (method, mark[0]) if mark is not None else None


def is_preparation(text: bytes) -> bool:
    """Return whether a request only prepares a statement, without executing it."""
    return b'"statement":"PREPARE ' in text and b'"auto_execute":true' not in text


class RequestTemplates:
    """Source of drawn requests. For most requests, it adds the cluster's responses to the script.

    Args:
        script: script of the cluster.
        choose: returns one of several choices.
        bucket: bucket in which collections are created and dropped, and whose views are queried.
        scope: scope in that bucket.
        asks_all: whether to send requests to search, analytics and views in addition to query and management.
    """

    def __init__(
        self,
        script: FakeScript,
        choose: Callable[[Sequence[object]], object],
        *,
        bucket: str,
        scope: str,
        asks_all: bool = False,
    ) -> None:
        self._script = script
        self._choose = choose
        self._bucket, self._scope = bucket, scope
        self._kinds: Sequence[str] = (*_KINDS, *_FURTHER_KINDS) if asks_all else _KINDS
        self._drawn = 0
        self._made: list[str] = []
        """Existing collections for which no drop was drawn yet."""
        for statement in PREPARED_STATEMENTS:
            script.answer(statement, _answer(statement, FEW_ROWS))

    def made(self, drawn: DrawnRequest) -> None:
        """Record that a request succeeded. If it created a collection, a later request can drop the collection."""
        if isinstance(drawn.request, CreateCollection):
            self._made.append(drawn.request.collection_name)

    def draw(self) -> DrawnRequest:
        """Return the next request."""
        self._drawn += 1
        mark = f"request-{self._drawn:05d}"
        kind = self._choose(self._kinds)
        assert isinstance(kind, str)
        service = _FURTHER.get(kind)
        if service is not None:
            return self._asked(service, kind, mark)
        return self._query(kind, mark) if kind in _QUERIES else self._managed(kind, mark)

    def _query(self, kind: str, mark: str) -> DrawnRequest:
        readonly, key = bool(self._choose((True, True, False))), (b"POST", mark.encode())

        def asked(statement: str, *, adhoc: bool = True) -> QueryRequest:
            return QueryRequest(statement=statement, readonly=readonly, adhoc=adhoc, client_context_id=mark)

        if kind == "prepared":
            statement = str(self._choose(PREPARED_STATEMENTS))
            return DrawnRequest(asked(statement, adhoc=False), key, _texts(_answer(statement, FEW_ROWS)))
        if kind == "misspelt":
            return DrawnRequest(asked(f"SELEC {mark}"), key, error=errors.ParsingFailureException)
        statement = f"SELECT {mark}"
        answer = _QUERIES[kind](mark)
        refusals = int(str(self._choose((1, 2)))) if kind == "refused" else 0
        self._script.answer(statement, *[INDEX_NOT_FOUND] * refusals, answer)
        error = errors.CouchbaseException if answer.errors else None
        return DrawnRequest(asked(statement), key, _texts(answer), refusals, error)

    def _asked(self, service: Service, kind: str, mark: str) -> DrawnRequest:
        """Return a request to a service other than query and management."""
        script_key, method, request = self._question(service, mark)
        key = (method, mark.encode())
        if kind == "view failed":
            failure, error = VIEW_FAILURES[self._place(len(VIEW_FAILURES))]
            self._script.answer(script_key, failure, service=service)
            return DrawnRequest(request, key, error=error)
        answer = _many(mark) if kind.endswith("many") else _answer(mark, FEW_ROWS)
        refused: list[FakeAnswer] = []
        if kind.endswith("refused"):
            answers = SERVICE_REFUSALS[service]
            refused = [answers[self._place(len(answers))] for _ in range(1 + self._place(2))]
        self._script.answer(script_key, *refused, answer, service=service)
        return DrawnRequest(request, key, _texts(answer), len(refused))

    def _question(self, service: Service, mark: str) -> tuple[str, bytes, ServiceRequest]:
        """Return the key in the script, the HTTP method, and the request."""
        match service:
            case Service.SEARCH:
                return mark, b"POST", SearchQueryRequest(index=mark, search=SearchRequest(TermQuery("inn")))
            case Service.VIEWS:
                view = ViewRequest(bucket_name=self._bucket, design_document=mark, view_name="by_name")
                return f"{mark}/by_name", b"GET", view
            case _:
                statement, readonly = f"SELECT {mark}", bool(self._choose((True, False)))
                return statement, b"POST", AnalyticsRequest(statement=statement, readonly=readonly)

    def _place(self, count: int) -> int:
        """Return a random index below ``count``."""
        place = self._choose(range(count))
        assert isinstance(place, int)
        return place

    def _managed(self, kind: str, mark: str) -> DrawnRequest:
        bucket, scope = self._bucket, self._scope
        if kind == "user":
            return DrawnRequest(GetUser(username=mark), (b"GET", mark.encode()), error=errors.UserNotFoundException)
        if kind == "drop" and self._made:
            name = self._made.pop(0)
            drop = DropCollection(bucket_name=bucket, scope_name=scope, collection_name=name)
            return DrawnRequest(drop, (b"DELETE", name.encode()))
        create = CreateCollection(bucket_name=bucket, scope_name=scope, collection_name=mark)
        return DrawnRequest(create, (b"POST", mark.encode()))


def _answer(name: str, count: int, **fields: object) -> FakeAnswer:
    rows = [{"of": name, "number": number} for number in range(count)]
    return msgspec.structs.replace(FakeAnswer(rows=rows), **fields)


def _many(name: str) -> FakeAnswer:
    return FakeAnswer(rows=[{"of": name, "number": number, "filling": FILLING} for number in range(MANY_ROWS)])


_QUERIES: Mapping[str, Callable[[str], FakeAnswer]] = {
    "few": lambda mark: _answer(mark, FEW_ROWS),
    "none": lambda mark: _answer(mark, 0),
    "many": _many,
    "slow": lambda mark: _answer(mark, FEW_ROWS, seconds_between_rows=0.05),
    "refused": lambda mark: _answer(mark, FEW_ROWS),
    "halfway": lambda mark: _answer(mark, FEW_ROWS, errors=[HALFWAY]),
    "prepared": lambda mark: _answer(mark, FEW_ROWS),
    "misspelt": lambda mark: _answer(mark, 0),
}
"""Responses of the query service, by the kind of request."""

_KINDS: Sequence[str] = (*_QUERIES, "few", "prepared", "prepared", "create", "create", "drop", "drop", "user")
"""Kinds of requests; each is repeated according to its weight."""

_FURTHER: Mapping[str, Service] = {
    "search": Service.SEARCH,
    "search refused": Service.SEARCH,
    "search many": Service.SEARCH,
    "analytics": Service.ANALYTICS,
    "analytics refused": Service.ANALYTICS,
    "view": Service.VIEWS,
    "view refused": Service.VIEWS,
    "view failed": Service.VIEWS,
}
"""Kinds of requests to further services."""

_FURTHER_KINDS: Sequence[str] = (*_FURTHER, "search refused", "analytics refused", "view refused", "view refused")
"""Kinds of requests to further services; each is repeated according to its weight."""


def _texts(answer: FakeAnswer) -> Sequence[bytes]:
    return tuple(answer.row_texts())
