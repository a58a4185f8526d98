"""Rules for the settings of buckets, in requests to the cluster manager."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.core.testing.fakes.services.management.manager import BUCKETS, SCOPES, Manager
from tests.core.testing.node_client import ready_client
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNodeOptions, FakeNodes

MAGMA: Mapping[str, object] = {"storageBackend": "magma", "ramQuotaMB": 1024}
EPHEMERAL: Mapping[str, object] = {"bucketType": "ephemeral"}
MEMCACHED: Mapping[str, object] = {"bucketType": "memcached", "ramQuotaMB": 64}
HISTORY = ("historyRetentionCollectionDefault", "historyRetentionBytes", "historyRetentionSeconds")


@pytest.fixture
def manager() -> Manager:
    """Return a connection to the cluster manager of a cluster of two nodes."""
    return Manager(FakeNodes(nodes=2)[0])


def create(manager: Manager, form: Mapping[str, object], name: str = "beer") -> int:
    """Create a bucket, with a quota of 100 MiB unless ``form`` has another, and return the status."""
    return manager.submit("POST", BUCKETS, **{"name": name, "ramQuotaMB": 100, **form}).status


def described(manager: Manager, name: str = "beer") -> dict[str, object]:
    """Return the description of a bucket."""
    return manager.ask("GET", f"{BUCKETS}/{name}").document


@rows(
    ("form", "expected"),
    [
        (
            {},
            {
                "bucketType": "membase",
                "storageBackend": "couchstore",
                "evictionPolicy": "valueOnly",
                "replicaNumber": 1,
                "replicaIndex": True,
                "maxTTL": 0,
                "compressionMode": "passive",
                "durabilityMinLevel": "none",
                "conflictResolutionType": "seqno",
                "nodeLocator": "vbucket",
                "numVBuckets": 1024,
            },
        ),
        ({"replicaNumber": "00"}, {"replicaNumber": 0, "replicaIndex": False}),
        ({"ramQuota": 128}, {"quota": {"ram": 256 * 1024 * 1024, "rawRAM": 128 * 1024 * 1024}}),
        ({"conflictResolutionType": "lww"}, {"conflictResolutionType": "lww"}),
        ({"evictionPolicy": "fullEviction"}, {"evictionPolicy": "fullEviction"}),
        ({"durabilityMinLevel": "persistToMajority"}, {"durabilityMinLevel": "persistToMajority"}),
        (
            MAGMA,
            {
                "bucketType": "membase",
                "storageBackend": "magma",
                "evictionPolicy": "fullEviction",
                "replicaIndex": None,
                "ddocs": None,
                "storageQuotaPercentage": 50,
                **dict(zip(HISTORY, (True, 0, 0), strict=True)),
            },
        ),
        (
            {**MAGMA, **dict(zip(HISTORY, ("false", 2**31, 86_400), strict=True))},
            dict(zip(HISTORY, (False, 2**31, 86_400), strict=True)),
        ),
        (
            EPHEMERAL,
            {
                "bucketType": "ephemeral",
                "storageBackend": None,
                "evictionPolicy": "noEviction",
                "replicaNumber": 1,
                "replicaIndex": None,
                "autoCompactionSettings": None,
            },
        ),
        ({**EPHEMERAL, "evictionPolicy": "nruEviction"}, {"evictionPolicy": "nruEviction"}),
        ({**EPHEMERAL, "durabilityMinLevel": "majority"}, {"durabilityMinLevel": "majority"}),
        (
            MEMCACHED,
            {
                "bucketType": "memcached",
                "storageBackend": None,
                "nodeLocator": "ketama",
                "replicaNumber": 0,
                "vBucketServerMap": None,
                "bucketCapabilities": ["cbhello", "nodesExt"],
            },
        ),
    ],
)
def test_settings_of_new_buckets(manager: Manager, form: dict[str, object], expected: dict[str, object]) -> None:
    """A new bucket has the given settings and the defaults of its storage; other settings are not reported."""
    created = create(manager, form)
    found = described(manager)
    manager.ask("DELETE", f"{BUCKETS}/beer")

    assert 202 == created
    assert expected == {name: found.get(name) for name in expected}


@rows(
    ("form", "field"),
    [
        *(({"name": name}, "name") for name in ("default", "", "DEFAULT", ".beer", "b" * 101, "a b")),
        ({"ramQuotaMB": None}, "ramQuota"),
        ({"ramQuotaMB": 99}, "ramQuota"),
        ({"ramQuotaMB": "much"}, "ramQuota"),
        ({"bucketType": "sofa"}, "bucketType"),
        ({"evictionPolicy": "noEviction"}, "evictionPolicy"),
        ({"evictionPolicy": "nruEviction"}, "evictionPolicy"),
        ({**EPHEMERAL, "evictionPolicy": "valueOnly"}, "evictionPolicy"),
        ({**EPHEMERAL, "evictionPolicy": "fullEviction"}, "evictionPolicy"),
        ({**MAGMA, "evictionPolicy": "noEviction"}, "evictionPolicy"),
        ({"conflictResolutionType": "custom"}, "conflictResolutionType"),
        ({"conflictResolutionType": "dice"}, "conflictResolutionType"),
        ({**EPHEMERAL, "conflictResolutionType": "custom"}, "conflictResolutionType"),
        *(({name: "1"}, name) for name in HISTORY),
        *(({**EPHEMERAL, name: "1"}, name) for name in HISTORY),
        ({**MAGMA, "historyRetentionBytes": 2**31 - 1}, "historyRetentionBytes"),
        ({**MAGMA, "historyRetentionBytes": 2**64}, "historyRetentionBytes"),
        ({**MAGMA, "historyRetentionSeconds": -1}, "historyRetentionSeconds"),
        ({**MAGMA, "historyRetentionCollectionDefault": "1"}, "historyRetentionCollectionDefault"),
        ({"storageQuotaPercentage": 50}, "storageQuotaPercentage"),
        ({"storageBackend": "magma"}, "ramQuota"),
        ({"storageBackend": "paper"}, "storage_mode"),
        ({**EPHEMERAL, "replicaIndex": 1}, "replicaIndex"),
        ({**EPHEMERAL, "durabilityMinLevel": "persistToMajority"}, "durability_min_level"),
        ({"durabilityMinLevel": "majority", "replicaNumber": 3}, "durability_min_level"),
        ({"durabilityMinLevel": "sometimes"}, "durability_min_level"),
        ({"replicaNumber": -1}, "replicaNumber"),
        ({"replicaNumber": 4}, "replicaNumber"),
        ({"flushEnabled": "true"}, "flushEnabled"),
        ({"maxTTL": 2**31}, "maxTTL"),
        ({"compressionMode": "zip"}, "compressionMode"),
        ({"numVBuckets": 64}, "numVBuckets"),
        ({"rank": 1001}, "rank"),
        ({"threadsNumber": 1}, "threadsNumber"),
        ({**MEMCACHED, "ramQuotaMB": 63}, "ramQuota"),
        ({**MEMCACHED, "replicaNumber": 1}, "replicaNumber"),
    ],
)
def test_refused_settings_of_new_buckets(manager: Manager, form: dict[str, object], field: str) -> None:
    """A name or setting that a bucket of this storage cannot have is refused, and no bucket is created."""
    given = {"name": "beer", "ramQuotaMB": 100, **form}
    answered = manager.submit("POST", BUCKETS, **{name: value for name, value in given.items() if value is not None})

    assert (400, [field]) == (answered.status, list(answered.document["errors"]))  # type: ignore[call-overload]
    assert not manager.node.request_log[-1].applied
    assert ["default"] == [each["name"] for each in json.loads(manager.ask("GET", BUCKETS).body)]


def test_durability_needs_two_data_nodes() -> None:
    """A minimum durability is refused if only one node has key-value, unless the bucket has no replicas."""
    nodes = FakeNodes(nodes=2)
    nodes.set_services(1, {Service.MANAGEMENT})
    manager = Manager(nodes[0])
    with_replica = [create(manager, {"durabilityMinLevel": level}, level) for level in ("majority", "none")]
    without = create(manager, {"durabilityMinLevel": "majority", "replicaNumber": 0}, "ale")

    assert ([400, 202], 202) == (with_replica, without)


@rows(
    ("name", "form", "expected"),
    [
        ("couch", {"evictionPolicy": "noEviction"}, "evictionPolicy"),
        ("couch", {"historyRetentionBytes": 0}, "historyRetentionBytes"),
        ("couch", {"conflictResolutionType": "seqno"}, "conflictResolutionType"),
        ("couch", {"bucketType": "ephemeral"}, "bucketType"),
        ("couch", {"numVBuckets": 128}, "numVBuckets"),
        ("couch", {"storageBackend": "magma"}, "ramQuota"),
        ("couch", {"replicaNumber": 4}, "replicaNumber"),
        ("couch", {"ramQuotaMB": ""}, "ramQuota"),
        ("couch", {"durabilityMinLevel": "majority", "replicaNumber": 3}, "durability_min_level"),
        ("ephemeral", {"evictionPolicy": "nruEviction"}, "evictionPolicy"),
        ("ephemeral", {"historyRetentionSeconds": 1}, "historyRetentionSeconds"),
        ("magma", {"historyRetentionBytes": 1}, "historyRetentionBytes"),
        ("memcached", {"ramQuotaMB": 128}, "ramQuota"),
        ("couch", {"evictionPolicy": "fullEviction", "replicaIndex": 0, "numVBuckets": 1024}, None),
        ("ephemeral", {"evictionPolicy": "noEviction", "storageBackend": "magma"}, None),
        ("magma", {"historyRetentionBytes": 2**31, "historyRetentionCollectionDefault": "false"}, None),
        ("memcached", {"flushEnabled": 1, "evictionPolicy": "dice"}, None),
    ],
)
def test_updates_of_settings(manager: Manager, name: str, form: dict[str, object], expected: str | None) -> None:
    """An update that breaks a rule for the bucket, or changes a setting that is fixed at creation, is refused."""
    for each, settings in {"couch": {}, "magma": MAGMA, "ephemeral": EPHEMERAL, "memcached": MEMCACHED}.items():
        create(manager, settings, each)
    before = described(manager, name)
    answered = manager.submit("POST", f"{BUCKETS}/{name}", **form)
    after = described(manager, name)

    if expected is None:
        assert 200 == answered.status
    else:
        assert (400, [expected]) == (answered.status, list(answered.document["errors"]))  # type: ignore[call-overload]
        assert before == after


def test_update_keeps_what_it_omits(manager: Manager) -> None:
    """An update changes the given settings, and none of the others."""
    create(manager, {**MAGMA, "historyRetentionSeconds": 7, "maxTTL": 5})
    before = described(manager)
    manager.submit("POST", f"{BUCKETS}/beer", historyRetentionBytes=2**31)

    assert {**before, "historyRetentionBytes": 2**31} == described(manager)


def test_history_of_collections(manager: Manager) -> None:
    """Collections keep history by their own setting or their Magma bucket's; in other buckets they keep none."""
    create(manager, MAGMA, "magma")
    scope = f"{BUCKETS}/magma/scopes/_default/collections"
    manager.submit("POST", scope, name="kept")
    manager.submit("POST", scope, name="dropped", history="false")
    manager.submit("POST", f"{BUCKETS}/magma", historyRetentionCollectionDefault="false")
    manager.submit("POST", scope, name="later")
    manager.submit("PATCH", f"{scope}/dropped", history="true")
    refused = [
        manager.submit("POST", f"{SCOPES}/_default/collections", name="pets", history="true"),
        manager.submit("PATCH", f"{SCOPES}/_default/collections/_default", history="true"),
    ]
    accepted = manager.submit("POST", f"{SCOPES}/_default/collections", name="pets", history="false")
    found = {
        name: {
            each["name"]: each["history"]
            for each in json.loads(manager.ask("GET", path).body)["scopes"][0]["collections"]
        }
        for name, path in (("magma", f"{BUCKETS}/magma/scopes"), ("default", SCOPES))
    }

    assert {"_default": True, "kept": True, "dropped": True, "later": False} == found["magma"]
    assert {"_default": False, "pets": False} == found["default"]
    assert [(400, b"Not allowed on this type of bucket")] * 2 == [(each.status, each.body) for each in refused]
    assert 200 == accepted.status


