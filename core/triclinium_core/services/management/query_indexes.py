"""Query indexes: their descriptions, and the statements that create, build, read and drop them.

A name in a statement is a parameter, or an identifier between backticks, escaped so that no name can end it. Rows are
few and short, so each response is read whole.

Source: SDK-RFC 0054 "QueryIndexManager", "CollectionQueryIndexManager", "QueryIndex".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_flag, check_integer, check_text
from triclinium_core.kv.operation.validation import DEFAULT_NAME, UINT32_MAX, check_bucket_name, check_name
from triclinium_core.retry.couchbase import Service
from triclinium_core.services import service_request
from triclinium_core.services.json_values import encode_members
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.query.result import metadata_of
from triclinium_core.services.received import Members, as_text, decoded, in_one_step, kept_word, members_of, readable
from triclinium_core.services.statement.identifiers import query_identifier as identifier
from triclinium_core.services.statement.parameters import Parameters
from triclinium_core.services.statement.statement_request import QueryContext, StatementRequest
from triclinium_core.shown import shown

ONLINE = "online"
"""State of an index that queries can use."""


@unique
class QueryIndexType(StrEnum):
    """Indexer that implements an index. The value is the word on the wire."""

    VIEW = "view"
    GSI = "gsi"


class QueryIndex(msgspec.Struct, frozen=True, kw_only=True):
    """One query index, as reported by the query service.

    Source: SDK-RFC 0054 "QueryIndex".
    """

    name: str
    is_primary: bool
    type: QueryIndexType | str | None
    """A ``str`` is a type unknown to this version. None if the server reports no readable type."""
    state: str | None
    """State of the index, such as ``deferred``, ``building`` or ``online``. None without a readable state."""
    keyspace: str
    """Name of the collection, or of the bucket if the server reports no collection for the index."""
    index_key: tuple[str, ...]
    """Expressions; empty for a primary index. An expression that is not a string is given as JSON."""
    condition: str | None
    """Condition that indexed documents meet; None for all documents."""
    partition: str | None
    """Expression that partitions the index; None without partitions."""
    bucket_name: str
    scope_name: str | None
    """Name of the scope. None, like ``collection_name``, if the server reports no collection for the index."""
    collection_name: str | None


class IndexKeyspace(msgspec.Struct, frozen=True):
    """Keyspace of an index: a collection, or a bucket.

    A bucket means its default collection, but in ``all_indexes`` all its collections.

    Raises:
        InvalidArgumentException: a name is invalid, or only one of scope and collection is given.
    """

    bucket: str
    scope: str | None = None
    collection: str | None = None

    def __post_init__(self) -> None:
        check_bucket_name(self.bucket, "bucket_name")
        if self.scope is None and self.collection is None:
            return
        # RFC 0054 "CreateIndex": "If either `CollectionName` or `ScopeName` are set then both *must* be set."
        for parameter, value in (("scope_name", self.scope), ("collection_name", self.collection)):
            if value is None:
                raise errors.InvalidArgumentException(
                    f"{parameter} is missing: scope_name={shown(self.scope)} and "
                    f"collection_name={shown(self.collection)} must be given together",
                    parameter=parameter,
                )
            check_name(value, parameter)

    @property
    def path(self) -> str:
        """Name of the keyspace in statements, escaped."""
        return ".".join(identifier(name) for name in (self.bucket, self.scope, self.collection) if name is not None)

    @property
    def query_context(self) -> QueryContext | None:
        """Scope in which statements about the keyspace run; None for a bucket."""
        # RFC 0054 "CollectionQueryIndexManager": a query context is mandatory for collections.
        return QueryContext(self.bucket, self.scope) if self.scope is not None else None


class IndexStatement(StatementRequest, frozen=True, kw_only=True):
    """Statement about indexes. The functions of this module create them."""

    service: ClassVar[Service] = Service.QUERY
    rows_of: ClassVar[str | None] = None
    path: ClassVar[str] = QueryRequest.path
    members: ClassVar[Mapping[str, str]] = QueryRequest.members

    def decode(self, answer: service_request.HttpResponse) -> service_request.ServiceResult:
        """Return an acknowledgement.

        Raises:
            MalformedAnswer: the body is not a response of the query service.
        """
        metadata_of(answer)
        return service_request.Acknowledged()


class CreateIndex(IndexStatement, frozen=True, kw_only=True):
    """Statement that creates an index."""

    name: ClassVar[str] = "create_query_index"


class CreatePrimaryIndex(IndexStatement, frozen=True, kw_only=True):
    """Statement that creates a primary index."""

    name: ClassVar[str] = "create_primary_query_index"


class DropIndex(IndexStatement, frozen=True, kw_only=True):
    """Statement that drops an index."""

    name: ClassVar[str] = "drop_query_index"


class DropPrimaryIndex(IndexStatement, frozen=True, kw_only=True):
    """Statement that drops a primary index."""

    name: ClassVar[str] = "drop_primary_query_index"


class BuildIndexes(IndexStatement, frozen=True, kw_only=True):
    """Statement that starts to build indexes. Building continues after the response."""

    name: ClassVar[str] = "build_query_indexes"


class QueryIndexesResult(service_request.Listing, frozen=True):
    """Requested indexes, primary ones first."""

    indexes: tuple[QueryIndex, ...]


class IndexNamesResult(service_request.Listing, frozen=True):
    """Names of the requested indexes."""

    names: tuple[str, ...]


class GetAllIndexes(IndexStatement, frozen=True, kw_only=True):
    """Request for the GSI indexes of a bucket or collection."""

    name: ClassVar[str] = "get_all_query_indexes"

    def decode(self, answer: service_request.HttpResponse) -> QueryIndexesResult:
        """Return the indexes in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[QueryIndexesResult]:
        """Read the indexes in steps."""
        metadata_of(answer)
        rows = answer.body_as(_Rows).results
        found, unread = yield from readable(rows, in_one_step(lambda row: _index(members_of(row))))
        return QueryIndexesResult(found, unread=unread)


