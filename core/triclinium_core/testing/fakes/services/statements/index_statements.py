"""Index statements: CREATE INDEX, DROP INDEX and BUILD INDEX.

Source: Couchbase Server documentation, "SQL++ Language Reference": CREATE INDEX, CREATE PRIMARY INDEX, DROP INDEX,
DROP PRIMARY INDEX, BUILD INDEX; query errors 4300, 12003, 12004 and 12016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triclinium_core.kv.operation.validation import DEFAULT_NAME
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndex, Incarnation, IndexedCollection
from triclinium_core.testing.fakes.services.statements.sqlpp import NotUnderstood, SqlReader
from triclinium_core.testing.fakes.store.state import NodeState

PRIMARY_NAME = "#primary"
"""Name of a primary index without an explicit name."""

Context = tuple[str, ...]
"""Bucket and scope that qualify an unqualified name; empty for none."""


class IndexRefused(Exception):
    """Exception for a valid index statement that fails."""

    def __init__(self, code: int, message: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


def create(node: NodeState, context: Context, statement: str, reader: SqlReader) -> None:
    """Run CREATE [PRIMARY] INDEX [IF NOT EXISTS] NAME [IF NOT EXISTS] ON KEYSPACE [(KEYS)] and its clauses.

    The clauses are [PARTITION BY HASH (KEYS)] [WHERE] [USING] [WITH], in this order.
    """
    reader.expect("CREATE")
    is_primary = reader.take("PRIMARY")
    reader.expect("INDEX")
    forgives = reader.take("IF", "NOT", "EXISTS")
    name = PRIMARY_NAME if is_primary and reader.peek().keyword in ("ON", "IF") else reader.read_name()
    forgives = reader.take("IF", "NOT", "EXISTS") or forgives
    reader.expect("ON")
    keyspace = _keyspace(node, context, reader.read_path())
    incarnation = incarnation_of(node, keyspace)
    assert incarnation is not None, "_keyspace refuses a missing collection"
    keys: tuple[str, ...] = ()
    if not is_primary:
        keys = _read_keys(statement, reader)
    partition = None
    if reader.take("PARTITION", "BY"):
        reader.expect("HASH")
        partition = f"HASH({', '.join(map(_escaped, _read_keys(statement, reader)))})"
    condition = None
    if reader.take("WHERE"):
        condition = reader.skip_to(statement, "PARTITION", "USING", "WITH")
    _read_using(reader)
    options = reader.read_value() if reader.take("WITH") else {}
    reader.end()
    if not isinstance(options, Mapping):
        raise NotUnderstood("WITH")
    indexes = node.cluster.services.indexes
    if (keyspace, name) in indexes:
        if forgives:
            return
        raise IndexRefused(4300, f"The index {name} already exists.", 409)
    indexes.add(
        FakeIndex(
            keyspace=keyspace,
            incarnation=incarnation,
            name=name,
            keys=keys,
            condition=condition,
            partition=partition,
            is_primary=is_primary,
            is_deferred=options.get("defer_build") is True,
            online_at=node.documents.now + indexes.build_seconds,
        )
    )


def drop(node: NodeState, context: Context, statement: str, reader: SqlReader) -> None:
    """Run DROP INDEX NAME ON KEYSPACE (or KEYSPACE.NAME), or DROP PRIMARY INDEX ON KEYSPACE.

    IF EXISTS may precede or follow NAME, or follow KEYSPACE; USING GSI may come last.
    """
    reader.expect("DROP")
    is_primary = reader.take("PRIMARY")
    reader.expect("INDEX")
    forgives = reader.take("IF", "EXISTS")
    path = () if is_primary else reader.read_path()
    forgives = reader.take("IF", "EXISTS") or forgives
    indexes = node.cluster.services.indexes
    if is_primary or len(path) == 1:
        reader.expect("ON")
        keyspace = _keyspace(node, context, reader.read_path())
        name = indexes.primary_of(keyspace) if is_primary else path[0]
    else:
        keyspace, name = _keyspace(node, context, path[:-1]), path[-1]
    forgives = reader.take("IF", "EXISTS") or forgives
    _read_using(reader)
    reader.end()
    if name is not None and (keyspace, name) in indexes:
        indexes.remove(keyspace, name)
    elif not forgives and is_primary:
        raise IndexRefused(12004, f"No primary index on keyspace {keyspace.path}", 404)
    elif not forgives:
        raise IndexRefused(12016, f"Index Not Found - cause: GSI index {name} not found.", 404)


def build(node: NodeState, context: Context, statement: str, reader: SqlReader) -> None:
    """Run BUILD INDEX ON KEYSPACE (NAMES) [USING GSI]."""
    reader.expect("BUILD", "INDEX", "ON")
    keyspace = _keyspace(node, context, reader.read_path())
    reader.expect("(")
    names = reader.read_list(reader.read_text, ")")
    _read_using(reader)
    reader.end()
    indexes = node.cluster.services.indexes
    for name in names:
        if (keyspace, name) not in indexes:
            raise IndexRefused(12016, f"Index Not Found - cause: GSI index {name} not found.", 404)
    for name in names:
        indexes.build(keyspace, name, node.documents.now)


def incarnation_of(node: NodeState, keyspace: IndexedCollection) -> Incarnation | None:
    """Return the numbers of a collection; None if it does not exist."""
    bucket = node.cluster.buckets.get(keyspace.bucket)
    if bucket is None:
        return None
    collection = bucket.collections.scopes.get(keyspace.scope, {}).get(keyspace.collection)
    return None if collection is None else Incarnation(bucket.number, collection)


INDEX_STATEMENTS: Mapping[str, Callable[[NodeState, Context, str, SqlReader], None]] = {
    "CREATE": create,
    "DROP": drop,
    "BUILD": build,
}
"""Functions that run the statements, by first word. Each may raise NotUnderstood or IndexRefused."""


def _keyspace(node: NodeState, context: Context, path: tuple[str, ...]) -> IndexedCollection:
    if len(path) == 3:
        keyspace = IndexedCollection(*path)
    elif len(path) == 1 and len(context) == 2:
        keyspace = IndexedCollection(*context, *path)
    elif len(path) == 1:
        keyspace = IndexedCollection(path[0], DEFAULT_NAME, DEFAULT_NAME)
    else:
        raise NotUnderstood(".".join(path))
    if incarnation_of(node, keyspace) is None:
        raise IndexRefused(12003, f"Keyspace not found in CB datastore: {keyspace.path}", 404)
    return keyspace


def _read_keys(statement: str, reader: SqlReader) -> tuple[str, ...]:
    reader.expect("(")
    keys = []
    while True:
        keys.append(reader.skip_to(statement, ",", ")"))
        if not reader.take(","):
            break
    reader.expect(")")
    if not all(keys):
        raise NotUnderstood(")")
    return tuple(keys)


def _escaped(key: str) -> str:
    """Return a key with backticks around a plain name, as the service lists it."""
    return f"`{key}`" if key.isidentifier() else key


def _read_using(reader: SqlReader) -> None:
    if reader.take("USING"):
        reader.expect("GSI")