def test_storage_migrates(manager: Manager) -> None:
    """The storage of a bucket changes both ways, but a bucket with history stays with Magma."""
    create(manager, {"ramQuotaMB": 1024})
    path = f"{BUCKETS}/beer"
    to_magma = manager.submit("POST", path, storageBackend="magma").status
    magma = described(manager)
    manager.submit("POST", path, historyRetentionCollectionDefault="true")
    refused = manager.submit("POST", path, storageBackend="couchstore").status
    manager.submit("POST", path, historyRetentionCollectionDefault="false")
    manager.submit("POST", f"{path}/scopes/_default/collections", name="kept", history="true")
    also_refused = manager.submit("POST", path, storageBackend="couchstore").status
    manager.ask("DELETE", f"{path}/scopes/_default/collections/kept")
    back = manager.submit("POST", path, storageBackend="couchstore").status
    couch = described(manager)

    assert (200, "magma", 50) == (to_magma, magma["storageBackend"], magma["storageQuotaPercentage"])
    assert (400, 400, 200) == (refused, also_refused, back)
    assert ("couchstore", None) == (couch["storageBackend"], couch.get("storageQuotaPercentage"))
    assert "nonDedupedHistory" in magma["bucketCapabilities"]  # type: ignore[operator]
    assert "nonDedupedHistory" not in couch["bucketCapabilities"]  # type: ignore[operator]


