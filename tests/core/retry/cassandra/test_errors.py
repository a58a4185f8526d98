"""Cassandra errors: their copies, pickles and texts."""

from __future__ import annotations

import pickle
from copy import copy

from tests.rows import rows
from triclinium_core.retry import cassandra

QUORUM = cassandra.ConsistencyLevel.QUORUM
ERRORS = [
    cassandra.ServerError("no"),
    cassandra.ClosedConnection(),
    cassandra.Unprepared(statement_id=b"id"),
    cassandra.Unavailable(consistency=QUORUM, required=2, alive=1),
    cassandra.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True),
    cassandra.WriteTimeout(consistency=QUORUM, write_type=cassandra.WriteType.CAS, block_for=2, received=1),
    cassandra.NoNodeAvailable(),
]


@rows("error", ERRORS)
def test_copies_are_complete(error: cassandra.CassandraError) -> None:
    """A copy or a pickle of an error has its class, arguments and attributes."""
    for twin in (copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert twin is not error
        assert (type(error), error.args, vars(error)) == (type(twin), twin.args, vars(twin))


def test_notes_on_a_copy() -> None:
    """A copy has the notes of the original, and a note that is added to the copy does not change the original."""
    error = cassandra.ClosedConnection()
    error.add_note("first")
    twin = copy(error)
    twin.add_note("second")

    assert ["first"] == error.__notes__
    assert ["first", "second"] == twin.__notes__


def test_a_huge_count_has_a_text() -> None:
    """An error has a text even if it contains an integer that is too long for ``str``."""
    error = cassandra.Unavailable(consistency=QUORUM, required=10**5000, alive=1)

    assert "QUORUM needs <int> of the replicas; 1 is alive" == str(error)


def test_grouped_by_node() -> None:
    """AllNodesFailed and its pickled copy group the errors by node, in the order of the first failures."""
    a, b, c = cassandra.ServerError("a"), cassandra.ServerError("b"), cassandra.ServerError("c")
    error = cassandra.AllNodesFailed([("n2", a), ("n1", b), ("n2", c)])
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert [("n2", (a, c)), ("n1", (b,))] == list(error.errors.items())
    assert [("n2", 2), ("n1", 1)] == [(node, len(met)) for node, met in twin.errors.items()]
    assert str(error) == str(twin)


@rows(
    ("nodes", "facts", "left_out"),
    [
        (["n1"], ["1 node tried", "n1", "ClosedConnection"], "nodes"),
        (["n1", "n2", "n3", "n4", "n5", "n1"], ["5 nodes tried", "n1", "n2", "n3", "2 more"], "n4"),
        (["n1"] * 1000, ["1 node tried", "n1", "997 more"], "nodes"),
    ],
)
def test_the_message_is_limited(nodes: list[str], facts: list[str], left_out: str) -> None:
    """The text of AllNodesFailed counts nodes, and lists the first three, each with its first three errors."""
    text = str(cassandra.AllNodesFailed([(node, cassandra.ClosedConnection()) for node in nodes]))

    assert [] == [fact for fact in facts if fact not in text]
    assert left_out not in text
    assert text.count("ClosedConnection") <= 4


def test_no_node() -> None:
    """NoNodeAvailable is an AllNodesFailed without errors, and its text refers to the load balancing."""
    error = cassandra.NoNodeAvailable()

    assert isinstance(error, cassandra.AllNodesFailed)
    assert {} == error.errors
    assert "load balancing" in str(error)
