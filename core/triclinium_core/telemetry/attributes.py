"""The attributes of spans and the tags of metrics: their keys, their values, and what has which.

Source: SDK-RFC 0067 "Attributes Common to all Spans", "Outer Request Span Attributes", "Dispatch Span Attributes",
"Operations Value Recorder"; the keys are those of OpenTelemetry's stable conventions for databases, where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.errors import CouchbaseException, InternalError, KeyValueException
from triclinium_core.retry.tables import table_of

SYSTEM_NAME = "db.system.name"
CLUSTER_UUID = "couchbase.cluster.uuid"
CLUSTER_NAME = "couchbase.cluster.name"
OPERATION_NAME = "db.operation.name"
SERVICE = "couchbase.service"
NAMESPACE = "db.namespace"
SCOPE_NAME = "couchbase.scope.name"
COLLECTION_NAME = "couchbase.collection.name"
DURABILITY = "couchbase.durability"
QUERY_TEXT = "db.query.text"
RETRIES = "couchbase.retries"
ERROR_TYPE = "error.type"
NETWORK_TRANSPORT = "network.transport"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
PEER_ADDRESS = "network.peer.address"
PEER_PORT = "network.peer.port"
LOCAL_ID = "couchbase.local_id"
OPERATION_ID = "couchbase.operation_id"
SERVER_DURATION = "couchbase.server_duration"

COUCHBASE = "couchbase"
"""The value of ``db.system.name``."""
TCP = "tcp"
"""The value of ``network.transport``."""
OTHER_ERROR = "_OTHER"
"""The value of ``error.type`` for what SDK-RFC 0058 has no name for."""


@unique
class Bearer(Enum):
    """What carries attributes."""

    OUTER = "the span of an operation, or of a call that wraps several"
    ENCODING = "request_encoding"
    DISPATCH = "dispatch_to_server"
    METRIC = "db.client.operation.duration"


class AttributeRow(NamedTuple):
    """Where one attribute is found."""

    bearers: frozenset[Bearer]
    kind: type[str | int]
    when: str
    """On which of them, in the RFC's words; empty for all."""


_OUTER, _METRIC = frozenset({Bearer.OUTER}), frozenset({Bearer.OUTER, Bearer.METRIC})
_DISPATCH = frozenset({Bearer.DISPATCH})
_EVERYWHERE = frozenset(Bearer)

ATTRIBUTES: Mapping[str, AttributeRow] = table_of(
    (
        (SYSTEM_NAME, AttributeRow(_EVERYWHERE, str, "")),
        (CLUSTER_UUID, AttributeRow(_EVERYWHERE, str, "if the cluster has provided this information")),
        (CLUSTER_NAME, AttributeRow(_EVERYWHERE, str, "if the cluster has provided this information")),
        (OPERATION_NAME, AttributeRow(_METRIC, str, "")),
        (SERVICE, AttributeRow(_METRIC, str, "unless the call goes to several services, as ping does")),
        (NAMESPACE, AttributeRow(_METRIC, str, "at the bucket level or below")),
        (SCOPE_NAME, AttributeRow(_METRIC, str, "at the scope level or below")),
        (COLLECTION_NAME, AttributeRow(_METRIC, str, "at the collection level")),
        (ERROR_TYPE, AttributeRow(_METRIC, str, "if the operation failed")),
        (DURABILITY, AttributeRow(_OUTER, str, "data service and durability level set")),
        (QUERY_TEXT, AttributeRow(_OUTER, str, "query and analytics with positional or named parameters")),
        (RETRIES, AttributeRow(_OUTER, int, "")),
        (NETWORK_TRANSPORT, AttributeRow(_DISPATCH, str, "")),
        (SERVER_ADDRESS, AttributeRow(_DISPATCH, str, "")),
        (SERVER_PORT, AttributeRow(_DISPATCH, int, "")),
        (PEER_ADDRESS, AttributeRow(_DISPATCH, str, "where the driver knows the address")),
        (PEER_PORT, AttributeRow(_DISPATCH, int, "where the driver knows the address")),
        (LOCAL_ID, AttributeRow(_DISPATCH, str, "data service")),
        (OPERATION_ID, AttributeRow(_DISPATCH, str, "data service (a number), query and analytics")),
        (SERVER_DURATION, AttributeRow(_DISPATCH, int, "when it is reported by the server, in microseconds")),
    )
)
"""Every attribute by its key."""


_WITHOUT_NAME = (CouchbaseException, KeyValueException, InternalError)
"""The base, a group, and a defect of ours: the RFC has no name for these that would tell anything."""


def _is_named_by_the_rfc(kind: type[CouchbaseException]) -> bool:
    return kind.rfc_class is kind and kind not in _WITHOUT_NAME


ERROR_TYPES: Mapping[type[CouchbaseException], str] = {
    kind: kind.__name__.removesuffix("Exception")
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, CouchbaseException) and _is_named_by_the_rfc(kind)
}
"""The name of SDK-RFC 0058 of every error that has one, such as ``DocumentLocked``."""


def error_type(error: BaseException) -> str:
    """Return the value of ``error.type``: the name of the nearest kind of error that SDK-RFC 0058 knows, or ``_OTHER``."""
    return next((ERROR_TYPES[kind] for kind in type(error).__mro__ if kind in ERROR_TYPES), OTHER_ERROR)