@pytest.mark.parametrize("created", [0, 1])
def test_migrations_keep_replica_index(manager: Manager, created: int) -> None:
    """A bucket does not report ``replicaIndex`` while its storage is Magma, and reports it again with Couchstore."""
    create(manager, {"ramQuotaMB": 1024, "replicaIndex": created})
    reported = []
    for storage in ("magma", "couchstore"):
        manager.submit("POST", f"{BUCKETS}/beer", storageBackend=storage)
        reported.append(described(manager).get("replicaIndex"))

    assert [None, bool(created)] == reported


def test_migrations_keep_settings_of_magma(manager: Manager) -> None:
    """Settings that only Magma has survive updates; Couchstore hides them, and Magma has all but the quota again."""
    create(manager, {"ramQuotaMB": 1024})
    path = f"{BUCKETS}/beer"
    manager.submit("POST", path, storageBackend="magma", historyRetentionSeconds=7, storageQuotaPercentage=20)
    manager.submit("POST", path, maxTTL=1)
    first = described(manager)
    manager.submit("POST", path, storageBackend="couchstore")
    couch = described(manager)
    manager.submit("POST", path, storageBackend="magma")
    again = described(manager)

    names = ("historyRetentionSeconds", "historyRetentionCollectionDefault", "storageQuotaPercentage")
    assert [[7, True, 20], [None, None, None], [7, True, 50]] == [
        [each.get(name) for name in names] for each in (first, couch, again)
    ]


