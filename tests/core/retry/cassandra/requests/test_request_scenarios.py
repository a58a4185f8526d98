"""What the Java driver's integration tests play with three nodes: ends, and how often each node was asked."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from tests.core.retry.cassandra.requests.scripted import ROWS, Answer, Script, play
from tests.rows import rows
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel as Level, WriteType
from triclinium_core.retry.cassandra.errors import (
    AllNodesFailed,
    CassandraError,
    ClosedConnection,
    ReadFailure,
    ReadTimeout,
    ServerError,
    Unavailable,
    WriteFailure,
    WriteTimeout,
)
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.requests.actions import Reprepare, Send
from triclinium_core.retry.cassandra.requests.request import CassandraRequest

NODES = ("node 0", "node 1", "node 2")
LQ, LS, ONE = Level.LOCAL_QUORUM, Level.LOCAL_SERIAL, Level.ONE
OTHER_WRITE_TYPES = [write_type for write_type in WriteType if write_type is not WriteType.BATCH_LOG]

ON_ONE, ON_TWO, ON_ALL = 1, 2, 3
"""How many of the nodes, from the first, answer so."""
MANY = 5
"""More answers than any of these requests gets from one node."""


def read(received: int, block_for: int, *, data: bool, level: Level = LQ) -> ReadTimeout:
    """Return a READ_TIMEOUT."""
    return ReadTimeout(consistency=level, block_for=block_for, received=received, data_present=data)


def write(write_type: WriteType, received: int, block_for: int, *, level: Level = LQ) -> WriteTimeout:
    """Return a WRITE_TIMEOUT."""
    return WriteTimeout(consistency=level, write_type=write_type, block_for=block_for, received=received)


def unavailable(required: int, alive: int, *, level: Level = LQ) -> Unavailable:
    """Return an UNAVAILABLE."""
    return Unavailable(consistency=level, required=required, alive=alive)


CLOSED, SERVER = ClosedConnection("closed"), ServerError("no")


class Scenario(NamedTuple):
    """One row of the driver's tests of its default policy."""

    answer: CassandraError
    by: int
    idempotent: bool
    ends: type[CassandraError] | str
    counts: tuple[int, int, int]


DEFAULT = [
    Scenario(read(1, 3, data=True), ON_ONE, True, ReadTimeout, (1, 0, 0)),
    Scenario(read(2, 3, data=False), ON_ONE, True, ReadTimeout, (1, 0, 0)),
    Scenario(read(3, 3, data=False), ON_ONE, True, ReadTimeout, (2, 0, 0)),
    Scenario(CLOSED, ON_ONE, True, ROWS, (1, 1, 0)),
    Scenario(CLOSED, ON_ALL, True, AllNodesFailed, (1, 1, 1)),
    Scenario(CLOSED, ON_ONE, False, ClosedConnection, (1, 0, 0)),
    Scenario(write(WriteType.BATCH_LOG, 1, 3), ON_ONE, True, WriteTimeout, (2, 0, 0)),
    *(Scenario(write(kind, 1, 3), ON_ONE, True, WriteTimeout, (1, 0, 0)) for kind in OTHER_WRITE_TYPES),
    Scenario(write(WriteType.BATCH_LOG, 1, 3), ON_ONE, False, WriteTimeout, (1, 0, 0)),
    Scenario(unavailable(3, 0), ON_ONE, True, ROWS, (1, 1, 0)),
    Scenario(unavailable(3, 0), ON_TWO, True, Unavailable, (1, 1, 0)),
    Scenario(SERVER, ON_ALL, True, AllNodesFailed, (1, 1, 1)),
    Scenario(SERVER, ON_ALL, False, ServerError, (1, 0, 0)),
]


@rows("scenario", DEFAULT)
def test_default_policy(scenario: Scenario) -> None:
    """Each of the driver's scenarios ends as it does there, after as many requests to each node."""
    primed: dict[Hashable, Script] = {
        node: [scenario.answer] * MANY if index < scenario.by else [] for index, node in enumerate(NODES)
    }
    run = play(CassandraRequest(policy=DefaultRetryPolicy(), idempotent=scenario.idempotent), primed)

    assert scenario.ends == run.ending
    assert scenario.counts == run.cluster.counts(*NODES)
    failing = [node for node, count in zip(NODES, scenario.counts, strict=True) if count][: scenario.by]
    if scenario.ends in {ROWS, AllNodesFailed}:
        assert [(node, scenario.answer) for node in failing] == list(run.info.errors)


