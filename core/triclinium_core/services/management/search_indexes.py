"""Search indexes: their definitions, and the requests that create, change, read, control and drop them.

The requests go to nodes with the search service. An index belongs to the cluster or to a scope. If it belongs to a
scope, its paths contain bucket and scope, and its name excludes them.

Source: SDK-RFC 0054 "SearchIndexManager", "ScopeSearchIndexManager", "SearchIndex".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_text, check_type
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.validation import check_bucket_name, check_name
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.services import received
from triclinium_core.services.json_values import encode_json
from triclinium_core.services.management.management_request import ManagementRequest, reading
from triclinium_core.services.paths import check_segment, path
from triclinium_core.services.service_request import HttpRequest, HttpResponse, Listing, ServiceResult, Steps, all_steps
from triclinium_core.shown import shown

JsonObject = Mapping[str, object]
"""JSON object, decoded into a mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchIndex:
    """Definition of a search index. Its parameters, which the server's documentation describes, are sent unchanged.

    ``type`` is ``fulltext-index`` or ``fulltext-alias``.

    Raises:
        InvalidArgumentException: an argument is missing or invalid; ``.parameter`` names it.

    Source: SDK-RFC 0054 "SearchIndex".
    """

    name: str
    source_name: str | None = None
    """Name of the source of the data, a bucket; None without a source."""
    type: str | None = "fulltext-index"
    """Type of the index. None, like ``source_type``, only in a received definition without a readable value."""
    source_type: str | None = "couchbase"
    """Type of the source; ``nil`` for an alias."""
    uuid: str | None = None
    """UUID of the definition to change, which must be the server's current one. None to create an index."""
    params: JsonObject = field(default_factory=dict)
    """Parameters of the mappings and of the store."""
    source_uuid: str | None = None
    source_params: JsonObject = field(default_factory=dict)
    plan_params: JsonObject = field(default_factory=dict)
    """Parameters of partitions and replicas."""
    unknown: tuple[str, ...] = ()
    """Parts of a received definition in a form unknown to this version, as text of at most 300 characters each. The
    client does not write back an index with unknown parts, because they would be lost; ``unknown=()`` drops them."""

    def __post_init__(self) -> None:
        check_segment(self.name, "name")
        check_type(self.unknown, "unknown", tuple)
        for parameter in ("type", "source_type", "source_name", "uuid", "source_uuid"):
            value = getattr(self, parameter)
            is_required = parameter in ("type", "source_type") and not self.unknown
            if value is not None or is_required:
                check_text(value, parameter)
        for parameter in ("params", "source_params", "plan_params"):
            check_type(getattr(self, parameter), parameter, Mapping)

    @property
    def has_vectors(self) -> bool:
        """Whether a field in the type mappings is a vector, which requires server 7.6.

        Source: SDK-RFC 0054 "Vector indexes".
        """
        types = _object(_object(self.params.get("mapping")).get("types"))
        properties = (each for kind in types.values() for each in _object(_object(kind).get("properties")).values())
        fields = (each for found in properties for each in _array(_object(found).get("fields")))
        return any(_object(each).get("type") in _VECTOR_TYPES for each in fields)

    def to_json(self) -> bytes:
        """Return the definition as JSON.

        Raises:
            EncodingFailureException: the parameters cannot be encoded as JSON.
        """
        definition = {
            "name": self.name,
            "type": self.type,
            "sourceType": self.source_type,
            "sourceName": self.source_name,
            "uuid": self.uuid,
            "params": dict(self.params),
            "sourceUUID": self.source_uuid,
            "sourceParams": dict(self.source_params) or None,
            "planParams": dict(self.plan_params) or None,
        }
        return encode_json({key: value for key, value in definition.items() if value is not None}, "index")


_VECTOR_TYPES = ("vector", "vector_base64")


