"""Errors keep what they carry when they are copied and pickled, and say how many nodes were tried."""

from __future__ import annotations

import pickle
from copy import copy

import pytest

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import (
    AllNodesFailed,
    CassandraError,
    ClosedConnection,
    NoNodeAvailable,
    ReadTimeout,
    ServerError,
    Unavailable,
    Unprepared,
    WriteTimeout,
)

QUORUM = ConsistencyLevel.QUORUM
ERRORS = [
    ServerError("no"),
    ClosedConnection(),
    Unprepared(statement_id=b"id"),
    Unavailable(consistency=QUORUM, required=2, alive=1),
    ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True),
    WriteTimeout(consistency=QUORUM, write_type=WriteType.CAS, block_for=2, received=1),
    NoNodeAvailable(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_survives(error: CassandraError) -> None:
    """A copy has class, words and numbers of the original."""
    for twin in (copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert twin is not error
        assert (type(error), error.args, vars(error)) == (type(twin), twin.args, vars(twin))


def test_notes_on_a_copy() -> None:
    """They are its own; those of the original came with it."""
    error = ClosedConnection()
    error.add_note("first")
    twin = copy(error)
    twin.add_note("second")

    assert ["first"] == error.__notes__
    assert ["first", "second"] == twin.__notes__


def test_counts_without_end() -> None:
    """They do not keep an error from being made: Python refuses to write such integers out."""
    error = Unavailable(consistency=QUORUM, required=10**5000, alive=1)

    assert "QUORUM needs <int> replicas, 1 is alive" == str(error)


def test_survives_with_what_is_inside() -> None:
    """The errors of the nodes go with the one that has them."""
    error = AllNodesFailed([("n1", ServerError("no")), ("n2", ClosedConnection())])
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert {"n1": [ServerError], "n2": [ClosedConnection]} == {
        node: [type(met) for met in errors] for node, errors in twin.errors.items()
    }
    assert str(error) == str(twin)


def test_grouped_by_node() -> None:
    """Nodes stand in the order in which they first failed, each with all its errors."""
    a, b, c = ServerError("a"), ServerError("b"), ServerError("c")
    error = AllNodesFailed([("n2", a), ("n1", b), ("n2", c)])

    assert {"n2": (a, c), "n1": (b,)} == error.errors
    assert ["n2", "n1"] == list(error.errors)
    assert "2 nodes tried, none is left: n2: [ServerError: a; ServerError: c], n1: [ServerError: b]" == str(error)


def test_shows_three_nodes() -> None:
    """The message counts nodes, not errors, and names the first three."""
    error = AllNodesFailed([(f"n{index}", ClosedConnection()) for index in (1, 2, 3, 4, 5, 1)])

    assert str(error).startswith("5 nodes tried, none is left: n1: [ClosedConnection; ClosedConnection], n2: ")
    assert str(error).endswith("n3: [ClosedConnection], and 2 more in `errors`")


def test_shows_three_errors() -> None:
    """A node that was tried without end does not make a message without end."""
    error = AllNodesFailed([("n1", ServerError(f"{index}")) for index in range(1, 1001)])

    assert ("1 node tried, none is left: n1: [ServerError: 1; ServerError: 2; ServerError: 3; 997 more]") == str(error)


def test_one_node() -> None:
    """One is no plural."""
    assert str(AllNodesFailed([("n1", ServerError("no"))])).startswith("1 node tried")


def test_no_node() -> None:
    """Where there was none to try, the error says so, and where to look."""
    error = NoNodeAvailable()

    assert isinstance(error, AllNodesFailed)
    assert {} == error.errors
    assert "none has failed; see which nodes the load balancing leaves" in str(error)