class GetDeferredIndexes(IndexStatement, frozen=True, kw_only=True):
    """Request for the names of the deferred indexes."""

    name: ClassVar[str] = "get_deferred_query_indexes"

    def decode(self, answer: service_request.HttpResponse) -> IndexNamesResult:
        """Return the names of the indexes in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[IndexNamesResult]:
        """Read the names in steps."""
        metadata_of(answer)
        found, unread = yield from readable(answer.body_as(_Rows).results, in_one_step(_name))
        return IndexNamesResult(found, unread=unread)


class _Rows(msgspec.Struct, frozen=True):
    results: list[msgspec.Raw]


def _name(raw: msgspec.Raw) -> str:
    name = decoded(raw, str)
    if not name:
        raise service_request.MalformedAnswer(f"{as_text(raw)} is not the name of an index")
    return name


def _index(found: Members) -> QueryIndex:
    name, keyspace, bucket = found.text("name"), found.text("keyspace_id"), found.get("bucket_id", str)
    if not name or not keyspace:
        raise service_request.MalformedAnswer("an index without a name or a keyspace")
    return QueryIndex(
        name=name,
        is_primary=found.get("is_primary", bool) or False,
        type=found.word("using", QueryIndexType),
        state=kept_word(found.get("state", str)),
        keyspace=keyspace,
        index_key=tuple(
            text if (text := decoded(key, str)) is not None else as_text(key) for key in found.array("index_key")
        ),
        condition=found.text("condition") or None,
        partition=found.text("partition") or None,
        # RFC 0054 "QueryIndex": without a collection, the keyspace is the bucket.
        bucket_name=bucket if bucket is not None else keyspace,
        scope_name=found.get("scope_id", str),
        collection_name=keyspace if bucket is not None else None,
    )


# -- Statements and requests. Invalid names and options raise InvalidArgumentException.


def all_indexes(keyspace: IndexKeyspace) -> GetAllIndexes:
    """Return the request for the GSI indexes of a collection, or of all collections of a bucket."""
    return GetAllIndexes(
        statement=" ".join((_SELECT_ALL, _where(keyspace, _ANY_OF_BUCKET), _ONLY_GSI, _IN_ORDER)),
        parameters=_parameters(keyspace),
        query_context=keyspace.query_context,
        readonly=True,
    )


def create_index(
    keyspace: IndexKeyspace,
    index_name: str,
    keys: Sequence[str],
    *,
    num_replicas: int | None = None,
    deferred: bool | None = None,
) -> CreateIndex:
    """Return the statement that creates an index over ``keys``, each the name of one field."""
    check_text(index_name, "index_name")
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not keys:
        raise errors.InvalidArgumentException(
            f"keys={shown(keys)} must be a non-empty list of field names", parameter="keys"
        )
    for key in keys:
        check_text(key, "keys")
    # RFC 0054 "CreateIndex": each key is escaped separately.
    fields = ", ".join(map(identifier, keys))
    options = _options(num_replicas, deferred)
    statement = f"CREATE INDEX {identifier(index_name)} ON {keyspace.path} ({fields}){options}"
    return CreateIndex(statement=statement, query_context=keyspace.query_context)


def create_primary_index(
    keyspace: IndexKeyspace,
    *,
    index_name: str | None = None,
    num_replicas: int | None = None,
    deferred: bool | None = None,
) -> CreatePrimaryIndex:
    """Return the statement that creates an index over all document ids. Its default name is ``#primary``."""
    name = f" {_index_identifier(index_name)}" if index_name is not None else ""
    statement = f"CREATE PRIMARY INDEX{name} ON {keyspace.path}{_options(num_replicas, deferred)}"
    return CreatePrimaryIndex(statement=statement, query_context=keyspace.query_context)


