"""Fields that clients in other languages read from management responses without a guard.

If such a field is missing, or has another type, a client fails in a way that hides the reason: the C++ client ends its
process, the Go client reports a JSON error, the client for the JVM reports a null pointer.

Sources, by the newest commit that was read: couchbase-cxx-client ef6b12a (``.at(…)``, ``get_string()`` and its kin in
``core/operations/management``, ``core/management`` and ``core/topology``); gocb c7a4682 and gocbcore fd54a52 (structs
with JSON tags, which refuse another type; values that are parsed further); couchbase-jvm-clients 2184c3c
(``get(…)`` that is dereferenced, ``requireNonNull``, casts, ``@JsonProperty`` without a default).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from triclinium_core.retry.couchbase import Service

CXX, GO, JVM = "couchbase-cxx-client", "gocb and gocbcore", "couchbase-jvm-clients"


class Request(NamedTuple):
    """A request to the fake, and the status of its response."""

    method: str
    target: str
    body: str = ""
    service: Service = Service.MANAGEMENT
    status: int = 200


class Field(NamedTuple):
    """A field that clients read.

    ``path`` has names separated by dots; ``[]`` after a name stands for all elements of an array, ``{}`` for all values
    of an object. Each path must lead to at least one value.
    """

    answer: str
    """Key in ``ANSWERS``."""
    path: str
    kind: str
    """Key in the table of kinds of the test."""
    clients: tuple[str, ...]


BUCKETS = "/pools/default/buckets"
USERS = "/settings/rbac/users"
SEARCH_INDEX = '{"type":"fulltext-index","sourceType":"couchbase","sourceName":"default"}'

PREPARED = (
    Request("POST", BUCKETS, "name=magma&ramQuotaMB=1024&storageBackend=magma", status=202),
    Request("POST", BUCKETS, "name=ephemeral&ramQuotaMB=100&bucketType=ephemeral&flushEnabled=1", status=202),
    Request("POST", BUCKETS, "name=memcached&ramQuotaMB=64&bucketType=memcached", status=202),
    Request("PUT", "/settings/rbac/groups/readers", "roles=data_reader[default]"),
    Request("PUT", f"{USERS}/local/ada", "password=secret&roles=admin&groups=readers"),
    Request("PUT", f"{USERS}/external/ben", "roles=data_reader[*]"),
    Request(
        "PUT", "/default/_design/dev_pets", '{"views":{"all":{"map":"function () {}"}}}', Service.VIEWS, status=201
    ),
    Request("PUT", "/api/index/pets", SEARCH_INDEX, Service.SEARCH),
    Request("POST", "/query/service", '{"statement":"CREATE INDEX by_age ON `default`(age)"}', Service.QUERY),
)
"""Requests that precede all others, so that the lists are not empty."""

ANSWERS: Mapping[str, tuple[Request, ...]] = {
    "cluster": (Request("GET", "/pools/default"), Request("GET", "/pools/nodes")),
    "buckets": (Request("GET", BUCKETS),),
    "bucket": tuple(Request("GET", f"{BUCKETS}/{name}") for name in ("default", "magma", "ephemeral", "memcached")),
    "configs": (
        Request("GET", "/pools/default/nodeServices"),
        *(Request("GET", f"/pools/default/b/{name}") for name in ("default", "magma", "ephemeral", "memcached")),
    ),
    "bucket configs": tuple(Request("GET", f"/pools/default/b/{name}") for name in ("default", "magma", "ephemeral")),
    "scopes": tuple(Request("GET", f"{BUCKETS}/{name}/scopes") for name in ("default", "magma", "ephemeral")),
    "changed scopes": (
        Request("POST", f"{BUCKETS}/default/scopes", "name=zoo"),
        Request("POST", f"{BUCKETS}/default/scopes/zoo/collections", "name=pets"),
        Request("PATCH", f"{BUCKETS}/default/scopes/zoo/collections/pets", "maxTTL=5"),
        Request("DELETE", f"{BUCKETS}/default/scopes/zoo/collections/pets"),
        Request("DELETE", f"{BUCKETS}/default/scopes/zoo"),
    ),
    "design documents": (Request("GET", f"{BUCKETS}/default/ddocs"),),
    "design document": (Request("GET", "/default/_design/dev_pets", service=Service.VIEWS),),
    "users": (Request("GET", USERS),),
    "user": (Request("GET", f"{USERS}/local/ada"), Request("GET", f"{USERS}/external/ben")),
    "local user": (Request("GET", f"{USERS}/local/ada"),),
    "roles": (Request("GET", "/settings/rbac/roles"),),
    "groups": (Request("GET", "/settings/rbac/groups"),),
    "group": (Request("GET", "/settings/rbac/groups/readers"),),
    "refusals": (
        Request("POST", BUCKETS, "name=default&ramQuotaMB=100", status=400),
        Request("POST", f"{BUCKETS}/default", "evictionPolicy=noEviction", status=400),
        Request("PUT", f"{USERS}/local/ada", "roles=data_reader[gone]", status=400),
        Request("PUT", "/settings/rbac/groups/readers", "roles=king", status=400),
        Request("POST", f"{BUCKETS}/default/scopes", "name=_default", status=400),
        Request("POST", "/controller/changePassword", "", status=400),
    ),
    "refused flush": (Request("POST", f"{BUCKETS}/magma/controller/doFlush", status=400),),
    "search indexes": (Request("GET", "/api/index", service=Service.SEARCH),),
    "search index": (Request("GET", "/api/index/pets", service=Service.SEARCH),),
    "query indexes": (
        Request("POST", "/query/service", '{"statement":"SELECT idx.* FROM system:indexes AS idx"}', Service.QUERY),
    ),
}

_NODE = (
    ("hostname", "text", (CXX, GO)),
    ("otpNode", "text", (CXX,)),
    ("version", "text", (CXX, GO)),
    ("os", "text", (CXX, GO)),
    ("status", "text", (CXX, GO)),
    ("services[]", "text", (CXX,)),
    ("nodeUUID", "text", (CXX,)),
    ("clusterCompatibility", "integer", (GO,)),
    ("clusterMembership", "text", (GO,)),
    ("couchApiBase", "text", (GO,)),
    ("interestingStats", "object", (GO,)),
    ("memoryTotal", "number", (GO,)),
    ("memoryFree", "number", (GO,)),
    ("mcdMemoryReserved", "number", (GO,)),
    ("mcdMemoryAllocated", "number", (GO,)),
    ("ports{}", "integer", (CXX, GO)),
    ("uptime", "digits", (GO,)),
)
_BUCKET = (
    ("name", "text", (CXX, GO, JVM)),
    ("uuid", "text", (CXX,)),
    ("quota.rawRAM", "integer", (CXX, GO, JVM)),
    ("quota.ram", "integer", (GO, JVM)),
    ("replicaNumber", "integer", (CXX, GO, JVM)),
    ("bucketType", "bucket type", (CXX, GO, JVM)),
    ("evictionPolicy", "text", (CXX, GO)),
    ("conflictResolutionType", "text", (CXX, GO)),
    ("durabilityMinLevel", "text", (CXX, GO)),
    ("compressionMode", "text", (GO,)),
    ("maxTTL", "integer", (CXX, GO, JVM)),
    ("controllers{}", "text", (CXX, GO, JVM)),
    ("bucketCapabilities[]", "text", (CXX,)),
    ("nodes[].status", "text", (CXX,)),
    ("nodes[].hostname", "text", (CXX,)),
    ("nodes[].version", "text", (CXX,)),
    ("nodes[].services[]", "text", (CXX,)),
    ("nodes[].ports{}", "integer", (CXX,)),
)
_USER = (
    ("domain", "text", (CXX, GO, JVM)),
    ("id", "text", (CXX, GO, JVM)),
    ("roles[].role", "text", (CXX, GO, JVM)),
    ("roles[].origins[].type", "text", (CXX, GO, JVM)),
    ("groups", "array", (CXX, GO)),
    ("external_groups", "array", (CXX, GO)),
)
_SEARCH_INDEX = (
    ("uuid", "text", (CXX, GO)),
    ("name", "text", (CXX, GO)),
    ("type", "text", (CXX, GO)),
    ("sourceName", "text", (CXX, GO)),
    ("sourceType", "text", (CXX, GO)),
)

FIELDS: tuple[Field, ...] = (
    *(Field("cluster", f"nodes[].{path}", kind, clients) for path, kind, clients in _NODE),
    Field("cluster", "bucketNames[].bucketName", "text", (CXX,)),
    Field("cluster", "bucketNames[].uuid", "text", (CXX,)),
    *(Field("bucket", path, kind, clients) for path, kind, clients in _BUCKET),
    *(Field("buckets", f"[].{path}", kind, clients) for path, kind, clients in _BUCKET),
    Field("configs", "rev", "integer", (CXX, GO, JVM)),
    Field("configs", "revEpoch", "integer", (CXX, GO)),
    Field("configs", "nodesExt[].services{}", "integer", (CXX, GO, JVM)),
    Field("configs", "nodesExt[].alternateAddresses{}.hostname", "text", (CXX, GO)),
    Field("configs", "nodesExt[].alternateAddresses{}.ports{}", "integer", (CXX, GO)),
    Field("configs", "clusterCapabilities{}[]", "text", (CXX, GO)),
    Field("bucket configs", "name", "text", (CXX, GO)),
    Field("bucket configs", "uuid", "text", (CXX, GO)),
    Field("bucket configs", "nodeLocator", "text", (CXX, GO, JVM)),
    Field("bucket configs", "bucketType", "bucket type", (JVM,)),
    Field("bucket configs", "bucketCapabilities[]", "text", (CXX, GO)),
    Field("bucket configs", "bucketCapabilitiesVer", "any text", (GO,)),
    Field("bucket configs", "uri", "text", (GO,)),
    Field("bucket configs", "streamingUri", "text", (GO,)),
    Field("bucket configs", "nodes[].ports{}", "integer", (CXX, GO)),
    Field("bucket configs", "nodes[].hostname", "text", (CXX, GO)),
    Field("bucket configs", "vBucketServerMap.numReplicas", "integer", (CXX, GO, JVM)),
    Field("bucket configs", "vBucketServerMap.serverList[]", "text", (CXX, GO)),
    Field("bucket configs", "vBucketServerMap.hashAlgorithm", "text", (GO,)),
    Field("bucket configs", "vBucketServerMap.vBucketMap[][]", "index", (CXX, GO, JVM)),
    Field("scopes", "uid", "hexadecimal", (CXX, GO)),
    Field("scopes", "scopes[].uid", "hexadecimal", (CXX, GO)),
    Field("scopes", "scopes[].name", "text", (CXX, GO)),
    Field("scopes", "scopes[].collections[].uid", "hexadecimal", (CXX, GO)),
    Field("scopes", "scopes[].collections[].name", "text", (CXX, GO)),
    Field("scopes", "scopes[].collections[].maxTTL", "index", (CXX, GO, JVM)),
    Field("scopes", "scopes[].collections[].history", "boolean", (CXX, GO, JVM)),
    Field("changed scopes", "uid", "hexadecimal", (CXX,)),
    Field("design documents", "rows[].doc.meta.rev", "text", (CXX,)),
    Field("design documents", "rows[].doc.meta.id", "text", (CXX, GO, JVM)),
    Field("design documents", "rows[].doc.json", "object", (JVM,)),
    Field("design document", "views{}.map", "text", (JVM,)),
    *(Field("user", path, kind, clients) for path, kind, clients in _USER),
    *(Field("users", f"[].{path}", kind, clients) for path, kind, clients in _USER),
    Field("local user", "password_change_date", "time", (CXX, GO, JVM)),
    Field("roles", "[].role", "text", (CXX, GO, JVM)),
    Field("roles", "[].name", "text", (CXX, GO)),
    Field("roles", "[].desc", "text", (CXX, GO)),
    Field("group", "id", "text", (CXX, GO, JVM)),
    Field("group", "roles[].role", "text", (CXX, GO, JVM)),
    Field("groups", "[].id", "text", (CXX, GO, JVM)),
    Field("groups", "[].roles[].role", "text", (CXX, GO, JVM)),
    Field("refusals", "errors{}", "text", (CXX, GO)),
    Field("refused flush", "{}", "text", (GO,)),
    Field("search indexes", "status", "text", (CXX, GO)),
    *(
        Field("search indexes", f"indexDefs.indexDefs{{}}.{path}", kind, clients)
        for path, kind, clients in _SEARCH_INDEX
    ),
    Field("search index", "status", "text", (CXX, GO)),
    *(Field("search index", f"indexDef.{path}", kind, clients) for path, kind, clients in _SEARCH_INDEX),
    Field("query indexes", "status", "text", (CXX,)),
    Field("query indexes", "results[].using", "text", (CXX, GO)),
    Field("query indexes", "results[].name", "text", (CXX, GO)),
    Field("query indexes", "results[].state", "text", (CXX, GO)),
    Field("query indexes", "results[].index_key[]", "text", (CXX, GO, JVM)),
)