def test_replicas_of_a_bucket_in_configs() -> None:
    """A bucket's config has its number of replicas, with -1 for those without a node, and a new revision for each."""
    nodes = FakeNodes(FakeNodeOptions(replicas=1), nodes=2)
    manager = Manager(nodes[0])
    create(manager, {"replicaNumber": 2})
    more = manager.ask("GET", "/pools/default/b/beer").document
    manager.submit("POST", f"{BUCKETS}/beer", replicaNumber=0)
    fewer = manager.ask("GET", "/pools/default/b/beer").document
    on_kv = json.loads(ready_client(nodes[0], bucket=b"beer").ask(Opcode.GET_CLUSTER_CONFIG).value)

    assert [(2, [0, 1, -1]), (0, [0])] == [
        (each["vBucketServerMap"]["numReplicas"], each["vBucketServerMap"]["vBucketMap"][0])  # type: ignore[index]
        for each in (more, fewer)
    ]
    assert int(str(more["rev"])) < int(str(fewer["rev"]))
    assert fewer == on_kv


def test_description_without_vbuckets(manager: Manager) -> None:
    """A client can request the description of a bucket without its vbuckets."""
    whole, short = (manager.ask("GET", f"{BUCKETS}/default{query}").document for query in ("", "?skipMap=true"))

    assert {"vBucketServerMap"} == whole.keys() - short.keys()


def test_new_bucket_has_another_uuid(manager: Manager) -> None:
    """A bucket that is created again has another UUID, the same in its config and in its description."""
    uuids = []
    for _ in range(2):
        create(manager, {})
        uuids.append(described(manager)["uuid"])
        assert uuids[-1] == manager.ask("GET", "/pools/default/b/beer").document["uuid"]
        manager.ask("DELETE", f"{BUCKETS}/beer")

    assert uuids[0] != uuids[1]