def drop_index(keyspace: IndexKeyspace, index_name: str) -> DropIndex:
    """Return the statement that drops an index."""
    return DropIndex(statement=_drop(keyspace, index_name), query_context=keyspace.query_context)


def drop_primary_index(keyspace: IndexKeyspace, *, index_name: str | None = None) -> DropPrimaryIndex:
    """Return the statement that drops the primary index ``index_name``, by default ``#primary``."""
    statement = f"DROP PRIMARY INDEX ON {keyspace.path}" if index_name is None else _drop(keyspace, index_name)
    return DropPrimaryIndex(statement=statement, query_context=keyspace.query_context)


def _drop(keyspace: IndexKeyspace, index_name: str) -> str:
    index = _index_identifier(index_name)
    if keyspace.scope is None:
        return f"DROP INDEX {keyspace.path}.{index}"
    return f"DROP INDEX {index} ON {keyspace.path}"


def deferred_indexes(keyspace: IndexKeyspace) -> GetDeferredIndexes:
    """Return the request for the names of deferred GSI indexes of a collection, or of a bucket's default collection."""
    return GetDeferredIndexes(
        # For a bucket, select only indexes of the bucket or its default collection: BUILD INDEX accepts no others.
        statement=" ".join((_SELECT_NAMES, _where(keyspace, _OF_DEFAULT_COLLECTION), _ONLY_DEFERRED, _ONLY_GSI)),
        parameters=_parameters(
            IndexKeyspace(keyspace.bucket, keyspace.scope or DEFAULT_NAME, keyspace.collection or DEFAULT_NAME)
        ),
        query_context=keyspace.query_context,
        readonly=True,
    )


def build_indexes(keyspace: IndexKeyspace, index_names: Sequence[str]) -> BuildIndexes:
    """Return the statement that starts to build the named indexes."""
    indexes = ", ".join(_index_identifier(name) for name in index_names)
    statement = f"BUILD INDEX ON {keyspace.path} ({indexes})"
    return BuildIndexes(statement=statement, query_context=keyspace.query_context)


def _index_identifier(index_name: object) -> str:
    return identifier(check_text(index_name, "index_name"))


_SELECT_ALL = "SELECT idx.* FROM system:indexes AS idx WHERE"
_SELECT_NAMES = "SELECT RAW name FROM system:indexes WHERE"
_OF_BUCKET = "(bucket_id IS MISSING AND keyspace_id = $bucketName)"
"""Condition for an index without a collection."""
_ANY_OF_BUCKET = f"({_OF_BUCKET} OR bucket_id = $bucketName)"
_OF_COLLECTION = "(bucket_id = $bucketName AND scope_id = $scopeName AND keyspace_id = $collectionName)"
_OF_DEFAULT_COLLECTION = f"({_OF_COLLECTION} OR {_OF_BUCKET})"
_ONLY_DEFERRED = 'AND state = "deferred"'
_ONLY_GSI = 'AND `using` = "gsi"'
_IN_ORDER = "ORDER BY is_primary DESC, name ASC"


def _where(keyspace: IndexKeyspace, of_bucket: str) -> str:
    if keyspace.scope is None:
        return of_bucket
    # RFC 0054 "CollectionQueryIndexManager": an index of the bucket belongs to its default collection.
    is_default = keyspace.scope == DEFAULT_NAME and keyspace.collection == DEFAULT_NAME
    return _OF_DEFAULT_COLLECTION if is_default else _OF_COLLECTION


def _parameters(keyspace: IndexKeyspace) -> Parameters:
    named = {"bucketName": keyspace.bucket, "scopeName": keyspace.scope, "collectionName": keyspace.collection}
    return Parameters(named={name: value for name, value in named.items() if value is not None})


def _options(num_replicas: int | None, deferred: bool | None) -> str:
    options: dict[str, object] = {}
    if num_replicas is not None:
        options["num_replica"] = check_integer(num_replicas, "num_replicas", 0, UINT32_MAX)
    if deferred is not None:
        options["defer_build"] = check_flag(deferred, "deferred")
    return f" WITH {encode_members(options).decode()}" if options else ""
