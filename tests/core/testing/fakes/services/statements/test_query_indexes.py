"""Query indexes of a fake cluster, which the statements of SDK-RFC 0054 manage."""

from __future__ import annotations

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.testing import FakeNode, FakeNodeOptions

ALL = "SELECT idx.* FROM system:indexes AS idx WHERE `using` = 'gsi' ORDER BY is_primary DESC, name ASC"


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to a node whose buckets have the collection ``inventory.hotel``."""
    client = HttpClient(FakeNode())
    client.node.collections.create("inventory", "hotel")
    return client


def states(client: HttpClient) -> dict[str, str]:
    """Return the states of all indexes by name."""
    return {row["name"]: row["state"] for row in client.query(ALL).rows}


def test_indexes_are_created_and_dropped(client: HttpClient) -> None:
    """Lists of indexes have the fields of a real service, which differ for indexes of a default collection."""
    for statement in (
        "CREATE PRIMARY INDEX ON `default`",
        "CREATE INDEX `by name` ON default:`default`.inventory.hotel(`name`, IFMISSING(a, b) DESC) WHERE a > (1, 2) USING GSI",
    ):
        assert [] == client.query(statement).codes
    primary, by_name = client.query(ALL).rows
    dropped = [
        client.query(statement).codes
        for statement in (
            "DROP INDEX `by name` ON `default`.inventory.hotel",
            "DROP PRIMARY INDEX ON `default` USING GSI",
        )
    ]

    assert ("#primary", True, "default", []) == tuple(
        primary[name] for name in ("name", "is_primary", "keyspace_id", "index_key")
    )
    assert "bucket_id" not in primary
    assert ["default", "inventory", "hotel"] == [by_name[name] for name in ("bucket_id", "scope_id", "keyspace_id")]
    assert (["`name`", "IFMISSING(a, b) DESC"], "a > (1, 2)") == (by_name["index_key"], by_name["condition"])
    assert "is_primary" not in by_name
    assert [[], []] == dropped
    assert {} == states(client)


def test_lists_of_the_rfc(client: HttpClient) -> None:
    """The RFC's statements list the indexes of a bucket, a scope or a collection, and the deferred ones."""
    for keyspace, name in (
        ("`default`", "a"),
        ("`default`.inventory.hotel", "b"),
        ("`default`._default._default", "c"),
    ):
        client.query(f'CREATE INDEX {name} ON {keyspace}(x) WITH {{"defer_build": true}}')
    in_bucket = '((bucket_id IS MISSING AND keyspace_id = "default") OR bucket_id = "default") AND `using`="gsi"'
    where = {
        in_bucket: ["a", "b", "c"],
        'bucket_id= $bucket AND scope_id = "inventory" AND `using`="gsi"': ["b"],
        '(bucket_id = $bucket AND keyspace_id = "hotel") AND state = "deferred"': ["b"],
        'NOT (keyspace_id = "hotel") AND state != "online"': ["a", "c"],
        # Indexes of a default collection have no bucket_id, so the condition is MISSING for them.
        "NOT (bucket_id = $bucket)": [],
    }

    for condition, names in where.items():
        listing = " ".join(["SELECT RAW name from system:indexes WHERE", condition, "ORDER BY name"])
        assert names == client.query(listing, **{"$bucket": "default"}).rows


def test_indexes_are_built(client: HttpClient) -> None:
    """Deferred indexes are built on request, and each index is online after the build time."""
    indexes = client.node.indexes
    indexes.build_seconds = 5.0
    client.query("CREATE INDEX now ON `default`(a)")
    client.query('CREATE INDEX later ON `default`(a) WITH {"defer_build": true, "num_replica": 1}')
    at_first = states(client)
    client.query("BUILD INDEX ON `default`(`later`, now)")
    client.wait(4.9)
    half_way = states(client)
    client.wait(5.0)

    assert {"later": "deferred", "now": "building"} == at_first
    assert {"later": "building", "now": "building"} == half_way
    assert {"later": "online", "now": "online"} == states(client)


@rows(
    ("statement", "status", "codes"),
    [
        ("CREATE INDEX it ON `default`(a)", 409, [4300]),
        ("CREATE INDEX it IF NOT EXISTS ON `default`(a)", 200, []),
        ("CREATE INDEX IF NOT EXISTS it ON `default`(a)", 200, []),
        ("CREATE INDEX a ON gone(a)", 404, [12003]),
        ("CREATE INDEX a ON `default`.inventory.gone(a)", 404, [12003]),
        ("CREATE INDEX a ON `default`.inventory(a)", 400, [3000]),
        ("CREATE INDEX a ON `default`", 400, [3000]),
        ("CREATE INDEX a ON `default`()", 400, [3000]),
        ("CREATE INDEX a ON `default`(a", 400, [3000]),
        ("CREATE INDEX a ON `default`(a) WITH 1", 400, [3000]),
        ("CREATE INDEX a ON `default`(a) USING VIEW", 400, [3000]),
        ("CREATE FUNCTION a() { 1 }", 400, [3000]),
        ("DROP INDEX gone ON `default`", 404, [12016]),
        ("DROP INDEX `default`.gone", 404, [12016]),
        ("DROP INDEX `default`.it", 200, []),
        ("DROP INDEX gone IF EXISTS ON `default`", 200, []),
        ("DROP INDEX IF EXISTS gone ON `default`", 200, []),
        ("DROP PRIMARY INDEX ON `default`", 404, [12004]),
        ("DROP PRIMARY INDEX IF EXISTS ON `default`", 200, []),
        ("BUILD INDEX ON `default`(gone)", 404, [12016]),
        ("BUILD INDEX ON `default`", 400, [3000]),
        ("SELECT * FROM system:keyspaces", 400, [3000]),
    ],
)
def test_statements_that_fail(statement: str, status: int, codes: list[int]) -> None:
    """A statement is executed, or fails with the code that clients recognise and has no effect."""
    client = HttpClient(FakeNode())
    client.query("CREATE INDEX it ON `default`(a)")
    answered = client.query(statement)

    assert (status, codes) == (answered.status, answered.codes)
    assert (not codes) == client.node.request_log[-1].applied


