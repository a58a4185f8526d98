"""Attributes of spans and tags of metrics: keys, values, and the spans and metrics that have each attribute.

Source: SDK-RFC 0067 "Attributes Common to all Spans", "Outer Request Span Attributes", "Dispatch Span Attributes",
"Operations Value Recorder". Keys come from OpenTelemetry's stable conventions for databases if they define one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import NamedTuple

from triclinium_core import errors
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import one_line
from triclinium_core.telemetry.facts import microseconds
from triclinium_core.telemetry.tracing import AttributeValue, StatusCode

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
"""Value of ``db.system.name``."""
TCP = "tcp"
"""Value of ``network.transport``."""
OTHER_ERROR = "_OTHER"
"""Value of ``error.type`` for an error that is not an instance of a class in ``ERROR_TYPES``."""


@unique
class Bearer(Enum):
    """Kind of span or metric that has attributes."""

    OUTER = "the span of an operation, or of a call that wraps several"
    ENCODING = "request_encoding"
    DISPATCH = "dispatch_to_server"
    METRIC = "db.client.operation.duration"


class AttributeRow(NamedTuple):
    """Spans and metrics that have one attribute, and the type and condition of the attribute."""

    bearers: frozenset[Bearer]
    kinds: tuple[type[AttributeValue], ...]
    when: str
    """Condition under which a span or metric has the attribute; empty for always."""


_OUTER, _METRIC = frozenset({Bearer.OUTER}), frozenset({Bearer.OUTER, Bearer.METRIC})
_DISPATCH = frozenset({Bearer.DISPATCH})
_EVERYWHERE = frozenset(Bearer)

ATTRIBUTES: Mapping[str, AttributeRow] = table_of(
    (
        (SYSTEM_NAME, AttributeRow(_EVERYWHERE, (str,), "")),
        (CLUSTER_UUID, AttributeRow(_EVERYWHERE, (str,), "if the cluster has provided this information")),
        (CLUSTER_NAME, AttributeRow(_EVERYWHERE, (str,), "if the cluster has provided this information")),
        (OPERATION_NAME, AttributeRow(_METRIC, (str,), "")),
        (SERVICE, AttributeRow(_METRIC, (str,), "unless the call goes to several services, as ping does")),
        (NAMESPACE, AttributeRow(_METRIC, (str,), "at the bucket level or below")),
        (SCOPE_NAME, AttributeRow(_METRIC, (str,), "at the scope level or below")),
        (COLLECTION_NAME, AttributeRow(_METRIC, (str,), "at the collection level")),
        (ERROR_TYPE, AttributeRow(_METRIC, (str,), "if the operation failed")),
        (DURABILITY, AttributeRow(_OUTER, (str,), "data service and durability level set")),
        (QUERY_TEXT, AttributeRow(_OUTER, (str,), "query and analytics with positional or named parameters")),
        (RETRIES, AttributeRow(_OUTER, (int,), "")),
        (NETWORK_TRANSPORT, AttributeRow(_DISPATCH, (str,), "")),
        (SERVER_ADDRESS, AttributeRow(_DISPATCH, (str,), "")),
        (SERVER_PORT, AttributeRow(_DISPATCH, (int,), "")),
        (PEER_ADDRESS, AttributeRow(_DISPATCH, (str,), "if the driver knows the address")),
        (PEER_PORT, AttributeRow(_DISPATCH, (int,), "if the driver knows the address")),
        (LOCAL_ID, AttributeRow(_DISPATCH, (str,), "data service")),
        (OPERATION_ID, AttributeRow(_DISPATCH, (int, str), "data service (the opaque, a number), query and analytics")),
        (SERVER_DURATION, AttributeRow(_DISPATCH, (int,), "if the server reports it, in microseconds")),
    )
)
"""All attributes by key."""


CLUSTER_LABEL_SIZE_MAX = 128
"""Maximum number of characters of a cluster's name or UUID in spans and metrics, because metric systems refuse long
tags. A UUID has 32 characters."""


NO_LABELS: Mapping[str, str] = {}
"""Labels of a cluster before its first config. After a config without labels, the mapping is a different empty one."""


def cluster_attributes(uuid: str | None, name: str | None) -> Mapping[str, str]:
    """Return the attributes of a cluster for all spans and metrics (SDK-RFC 0067 "Cluster labels").

    Each label has at most ``CLUSTER_LABEL_SIZE_MAX`` printable characters. Omit an empty or blank label.
    """
    labels = ((CLUSTER_UUID, uuid), (CLUSTER_NAME, name))
    bounded = {key: one_line(value)[:CLUSTER_LABEL_SIZE_MAX].rstrip() for key, value in labels if value}
    return {key: value for key, value in bounded.items() if value}


def keyspace_attributes(
    bucket: str | None, scope: str | None = None, collection: str | None = None
) -> Mapping[str, AttributeValue]:
    """Return the attributes for the bucket, scope and collection of a call. Omit an attribute without a value."""
    names = ((NAMESPACE, bucket), (SCOPE_NAME, scope), (COLLECTION_NAME, collection))
    return {key: value for key, value in names if value is not None}


def dispatch_attributes(
    server: tuple[str, int],
    *,
    peer: str | None,
    local_id: str | None = None,
    operation_id: int | str | None = None,
) -> Mapping[str, AttributeValue]:
    """Return the attributes of an attempt's span that are known before the response.

    Args:
        server: canonical host and port of the node, even if the client uses another address.
        peer: remote end of the stream, ``address:port``; None if the driver did not report it.
        local_id: id of the connection, for key-value only; None for other services.
        operation_id: opaque of the attempt, or client context id of a statement; None without either.
    """
    attributes: dict[str, AttributeValue] = {
        NETWORK_TRANSPORT: TCP,
        SERVER_ADDRESS: server[0],
        SERVER_PORT: server[1],
    }
    if peer is not None:
        host, _, port = peer.rpartition(":")
        attributes[PEER_ADDRESS] = host.removeprefix("[").removesuffix("]")
        if port.isdecimal():
            attributes[PEER_PORT] = int(port)
    if local_id is not None:
        attributes[LOCAL_ID] = local_id
    if operation_id is not None:
        attributes[OPERATION_ID] = operation_id
    return attributes


def answer_attributes(server_seconds: float | None) -> Mapping[str, AttributeValue]:
    """Return the attributes of an attempt's span that the client takes from the response.

    Args:
        server_seconds: duration that the server reported; None if it reported none.
    """
    return {} if server_seconds is None else {SERVER_DURATION: microseconds(server_seconds)}


_WITHOUT_NAME = (errors.CouchbaseException, errors.KeyValueException, errors.InternalError)
"""Exceptions without a meaningful name in the RFC: the base class, a group of exceptions, and the internal defect."""


def _is_named_by_the_rfc(kind: type[errors.CouchbaseException]) -> bool:
    return kind.rfc_class is kind and kind not in _WITHOUT_NAME


ERROR_TYPES: Mapping[type[errors.CouchbaseException], str] = {
    kind: kind.__name__.removesuffix("Exception")
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.CouchbaseException) and _is_named_by_the_rfc(kind)
}
"""Names in the RFCs, such as ``DocumentLocked``, by exception."""


ANSWERS: frozenset[type[errors.CouchbaseException]] = frozenset(
    {
        errors.DocumentNotFoundException,
        errors.DocumentExistsException,
        errors.DocumentNotLockedException,
        errors.CasMismatchException,
        errors.PathNotFoundException,
        errors.PathExistsException,
    }
)
"""Errors that report the state of the document. They leave the status of the span unset, because RFC 0067 "Request Span
Status" uses the status "error" for failures, not for error codes such as "document not found"."""


def outer_status(error: BaseException | None) -> StatusCode:
    """Return the status of the outer span of a call.

    Args:
        error: exception that the call raised; None if it returned a result.
    """
    if error is None:
        return StatusCode.OK
    return StatusCode.UNSET if isinstance(error, tuple(ANSWERS)) else StatusCode.ERROR


def tags_of(attributes: Mapping[str, AttributeValue]) -> Mapping[str, str]:
    """Return the attributes of an outer span that are also tags of its metric."""
    return {key: str(value) for key, value in attributes.items() if Bearer.METRIC in ATTRIBUTES[key].bearers}


def error_type(error: BaseException) -> str:
    """Return the value of ``error.type``: the name of the nearest class in ``ERROR_TYPES``, or ``_OTHER``."""
    return next((ERROR_TYPES[kind] for kind in type(error).__mro__ if kind in ERROR_TYPES), OTHER_ERROR)