class Downgrading(NamedTuple):
    """One row of the driver's tests of its downgrading policy: answers at the first level, and at ONE."""

    first: CassandraError
    by: int
    at_one: CassandraError | None
    idempotent: bool
    ends: type[CassandraError] | str | None
    at_first_level: tuple[int, int, int]
    counts_at_one: tuple[int, int, int] = (0, 0, 0)
    level: Level = LQ


LOG, UNLOGGED, SIMPLE, BATCH = WriteType.BATCH_LOG, WriteType.UNLOGGED_BATCH, WriteType.SIMPLE, WriteType.BATCH
ONCE, TWICE, NOWHERE = (1, 0, 0), (2, 0, 0), (0, 0, 0)

DOWNGRADING = [
    Downgrading(read(2, 2, data=True), ON_ONE, None, True, ReadTimeout, ONCE),
    Downgrading(read(2, 2, data=False), ON_ONE, None, True, ReadTimeout, TWICE),
    Downgrading(read(1, 2, data=True), ON_ONE, None, True, ROWS, ONCE, ONCE),
    Downgrading(read(1, 2, data=True), ON_ONE, read(0, 1, data=False, level=ONE), True, ReadTimeout, ONCE, ONCE),
    Downgrading(write(LOG, 1, 2), ON_ONE, None, True, WriteTimeout, TWICE),
    Downgrading(write(LOG, 1, 2), ON_ONE, None, False, WriteTimeout, ONCE),
    Downgrading(write(SIMPLE, 1, 2), ON_ONE, None, True, None, ONCE),
    Downgrading(write(BATCH, 1, 2), ON_ONE, None, True, None, ONCE),
    Downgrading(write(SIMPLE, 0, 2), ON_ONE, None, True, WriteTimeout, ONCE),
    Downgrading(write(BATCH, 0, 2), ON_ONE, None, True, WriteTimeout, ONCE),
    Downgrading(write(UNLOGGED, 1, 2), ON_ONE, None, True, ROWS, ONCE, ONCE),
    Downgrading(write(UNLOGGED, 1, 2), ON_ONE, None, False, WriteTimeout, ONCE),
    Downgrading(write(UNLOGGED, 1, 2), ON_ONE, write(UNLOGGED, 0, 1, level=ONE), True, WriteTimeout, ONCE, ONCE),
    Downgrading(unavailable(2, 1, level=LS), ON_ONE, None, True, ROWS, (1, 1, 0), NOWHERE, LS),
    Downgrading(unavailable(2, 1), ON_ONE, None, True, ROWS, ONCE, ONCE),
    Downgrading(unavailable(2, 1), ON_ONE, unavailable(1, 0, level=ONE), True, Unavailable, ONCE, ONCE),
    Downgrading(CLOSED, ON_ONE, None, True, ROWS, (1, 1, 0)),
    Downgrading(CLOSED, ON_ALL, None, True, AllNodesFailed, (1, 1, 1)),
    Downgrading(CLOSED, ON_ONE, None, False, ClosedConnection, ONCE),
    Downgrading(SERVER, ON_ALL, None, True, AllNodesFailed, (1, 1, 1)),
    Downgrading(SERVER, ON_ALL, None, False, ServerError, ONCE),
    Downgrading(WriteFailure("1/2"), ON_ALL, None, True, WriteFailure, ONCE),
    Downgrading(ReadFailure("1/2"), ON_ALL, None, True, ReadFailure, ONCE),
]


@rows("scenario", DOWNGRADING)
def test_downgrading_policy(scenario: Downgrading) -> None:
    """The same for its downgrading policy, counted at the first level and at ONE."""

    def answer(order: Send | Reprepare) -> Answer:
        assert isinstance(order, Send)
        if order.consistency is ONE:
            return scenario.at_one or ROWS
        return scenario.first if NODES.index(str(order.node)) < scenario.by else ROWS

    request = CassandraRequest(
        policy=ConsistencyDowngradingRetryPolicy(), idempotent=scenario.idempotent, consistency=scenario.level
    )
    run = play(request, dict.fromkeys(NODES, answer))

    assert scenario.ends == run.ending
    assert scenario.at_first_level == run.cluster.counts(*NODES, consistency=scenario.level)
    assert scenario.counts_at_one == run.cluster.counts(*NODES, consistency=ONE)
    assert (ONE if any(scenario.counts_at_one) else scenario.level) is run.info.consistency
    if scenario.ends is None:
        assert () == run.info.errors
