"""Features of a server that a fake cluster does not support, as a table.

The page ``docs/reference/not_supported.md`` has the same rows. The refusal of a request for such a feature names the
page.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from triclinium_core.retry.couchbase import Service

PAGE = "docs/reference/not_supported.md"
"""Page that lists the rows of this table."""


class Route(NamedTuple):
    """HTTP requests with any method; ``path`` has the decoded segments, ``*`` for any one, ``**`` for any rest."""

    path: tuple[str, ...]

    def matches(self, segments: tuple[str, ...]) -> bool:
        """Return whether a request with the path ``segments`` is among these requests."""
        path, fits = self.path, len(segments) == len(self.path)
        if path[-1:] == ("**",):
            path, fits = path[:-1], len(segments) >= len(path) - 1
        pairs = zip(path, segments, strict=False)
        return fits and all(want in ("*", have) for want, have in pairs)


class Response(StrEnum):
    """Response to a request for a feature, as the page describes it."""

    NO_SERVICE = "the service is not announced"
    KV_NOT_SUPPORTED = "status NOT_SUPPORTED (0x83)"
    HTTP_501 = "HTTP status 501"
    SERVICE_ERROR = "error of the service"
    ACCEPTED = "accepted without effect"
    NOT_GRANTED = "not granted by HELLO"


class Unsupported(NamedTuple):
    """One feature; ``name`` identifies it in responses, on the page, and in the table of the official tests."""

    name: str
    service: str
    what: str
    """Requests or behaviour, as a noun phrase."""
    response: Response
    opcodes: Mapping[int, str] = MappingProxyType({})
    """Names of the commands by opcode."""
    routes: tuple[Route, ...] = ()


def _routes(*paths: str) -> tuple[Route, ...]:
    return tuple(Route(tuple(path.split("/"))) for path in paths)


# fmt: off
_DCP = {
    0x50: "DCP_OPEN", 0x51: "DCP_ADD_STREAM", 0x52: "DCP_CLOSE_STREAM", 0x53: "DCP_STREAM_REQ",
    0x54: "DCP_GET_FAILOVER_LOG", 0x55: "DCP_STREAM_END", 0x56: "DCP_SNAPSHOT_MARKER", 0x57: "DCP_MUTATION",
    0x58: "DCP_DELETION", 0x59: "DCP_EXPIRATION", 0x5B: "DCP_SET_VBUCKET_STATE", 0x5C: "DCP_NOOP",
    0x5D: "DCP_BUFFER_ACKNOWLEDGEMENT", 0x5E: "DCP_CONTROL", 0x5F: "DCP_SYSTEM_EVENT", 0x60: "DCP_PREPARE",
    0x61: "DCP_SEQNO_ACKNOWLEDGED", 0x62: "DCP_COMMIT", 0x63: "DCP_ABORT",
}
_QUIET = {
    0x09: "GETQ", 0x0C: "GETK", 0x0D: "GETKQ", 0x11: "SETQ", 0x12: "ADDQ", 0x13: "REPLACEQ", 0x14: "DELETEQ",
    0x15: "INCREMENTQ", 0x16: "DECREMENTQ", 0x19: "APPENDQ", 0x1A: "PREPENDQ", 0x1E: "GATQ",
}
_WITH_META = {
    0xA1: "GETQ_META", 0xA2: "SET_WITH_META", 0xA3: "SETQ_WITH_META", 0xA4: "ADD_WITH_META", 0xA5: "ADDQ_WITH_META",
    0xA8: "DEL_WITH_META", 0xA9: "DELQ_WITH_META", 0xB2: "RETURN_META",
}
_SINGLE_PATH = {
    0xC5: "SUBDOC_GET", 0xC6: "SUBDOC_EXISTS", 0xC7: "SUBDOC_DICT_ADD", 0xC8: "SUBDOC_DICT_UPSERT",
    0xC9: "SUBDOC_DELETE", 0xCA: "SUBDOC_REPLACE", 0xCB: "SUBDOC_ARRAY_PUSH_LAST", 0xCC: "SUBDOC_ARRAY_PUSH_FIRST",
    0xCD: "SUBDOC_ARRAY_INSERT", 0xCE: "SUBDOC_ARRAY_ADD_UNIQUE", 0xCF: "SUBDOC_COUNTER", 0xD2: "SUBDOC_GET_COUNT",
    0xD3: "SUBDOC_REPLACE_BODY_WITH_XATTR",
}
_ADMINISTRATION = {
    0x07: "QUIT", 0x08: "FLUSH", 0x0B: "VERSION", 0x10: "STAT", 0x1B: "VERBOSITY", 0x3D: "SET_VBUCKET",
    0x3E: "GET_VBUCKET", 0x3F: "DEL_VBUCKET", 0x82: "SET_PARAM", 0x85: "CREATE_BUCKET", 0x86: "DELETE_BUCKET",
    0x87: "LIST_BUCKETS", 0xB9: "COLLECTIONS_SET_MANIFEST",
}
_READS = {
    0x48: "GET_ALL_VB_SEQNOS", 0x49: "GETEX", 0x4A: "GETEX_REPLICA", 0x93: "EVICT_KEY", 0xB6: "GET_RANDOM_KEY",
    0xB8: "GET_KEYS", 0xBC: "COLLECTIONS_GET_SCOPE_ID",
}
# fmt: on

_KV = Response.KV_NOT_SUPPORTED

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported("dcp", "KV", "change streams (DCP), which indexers, XDCR and connectors use", _KV, _DCP),
    Unsupported(
        "quiet-commands", "KV", "commands that omit the response to a success or a miss, and `GETK`", _KV, _QUIET
    ),
    Unsupported("with-meta", "KV", "writes with the metadata of another cluster", _KV, _WITH_META),
    Unsupported(
        "single-path-subdocument",
        "KV",
        "sub-document commands with one path; those with several paths are supported",
        _KV,
        _SINGLE_PATH,
    ),
    Unsupported("other-reads", "KV", "lists of keys, random documents, evictions, and rare reads", _KV, _READS),
    Unsupported("node-administration", "KV", "commands of the cluster manager and of tools", _KV, _ADMINISTRATION),
    Unsupported(
        "connection-features",
        "KV",
        "`SUBDOC_DOCUMENT_MACRO`, `REPORT_UNIT_USAGE` and `NON_BLOCKING_THROTTLING`",
        Response.NOT_GRANTED,
    ),
    Unsupported("maximum-expiry", "KV", "the maximum expiry of a bucket or a collection", Response.ACCEPTED),
    Unsupported("minimum-durability", "KV", "the minimum durability of a bucket", Response.ACCEPTED),
    Unsupported(
        "memory-quota", "KV", "memory quotas, eviction, and `TEMPORARY_FAILURE` for lack of memory", Response.ACCEPTED
    ),
    Unsupported("roles", "all", "permissions: every user with a valid password may do everything", Response.ACCEPTED),
    Unsupported(
        "sqlpp-documents",
        "query",
        "statements on documents: `SELECT` from a collection, `INSERT`, `UPDATE`, `MERGE`, `DELETE`; script a response",
        Response.SERVICE_ERROR,
    ),
    Unsupported(
        "sqlpp-transactions",
        "query",
        "`BEGIN WORK` and the other statements of a transaction; transactions of clients by key-value are supported",
        Response.SERVICE_ERROR,
    ),
    Unsupported(
        "sqlpp-functions",
        "query",
        "user-defined functions, expressions beyond comparisons, joins, grouping",
        Response.SERVICE_ERROR,
    ),
    Unsupported(
        "query-administration",
        "query",
        "lists of active and completed requests, settings, and vitals",
        Response.HTTP_501,
        routes=_routes("admin/**"),
    ),
    Unsupported(
        "search-hits",
        "search",
        "searches in documents; script the hits of an index",
        Response.SERVICE_ERROR,
    ),
    Unsupported(
        "search-mappings",
        "search",
        "`analyzeDoc` by a mapping with types, properties or an analyzer other than `standard`, and of numbers and dates",
        Response.HTTP_501,
    ),
    Unsupported(
        "search-controls",
        "search",
        "pauses of the ingestion, frozen plans and disallowed queries of an index",
        Response.ACCEPTED,
    ),
    Unsupported(
        "search-administration",
        "search",
        "partitions, configuration, logs, backups, and statistics of nodes",
        Response.HTTP_501,
        routes=_routes(
            "api/pindex/**",
            "api/cfg/**",
            "api/cfgRefresh",
            "api/managerKick",
            "api/managerMeta",
            "api/log/**",
            "api/diag/**",
            "api/runtime/**",
            "api/v1/**",
            "api/query/**",
            "api/stats",
            "api/statsStream",
            "api/nsstatus",
            "api/nodeUtilStats",
            "api/conciseOptions",
            "api/searchHistory",
            "api/managerOptions",
        ),
    ),
    Unsupported(
        "analytics-data",
        "analytics",
        "dataverses, datasets, indexes, and statements on them; script a response",
        Response.SERVICE_ERROR,
    ),
    Unsupported(
        "analytics-links",
        "analytics",
        "links to other clusters and to object storage",
        Response.HTTP_501,
        routes=_routes("analytics/link/**"),
    ),
    Unsupported(
        "analytics-administration",
        "analytics",
        "pending mutations, status, active requests, and configuration",
        Response.HTTP_501,
        routes=_routes(
            "analytics/node/**",
            "analytics/status/**",
            "analytics/cluster/**",
            "analytics/config/**",
            "analytics/admin/**",
        ),
    ),
    Unsupported("view-functions", "views", "the functions of a view; script its rows", Response.SERVICE_ERROR),
    Unsupported("eventing", "eventing", "functions, and their management", Response.NO_SERVICE),
    Unsupported("backup", "backup", "plans, repositories and restores", Response.NO_SERVICE),
    Unsupported(
        "cluster-changes",
        "management",
        "adding, removing, failing over and rebalancing nodes over REST; use `FakeNodes` or the control API",
        Response.HTTP_501,
        routes=_routes(
            "controller/addNode",
            "controller/addNodeV2",
            "controller/rebalance",
            "controller/failOver",
            "controller/startGracefulFailover",
            "controller/startFailover",
            "controller/ejectNode",
            "controller/reAddNode",
            "controller/reFailOver",
            "controller/setRecoveryType",
            "controller/stopRebalance",
            "node/controller/**",
            "nodes/self/**",
            "pools/default/rebalanceProgress",
            "pools/default/serverGroups/**",
        ),
    ),
    Unsupported(
        "replication",
        "management",
        "replication between clusters (XDCR)",
        Response.HTTP_501,
        routes=_routes(
            "controller/createReplication",
            "controller/cancelXDCR/**",
            "pools/default/remoteClusters/**",
            "settings/replications/**",
        ),
    ),
    Unsupported("compaction", "management", "compaction of buckets and of views", Response.ACCEPTED),
    Unsupported(
        "statistics",
        "management",
        "statistics, tasks, metrics and logs of the cluster",
        Response.HTTP_501,
        routes=_routes(
            "pools/default/tasks",
            "pools/default/stats/**",
            "pools/default/buckets/*/stats/**",
            "metrics/**",
            "prometheus_sd_config/**",
            "logs/**",
            "diag/**",
            "sasl_logs/**",
            "pools/default/samples/**",
        ),
    ),
    Unsupported(
        "settings",
        "management",
        "settings of the cluster, certificates, audit, LDAP, SAML, and sample buckets",
        Response.HTTP_501,
        routes=_routes(
            "settings/web",
            "settings/stats",
            "settings/autoFailover/**",
            "settings/autoCompaction",
            "settings/audit/**",
            "settings/ldap/**",
            "settings/saml/**",
            "settings/security/**",
            "settings/passwordPolicy",
            "settings/indexes",
            "settings/querySettings/**",
            "settings/analytics",
            "settings/alerts/**",
            "settings/retryRebalance",
            "settings/license/**",
            "settings/serverless",
            "settings/resourceManagement/**",
            "settings/metrics/**",
            "internalSettings/**",
            "sampleBuckets/**",
            "pools/default/certificate/**",
            "pools/default/trustedCAs/**",
            "jsonWebTokens/**",
        ),
    ),
)

_ROWS: Mapping[str, Unsupported] = {row.name: row for row in UNSUPPORTED}
_OPCODES: Mapping[int, Unsupported] = {opcode: row for row in UNSUPPORTED for opcode in row.opcodes}


def reason(name: str) -> str:
    """Return the sentence with which a response names a feature and the page; raise KeyError for an unknown name."""
    return f"this fake server does not support {_ROWS[name].what} ({name} in {PAGE})"


def unsupported_command(opcode: int) -> tuple[str, str] | None:
    """Return the name of a command and the reason; None for an opcode in no row."""
    row = _OPCODES.get(opcode)
    return None if row is None else (row.opcodes[opcode], reason(row.name))


def unsupported_request(service: Service, segments: tuple[str, ...]) -> str | None:
    """Return the reason for a request; None for a request in no row."""
    for row in UNSUPPORTED:
        if row.service == service.value and any(route.matches(segments) for route in row.routes):
            return reason(row.name)
    return None