@rows(
    ("bucket", "context"),
    [("default", "default:`default`.`inventory`"), ("travel.sample", "default:`travel.sample`.inventory")],
)
def test_query_context_gives_the_scope(bucket: str, context: str) -> None:
    """A name without a bucket is a collection in the scope of the query context, whose names may have a dot."""
    client = HttpClient(FakeNode(FakeNodeOptions(buckets=(bucket,))))
    client.node.collections.create("inventory", "hotel")
    client.query("CREATE INDEX it ON hotel(a)", query_context=context)

    assert [(bucket, "inventory")] == [(row["bucket_id"], row["scope_id"]) for row in client.query(ALL).rows]


@rows(
    ("written", "name"),
    [
        (r"`a``b`", "a`b"),
        (r"`a\\u0060`", r"a\u0060"),
        (r"`\u0060 ON gone --`", "` ON gone --"),
        (r"`\b\f\n\r\t\/\\\"\'\``", "\b\f\n\r\t/\\\"'`"),
        (r"`\ud83d\ude00`", "\U0001f600"),
        ("a /* ` */", "a"),
        (r"`a\x`", None),
        (r"`a\u00g0`", None),
        (r"`a\`", None),
        ("``", None),
    ],
)
def test_escaped_names(written: str, name: str | None) -> None:
    """Escapes in an index name are decoded; an invalid escape, or an open or empty name, is a syntax error."""
    client = HttpClient(FakeNode())
    codes = client.query(f"CREATE INDEX {written} ON `default`(a) -- `").codes
    in_keys = client.query(f"CREATE INDEX keys ON `default`({written})").codes

    assert ([] if name is not None else [3000]) == codes == in_keys
    assert ({"keys", name} if name is not None else set()) == set(states(client))


def test_indexes_are_dropped_with_their_collection(client: HttpClient) -> None:
    """Dropping a collection drops its indexes, and creating it again does not restore them."""
    client.query("CREATE INDEX it ON `default`.inventory.hotel(a)")
    before = states(client)
    client.node.collections.drop("inventory", "hotel")
    without = states(client)
    client.node.collections.create("inventory", "hotel")

    assert ({"it": "online"}, {}, {}) == (before, without, states(client))


def test_new_collection_has_no_old_indexes(client: HttpClient) -> None:
    """A collection or bucket that is created again has no indexes, so that an index of the same name can be created."""
    buckets, collections = client.node.cluster.buckets, client.node.collections
    buckets.create("beer", {})
    statements = "CREATE INDEX it ON `default`.inventory.hotel(a)", "CREATE INDEX it ON beer(a)"
    found = []
    for _ in range(2):
        found.append([client.query(statement).codes for statement in statements])
        collections.drop("inventory", "hotel")
        collections.create("inventory", "hotel")
        buckets.drop("beer")
        buckets.create("beer", {})

    assert [[[], []]] * 2 == found
    assert {} == states(client)


def test_partitioned_indexes_are_listed(client: HttpClient) -> None:
    """PARTITION BY HASH precedes the condition; lists show its keys, with backticks around plain names."""
    codes = [
        client.query(f"CREATE {index} {clauses}").codes
        for index, clauses in (
            ("INDEX a ON `default`(x)", "PARTITION BY HASH(x, `y`) WHERE x > 1 USING GSI"),
            ("PRIMARY INDEX b ON `default`", "PARTITION BY HASH(META().id) WITH {'num_partition': 4}"),
            ("INDEX c ON `default`(x)", "WHERE x > 1 PARTITION BY HASH(x)"),
            ("INDEX d ON `default`(x)", "PARTITION BY RANGE(x)"),
            ("INDEX e ON `default`(x)", "PARTITION BY HASH()"),
        )
    ]
    listed = client.query("SELECT name, `partition`, condition FROM system:indexes ORDER BY name").rows

    assert [[], [], [3000], [3000], [3000]] == codes
    assert [
        {"name": "a", "partition": "HASH(`x`, `y`)", "condition": "x > 1"},
        {"name": "b", "partition": "HASH(META().id)"},
    ] == listed
