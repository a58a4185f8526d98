"""Fields that clients in other languages read from management responses without a guard.

If such a field is missing, or has another type, a client fails in a way that hides the reason: the C++ client ends its
process, the Go client reports a JSON error, the client for the JVM reports a null pointer.

Sources, by the newest commit that was read: couchbase-cxx-client ef6b12a (``.at(…)``, ``get_string()`` and its kin in
``core/operations/management``, ``core/management`` and ``core/topology``); gocb c7a4682 and gocbcore fd54a52 (structs
with JSON tags, which refuse another type; values that are parsed further); couchbase-jvm-clients 2184c3c
(``get(…)`` that is dereferenced, ``requireNonNull``, casts, ``@JsonProperty`` without a default).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_ALL = (CXX, GO, JVM)

_NODE = (
    ("hostname version os status", "text", (CXX, GO)),
    ("otpNode services[] nodeUUID", "text", (CXX,)),
    ("clusterMembership couchApiBase", "text", (GO,)),
    ("clusterCompatibility", "integer", (GO,)),
    ("interestingStats", "object", (GO,)),
    ("memoryTotal memoryFree mcdMemoryReserved mcdMemoryAllocated", "number", (GO,)),
    ("ports{}", "integer", (CXX, GO)),
    ("uptime", "digits", (GO,)),
)
_BUCKET = (
    ("name controllers{}", "text", _ALL),
    ("bucketType", "bucket type", _ALL),
    ("quota.rawRAM replicaNumber maxTTL", "integer", _ALL),
    ("quota.ram", "integer", (GO, JVM)),
    ("evictionPolicy conflictResolutionType durabilityMinLevel", "text", (CXX, GO)),
    ("compressionMode", "text", (GO,)),
    ("uuid bucketCapabilities[]", "text", (CXX,)),
    ("nodes[].status nodes[].hostname nodes[].version nodes[].services[]", "text", (CXX,)),
    ("nodes[].ports{}", "integer", (CXX,)),
)
_BUCKET_CONFIG = (
    ("nodeLocator", "text", _ALL),
    ("name uuid bucketCapabilities[] nodes[].hostname vBucketServerMap.serverList[]", "text", (CXX, GO)),
    ("uri streamingUri vBucketServerMap.hashAlgorithm", "text", (GO,)),
    ("bucketCapabilitiesVer", "any text", (GO,)),
    ("bucketType", "bucket type", (JVM,)),
    ("nodes[].ports{}", "integer", (CXX, GO)),
    ("vBucketServerMap.numReplicas", "integer", _ALL),
    ("vBucketServerMap.vBucketMap[][]", "index", _ALL),
)
_SCOPES = (
    ("uid scopes[].uid scopes[].collections[].uid", "hexadecimal", (CXX, GO)),
    ("scopes[].name scopes[].collections[].name", "text", (CXX, GO)),
    ("scopes[].collections[].maxTTL", "index", _ALL),
    ("scopes[].collections[].history", "boolean", _ALL),
)
_USER = (
    ("domain id roles[].role roles[].origins[].type", "text", _ALL),
    ("groups external_groups", "array", (CXX, GO)),
)

_TABLE: Sequence[tuple[Mapping[str, str], Sequence[tuple[str, str, tuple[str, ...]]]]] = (
    ({"cluster": "nodes[]."}, _NODE),
    ({"cluster": "bucketNames[]."}, (("bucketName uuid", "text", (CXX,)),)),
    ({"bucket": "", "buckets": "[]."}, _BUCKET),
    ({"configs": ""}, (("rev", "integer", _ALL), ("revEpoch", "integer", (CXX, GO)))),
    ({"configs": ""}, (("clusterCapabilities{}[]", "text", (CXX, GO)),)),
    ({"configs": "nodesExt[]."}, (("services{}", "integer", _ALL),)),
    (
        {"configs": "nodesExt[].alternateAddresses{}."},
        (("hostname", "text", (CXX, GO)), ("ports{}", "integer", (CXX, GO))),
    ),
    ({"bucket configs": ""}, _BUCKET_CONFIG),
    ({"scopes": ""}, _SCOPES),
    ({"changed scopes": ""}, (("uid", "hexadecimal", (CXX,)),)),
    (
        {"design documents": "rows[].doc."},
        (("meta.rev", "text", (CXX,)), ("meta.id", "text", _ALL), ("json", "object", (JVM,))),
    ),
    ({"design document": ""}, (("views{}.map", "text", (JVM,)),)),
    ({"user": "", "users": "[]."}, _USER),
    ({"local user": ""}, (("password_change_date", "time", _ALL),)),
    ({"roles": "[]."}, (("role", "text", _ALL), ("name desc", "text", (CXX, GO)))),
    ({"group": "", "groups": "[]."}, (("id roles[].role", "text", _ALL),)),
    ({"refusals": ""}, (("errors{}", "text", (CXX, GO)),)),
    ({"refused flush": ""}, (("{}", "text", (GO,)),)),
    ({"search indexes": "", "search index": ""}, (("status", "text", (CXX, GO)),)),
    (
        {"search indexes": "indexDefs.indexDefs{}.", "search index": "indexDef."},
        (("uuid name type sourceName sourceType", "text", (CXX, GO)),),
    ),
    ({"query indexes": ""}, (("status", "text", (CXX,)), ("results[].index_key[]", "text", _ALL))),
    ({"query indexes": "results[]."}, (("using name state", "text", (CXX, GO)),)),
)
"""Fields of several answers. An answer has the start of the paths, and a row has their ends, separated by spaces."""

FIELDS: Sequence[Field] = tuple(
    Field(answer, start + end, kind, clients)
    for answers, table in _TABLE
    for answer, start in answers.items()
    for ends, kind, clients in table
    for end in ends.split()
)
