"""Requests to services as a history draws them, each with what has to come of it where nothing goes wrong.

Every request has a *mark*, which stands in its bytes: so streams and logs tell which request they are about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from triclinium_core.errors import CouchbaseException, ParsingFailureException, UserNotFoundException
from triclinium_core.services.management.collections import CreateCollection, DropCollection
from triclinium_core.services.management.users import GetUser
from triclinium_core.services.query.request import QueryRequest
from triclinium_core.services.request import ServiceRequest
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.script import FakeScript

_MARK = re.compile(rb"request-\d{5}")

PREPARED_STATEMENTS: Sequence[str] = ("SELECT plans of airlines", "SELECT plans of hotels")
"""Statements that many requests share, so that they share a plan."""

FEW_ROWS, MANY_ROWS = 7, 120
FILLING = "x" * 4000
"""What makes many rows more than a client keeps for a reader who does not want them yet."""

INDEX_NOT_FOUND = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
"""An answer that is retried, for nothing was done."""
HALFWAY: Mapping[str, object] = {"code": 5001, "msg": "it broke down halfway"}

RequestKey = tuple[bytes, bytes]
"""HTTP method and mark: a collection that was made under a mark is dropped under the same."""


@dataclass(frozen=True, slots=True)
class DrawnRequest:
    """One request, and what is expected of it."""

    request: ServiceRequest
    key: RequestKey
    rows: Sequence[bytes] = ()
    """The rows that its reader has to get, each once and in order."""
    refusals: int = 0
    """Answers before the last one, each of which permits another attempt."""
    error: type[CouchbaseException] | None = None
    """What it fails with where nothing goes wrong; None where it succeeds."""

    @property
    def is_prepared(self) -> bool:
        """Whether the service plans its statement first."""
        return isinstance(self.request, QueryRequest) and not self.request.adhoc


def key_of(method: bytes, text: bytes) -> RequestKey | None:
    """Return which request bytes are about; None for one that a history has not drawn."""
    mark = _MARK.search(text)
    return (method, mark[0]) if mark is not None else None


def is_preparation(text: bytes) -> bool:
    """Tell whether a request only has a statement planned, and carries nothing out."""
    return b'"statement":"PREPARE ' in text and b'"auto_execute":true' not in text


class RequestTemplates:
    """Draws requests, and has the script of a cluster answer them.

    Args:
        script: of the cluster.
        choose: picks one of several.
        bucket: in which collections are made and dropped.
        scope: of that bucket.
    """

    def __init__(
        self, script: FakeScript, choose: Callable[[Sequence[object]], object], *, bucket: str, scope: str
    ) -> None:
        self._script = script
        self._choose = choose
        self._bucket, self._scope = bucket, scope
        self._drawn = 0
        self._made: list[str] = []
        """Collections that are there, and that nobody was asked to drop."""
        for statement in PREPARED_STATEMENTS:
            script.answer(statement, _answer(statement, FEW_ROWS))

    def made(self, drawn: DrawnRequest) -> None:
        """Record that a collection was made, so that it can be dropped."""
        if isinstance(drawn.request, CreateCollection):
            self._made.append(drawn.request.collection_name)

    def draw(self) -> DrawnRequest:
        """Return the next request."""
        self._drawn += 1
        mark = f"request-{self._drawn:05d}"
        kind = self._choose(_KINDS)
        assert isinstance(kind, str)
        return self._query(kind, mark) if kind in _QUERIES else self._managed(kind, mark)

    def _query(self, kind: str, mark: str) -> DrawnRequest:
        readonly, key = bool(self._choose((True, True, False))), (b"POST", mark.encode())

        def asked(statement: str, *, adhoc: bool = True) -> QueryRequest:
            return QueryRequest(statement=statement, readonly=readonly, adhoc=adhoc, client_context_id=mark)

        if kind == "prepared":
            statement = str(self._choose(PREPARED_STATEMENTS))
            return DrawnRequest(asked(statement, adhoc=False), key, _texts(_answer(statement, FEW_ROWS)))
        if kind == "misspelt":
            return DrawnRequest(asked(f"SELEC {mark}"), key, error=ParsingFailureException)
        statement = f"SELECT {mark}"
        answer = _QUERIES[kind](mark)
        refusals = int(str(self._choose((1, 2)))) if kind == "refused" else 0
        self._script.answer(statement, *[INDEX_NOT_FOUND] * refusals, answer)
        error = CouchbaseException if answer.errors else None
        return DrawnRequest(asked(statement), key, _texts(answer), refusals, error)

    def _managed(self, kind: str, mark: str) -> DrawnRequest:
        bucket, scope = self._bucket, self._scope
        if kind == "user":
            return DrawnRequest(GetUser(username=mark), (b"GET", mark.encode()), error=UserNotFoundException)
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
"""What the query service answers, by the kind of a request."""

_KINDS: Sequence[str] = (*_QUERIES, "few", "prepared", "prepared", "create", "create", "drop", "drop", "user")
"""Kinds of requests as often as they are drawn."""


def _texts(answer: FakeAnswer) -> Sequence[bytes]:
    return tuple(answer.row_texts())