def _object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _array(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


# -- Results.


class SearchIndexResult(ServiceResult, frozen=True):
    """One index."""

    index: SearchIndex


class AllSearchIndexesResult(Listing, frozen=True):
    """Indexes of the cluster or of a scope."""

    indexes: tuple[SearchIndex, ...]


class DocumentCount(ServiceResult, frozen=True):
    """Number of documents in an index."""

    count: int


class AnalyzedDocument(ServiceResult, frozen=True):
    """Analysis of a document by an index."""

    analyzed: tuple[JsonObject, ...]


class _Count(msgspec.Struct, frozen=True):
    count: int


_NO_TYPE = msgspec.Raw(b"no type")
"""Entry of ``SearchIndex.unknown`` for a definition without a type."""


def _index(found: received.Members, scope: SearchScope | None) -> SearchIndex:
    # RFC 0054 "Index Name": the server's name of a scope's index is bucket.scope.index, the user's name is index.
    prefix = f"{scope.bucket_name}.{scope.scope_name}." if scope is not None else ""
    objects = {name: found.get(name, received.JSON_OBJECT) for name in ("params", "sourceParams", "planParams")}
    kinds = {
        "type": received.kept_word(found.get("type", str)),
        "sourceType": received.kept_word(found.get("sourceType", str)),
    }
    if not found.is_set("sourceType") or found.get("sourceType", str) == "":
        kinds["sourceType"] = "nil"
    unknown = [found.raw[name] for name, value in (objects | kinds).items() if value is None and found.is_set(name)]
    if not found.is_set("type"):
        unknown.append(_NO_TYPE)
    with reading("index"):
        return SearchIndex(
            name=found.text("name").removeprefix(prefix),
            source_name=found.text("sourceName") or None,
            type=kinds["type"],
            source_type=kinds["sourceType"],
            uuid=found.text("uuid") or None,
            params=objects["params"] or {},
            source_uuid=found.text("sourceUUID") or None,
            source_params=objects["sourceParams"] or {},
            plan_params=objects["planParams"] or {},
            unknown=received.unknown_parts(unknown),
        )


# -- The requests.


class SearchScope(msgspec.Struct, frozen=True):
    """Scope of an index.

    Raises:
        InvalidArgumentException: a name is invalid.
    """

    bucket_name: str
    scope_name: str

    def __post_init__(self) -> None:
        check_bucket_name(self.bucket_name, "bucket_name")
        check_name(self.scope_name, "scope_name")


class _SearchRequest(ManagementRequest, frozen=True, kw_only=True):
    """Base of all requests of this module. A ``scope`` of None means the indexes of the cluster."""

    service: ClassVar[Service] = Service.SEARCH

    scope: SearchScope | None = None

    def __post_init__(self) -> None:
        if self.scope is not None:
            check_type(self.scope, "scope", SearchScope)

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """Capabilities that the request requires of the cluster (SDK-RFC 0054 "FeatureNotAvailable handling")."""
        return frozenset() if self.scope is None else frozenset({ClusterCapability.SCOPED_SEARCH_INDEX})

    @property
    def target(self) -> str:
        """Path of all indexes."""
        if self.scope is None:
            return path("api", "index")
        return path("api", "bucket", self.scope.bucket_name, "scope", self.scope.scope_name, "index")

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its scope."""
        context = ManagementRequest.error_context(self)
        if self.scope is None:
            return context
        return replace(context, bucket=self.scope.bucket_name, scope=self.scope.scope_name)


class GetAllSearchIndexes(_SearchRequest, frozen=True):
    """Request for all indexes."""

    name: ClassVar[str] = "get_all_search_indexes"

    def decode(self, answer: HttpResponse) -> AllSearchIndexesResult:
        """Return the indexes in the response."""
        return all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: HttpResponse) -> Steps[AllSearchIndexesResult]:
        """Read the indexes in steps."""
        listed = received.body_members(answer).members("indexDefs").members("indexDefs").raw.values()
        found, unread = yield from received.readable(
            listed, received.in_one_step(lambda row: _index(received.members_of(row), self.scope))
        )
        return AllSearchIndexesResult(found, unread=unread)


class UpsertSearchIndex(_SearchRequest, frozen=True):
    """Request that creates or changes an index.

    Raises:
        InvalidArgumentException: the definition has unknown parts.
        EncodingFailureException: the definition cannot be encoded as JSON.
    """

    name: ClassVar[str] = "upsert_search_index"
    method: ClassVar[str] = "PUT"

    index: SearchIndex
    _body: bytes = b""

    def __post_init__(self) -> None:
        _SearchRequest.__post_init__(self)
        check_type(self.index, "index", SearchIndex)
        if self.index.unknown:
            raise errors.InvalidArgumentException(
                f"index={shown(self.index.name)} would lose parameters that this version does not support: "
                f"{shown(self.index.unknown)}; pass unknown=() to drop them",
                parameter="index",
            )
        # Encode once, so that every attempt sends the definition as it was when the request was created.
        msgspec.structs.force_setattr(self, "_body", self.index.to_json())

    @property
    def target(self) -> str:
        """Path of the index."""
        return f"{super().target}{path(self.index.name)}"

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its index."""
        return replace(super().error_context(), index=self.index.name)

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """Capabilities for an index of a scope, and for its vectors if any; empty for an index of the cluster."""
        needed = super().required_capabilities
        return needed | {ClusterCapability.VECTOR_SEARCH} if needed and self.index.has_vectors else needed

    @property
    def has_body(self) -> bool:
        """True: the definition is the body."""
        return True

    def encode(self, remaining: float) -> HttpRequest:
        """Return the HTTP request of one attempt."""
        # RFC 0054 "UpsertIndex".
        return HttpRequest(self.method, self.target, self._body, headers=(("cache-control", "no-cache"),))


class _OfIndex(_SearchRequest, frozen=True):
    """Base of the requests about one index."""

    step: ClassVar[tuple[str, ...]] = ()
    """Segments after the index in the path."""

    index_name: str

    def __post_init__(self) -> None:
        _SearchRequest.__post_init__(self)
        check_segment(self.index_name, "index_name")

    @property
    def target(self) -> str:
        """Path of the index or of the command."""
        return f"{super().target}{path(self.index_name, *self.step)}"

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its index."""
        return replace(super().error_context(), index=self.index_name)


class GetSearchIndex(_OfIndex, frozen=True):
    """Request for the definition of an index."""

    name: ClassVar[str] = "get_search_index"

    def decode(self, answer: HttpResponse) -> SearchIndexResult:
        """Return the index in the response."""
        return SearchIndexResult(_index(received.body_members(answer).members("indexDef"), self.scope))


class DropSearchIndex(_OfIndex, frozen=True):
    """Request that drops an index."""

    name: ClassVar[str] = "drop_search_index"
    method: ClassVar[str] = "DELETE"


class GetIndexedDocumentsCount(_OfIndex, frozen=True):
    """Request for the number of documents in an index."""

    name: ClassVar[str] = "get_indexed_documents_count"
    step: ClassVar[tuple[str, ...]] = ("count",)

    def decode(self, answer: HttpResponse) -> DocumentCount:
        """Return the number of documents in the response."""
        return DocumentCount(answer.body_as(_Count).count)


class _ControlRequest(_OfIndex, frozen=True):
    """Base of the requests that control an index."""

    method: ClassVar[str] = "POST"


class PauseIngest(_ControlRequest, frozen=True):
    """Request that stops an index from taking changes."""

    name: ClassVar[str] = "pause_ingest"
    step: ClassVar[tuple[str, ...]] = ("ingestControl", "pause")


class ResumeIngest(_ControlRequest, frozen=True):
    """Request that lets an index take changes again."""

    name: ClassVar[str] = "resume_ingest"
    step: ClassVar[tuple[str, ...]] = ("ingestControl", "resume")


class AllowQuerying(_ControlRequest, frozen=True):
    """Request that lets an index answer searches again."""

    name: ClassVar[str] = "allow_querying"
    step: ClassVar[tuple[str, ...]] = ("queryControl", "allow")


class DisallowQuerying(_ControlRequest, frozen=True):
    """Request that stops an index from answering searches."""

    name: ClassVar[str] = "disallow_querying"
    step: ClassVar[tuple[str, ...]] = ("queryControl", "disallow")


class FreezePlan(_ControlRequest, frozen=True):
    """Request that keeps the partitions of an index on their nodes."""

    name: ClassVar[str] = "freeze_plan"
    step: ClassVar[tuple[str, ...]] = ("planFreezeControl", "freeze")


class UnfreezePlan(_ControlRequest, frozen=True):
    """Request that lets the partitions of an index move between nodes again."""

    name: ClassVar[str] = "unfreeze_plan"
    step: ClassVar[tuple[str, ...]] = ("planFreezeControl", "unfreeze")


class AnalyzeDocument(_OfIndex, frozen=True):
    """Request for the analysis of a document, which the index does not store.

    Raises:
        EncodingFailureException: the document cannot be encoded as JSON.
    """

    name: ClassVar[str] = "analyze_document"
    method: ClassVar[str] = "POST"
    step: ClassVar[tuple[str, ...]] = ("analyzeDoc",)

    document: object
    _body: bytes = b""

    def __post_init__(self) -> None:
        _OfIndex.__post_init__(self)
        msgspec.structs.force_setattr(self, "_body", encode_json(self.document, "document"))

    @property
    def has_body(self) -> bool:
        """True: the document is the body."""
        return True

    def encode(self, remaining: float) -> HttpRequest:
        """Return the HTTP request of one attempt."""
        return HttpRequest(self.method, self.target, self._body)

    def decode(self, answer: HttpResponse) -> AnalyzedDocument:
        """Return the elements of ``analyzed``. An element that is not an object becomes an empty one."""
        items = received.body_members(answer).array("analyzed")
        return AnalyzedDocument(tuple(received.decoded(item, received.JSON_OBJECT) or {} for item in items))