def test_uuids_in_requests_must_be_current(manager: Manager) -> None:
    """A request with the UUID of another cluster or bucket gets 404, and one with the current UUID succeeds."""
    cluster, bucket = manager.ask("GET", "/pools").document["uuid"], described(manager, "default")["uuid"]
    answers = [
        manager.ask("GET", f"{target}?{name}={uuid}")
        for target, name, current in (
            ("/pools/default", "uuid", cluster),
            (f"{BUCKETS}/default", "bucket_uuid", bucket),
            ("/pools/default/b/default", "bucket_uuid", bucket),
            (f"{BUCKETS}/default/scopes", "bucket_uuid", bucket),
        )
        for uuid in (current, "0")
    ]

    assert [200, 404] * 4 == [answered.status for answered in answers]
    assert 404 == manager.ask("GET", "/pools/default/bs/default?bucket_uuid=0").status
    assert [b"Cluster uuid", *[b"Bucket uuid"] * 3] == [
        answered.body.partition(b" does not match")[0] for answered in answers[1::2]
    ]


def test_description_counts_the_documents(manager: Manager) -> None:
    """The description of a bucket has its number of documents, in all collections, without removed ones."""
    create(manager, {})
    documents, pets = manager.node.documents, manager.node.collections.create("zoo", "pets")
    for bucket, key, uid in (("default", "a", 0), ("default", "b", 0), ("default", "c", pets), ("beer", "d", 0)):
        documents.put(bucket, key, b"1", collection_id=uid)
    documents.remove("default", "a")
    counts = [
        json.loads(manager.ask("GET", f"{BUCKETS}/{name}").body)["basicStats"]["itemCount"]
        for name in ("default", "beer")
    ]

    assert [2, 1] == counts


@rows(("form", "expected"), [({}, "diskFetches"), (EPHEMERAL, "diskFetches"), (MEMCACHED, "hitRatio")])
def test_statistics_depend_on_the_type(manager: Manager, form: Mapping[str, object], expected: str) -> None:
    """Only a memcached bucket has a hit ratio; other buckets have disk fetches."""
    create(manager, form)
    statistics = json.loads(manager.ask("GET", f"{BUCKETS}/beer").body)["basicStats"]

    assert [expected] == [name for name in ("diskFetches", "hitRatio") if name in statistics]
    manager.ask("DELETE", f"{BUCKETS}/beer")


def test_compaction_is_accepted(manager: Manager) -> None:
    """The cluster manager accepts the compactions whose addresses it returns."""
    manager.node.cluster.services.design_documents.put("default", "people", {})
    (row,) = json.loads(manager.ask("GET", f"{BUCKETS}/default/ddocs").body)["rows"]
    bucket = json.loads(manager.ask("GET", f"{BUCKETS}/default").body)
    targets = [bucket["controllers"]["compactAll"], row["controllers"]["compact"]]

    assert [200, 200] == [manager.ask("POST", target).status for target in targets]


def test_design_documents_end_with_their_bucket(manager: Manager) -> None:
    """A bucket that is created again has no design documents; a bucket without views refuses their list."""
    documents = manager.node.cluster.services.design_documents
    create(manager, {})
    create(manager, EPHEMERAL, "ephemeral")
    documents.put("beer", "pets", {"views": {}})
    documents.put("beer", "pets", {"views": {"all": {}}})
    documents.put("default", "pets", {"views": {}})
    listed = manager.ask("GET", f"{BUCKETS}/beer/ddocs").document["rows"]
    manager.ask("DELETE", f"{BUCKETS}/beer")
    create(manager, {})

    assert ["2-"] == [row["doc"]["meta"]["rev"][:2] for row in listed]  # type: ignore[attr-defined]
    assert {"rows": []} == manager.ask("GET", f"{BUCKETS}/beer/ddocs").document
    assert 1 == len(documents.rows_of("default"))
    assert 400 == manager.ask("GET", f"{BUCKETS}/ephemeral/ddocs").status


def test_memcached_bucket_has_no_scopes(manager: Manager) -> None:
    """A memcached bucket has no scopes."""
    create(manager, MEMCACHED)

    assert 400 == manager.ask("GET", f"{BUCKETS}/beer/scopes").status
