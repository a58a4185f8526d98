"""Our policies inside the real ``ResponseFuture`` of ``cassandra-driver``, against nodes that answer by a script.

What the driver does with a policy of ours is held against our own request machine: the same requests go to the same
nodes at the same levels, and end alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import cassandra
import pytest
from cassandra import connection, protocol
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import RoundRobinPolicy
from cassandra.query import SimpleStatement
from hypothesis import given, strategies as st

from tests.core.adapters.cql_cluster import HOST, Answer, Asked, CqlCluster
from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.scripted import ROWS, Script, play
from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.requests.actions import Send
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest
from triclinium_core.retry.cassandra.verdicts import (
    IGNORE,
    RETHROW,
    RETRY_NEXT,
    RETRY_SAME,
    RetryDecision,
    RetryVerdict,
)

pytestmark = pytest.mark.native

ONE, TWO, QUORUM, SERIAL = (
    ConsistencyLevel.ONE,
    ConsistencyLevel.TWO,
    ConsistencyLevel.QUORUM,
    ConsistencyLevel.SERIAL,
)
NODES = range(3)

SAFETY_NET_SECONDS = 60.0
"""A request that has no answer by then has hung, and its test fails."""

OURS: dict[type[Exception], type[errors.CassandraError]] = {
    NoHostAvailable: errors.AllNodesFailed,
    connection.ConnectionShutdown: errors.ClosedConnection,
    cassandra.Unavailable: errors.Unavailable,
    cassandra.ReadTimeout: errors.ReadTimeout,
    cassandra.WriteTimeout: errors.WriteTimeout,
    cassandra.ReadFailure: errors.ReadFailure,
    cassandra.WriteFailure: errors.WriteFailure,
    cassandra.InvalidRequest: errors.InvalidQuery,
    protocol.ServerError: errors.ServerError,
    protocol.OverloadedErrorMessage: errors.Overloaded,
    protocol.IsBootstrappingErrorMessage: errors.Bootstrapping,
    protocol.TruncateError: errors.TruncateError,
    protocol.CDCWriteException: errors.CdcWriteFailure,
    cassandra.FunctionFailure: errors.FunctionFailure,
}


class Run(NamedTuple):
    """How a request ended, and what the nodes got of it."""

    ending: object
    """A row, None for none, or the class of the error."""
    asked: Sequence[tuple[Hashable, ConsistencyLevel | None]]


class InOrder(RoundRobinPolicy):  # type: ignore[misc]  # The package has no types.
    """Plans that begin with the first node and end with the last."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__()
        self._ports = ports

    def make_query_plan(self, working_keyspace: object = None, query: object = None) -> list[Any]:
        """Return all nodes."""
        return sorted(self._live_hosts, key=lambda host: self._ports.index(host.endpoint.port))


class Client:
    """A client of the driver; a context manager that ends it."""

    def __init__(self, nodes: CqlCluster, policy: RetryPolicy) -> None:
        profile = ExecutionProfile(
            load_balancing_policy=InOrder(nodes.ports),
            retry_policy=DriverRetryPolicy(policy),
            request_timeout=SAFETY_NET_SECONDS,
        )
        self._cluster = Cluster(
            [HOST],
            port=nodes.ports[0],
            protocol_version=4,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            idle_heartbeat_interval=0,
            monitor_reporting_enabled=False,
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
        )

    def __enter__(self) -> Session:
        return self._cluster.connect(wait_for_all_pools=True)

    def __exit__(self, *_: object) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[CqlCluster]:
    """Give the module three nodes, which answer with a row unless told otherwise."""
    with CqlCluster(lambda asked: None) as cluster:
        yield cluster


def play_in_driver(
    nodes: CqlCluster,
    answers: Sequence[Sequence[Answer]],
    policy: RetryPolicy,
    *,
    idempotent: bool = True,
    level: ConsistencyLevel = QUORUM,
) -> Run:
    """Play a request in the driver; each node answers what stands in its list, and a row from then on."""

    def script(asked: Asked) -> Answer:
        earlier = sum(other.node == asked.node for other in nodes.asked) - 1
        script = answers[asked.node] if asked.node < len(answers) else []
        return script[earlier] if earlier < len(script) else None

    nodes.asked.clear()
    nodes.script = script
    statement = SimpleStatement(
        "SELECT name FROM travel.people",
        consistency_level=level.value,
        is_idempotent=idempotent,
    )
    with Client(nodes, policy) as session:
        try:
            rows = session.execute(statement).all()
            ending: object = rows[0].name if rows else None
        except tuple(OURS) as error:
            ending = OURS[type(error)]
    return Run(ending, list(nodes.asked))


def play_in_machine(
    answers: Sequence[Sequence[Answer]], policy: RetryPolicy, *, idempotent: bool, level: ConsistencyLevel
) -> Run:
    """Play a request in our own machine."""
    scripts: dict[Hashable, Script] = {
        node: [answer or ROWS for answer in answers[node]] if node < len(answers) else [] for node in NODES
    }
    run = play(CassandraRequest(policy=policy, idempotent=idempotent, consistency=level), scripts)
    ending = "ada" if run.ending == ROWS else run.ending
    return Run(ending, [(order.node, order.consistency) for order in run.cluster.sent if isinstance(order, Send)])


def unavailable(required: int, alive: int, level: ConsistencyLevel = QUORUM) -> errors.Unavailable:
    """Return an UNAVAILABLE."""
    return errors.Unavailable(consistency=level, required=required, alive=alive)


def read(received: int, block_for: int, *, data: bool = False) -> errors.ReadTimeout:
    """Return a READ_TIMEOUT."""
    return errors.ReadTimeout(consistency=QUORUM, block_for=block_for, received=received, data_present=data)


def write(write_type: WriteType, received: int, block_for: int) -> errors.WriteTimeout:
    """Return a WRITE_TIMEOUT."""
    return errors.WriteTimeout(consistency=QUORUM, write_type=write_type, block_for=block_for, received=received)


CLOSED, SERVER = errors.ClosedConnection("closed"), errors.ServerError("no")
DEFAULT, DOWNGRADING = DefaultRetryPolicy(), ConsistencyDowngradingRetryPolicy()

levels = st.sampled_from(ConsistencyLevel)
counts = st.integers(min_value=0, max_value=4)

asked_about = st.one_of(
    st.none(),
    st.builds(errors.Unavailable, consistency=levels, required=counts, alive=counts),
    st.builds(errors.ReadTimeout, consistency=levels, block_for=counts, received=counts, data_present=st.booleans()),
    st.builds(
        errors.WriteTimeout,
        consistency=levels,
        write_type=st.sampled_from(WriteType),
        block_for=counts,
        received=counts,
    ),
    st.sampled_from([SERVER, errors.Overloaded("busy"), errors.TruncateError("no")]),
)
"""What the driver asks a policy about, and rows."""

never_asked_about = st.sampled_from(
    [errors.ReadFailure("1/2"), errors.WriteFailure("1/2"), errors.InvalidQuery("what?")]
)
"""What it raises by itself; both policies would rethrow the first two, and nobody is asked about the third."""


def scripts(answers: st.SearchStrategy[Answer]) -> st.SearchStrategy[list[list[Answer]]]:
    """Return what the three nodes answer."""
    return st.lists(st.lists(answers, max_size=4), min_size=3, max_size=3)


verdicts = st.one_of(
    st.sampled_from([RETRY_SAME, RETRY_NEXT, IGNORE]),
    st.builds(RetryVerdict, st.sampled_from([RetryDecision.RETRY_SAME, RetryDecision.RETRY_NEXT]), levels),
)


class Scenario(NamedTuple):
    """What nodes answer, and what becomes of it."""

    answers: Sequence[Sequence[Answer]]
    policy: RetryPolicy
    idempotent: bool
    ending: object
    asked: Sequence[tuple[int, ConsistencyLevel]]


EVERYWHERE = [[SERVER], [SERVER], [SERVER]]
ALL_NODES = [(node, QUORUM) for node in NODES]
AT_ONE = [(0, QUORUM), (0, ONE)]

SCENARIOS = [
    Scenario([[unavailable(2, 1)]], DEFAULT, False, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[unavailable(2, 1)]] * 2, DEFAULT, True, errors.Unavailable, [(0, QUORUM), (1, QUORUM)]),
    Scenario([[unavailable(2, 1)]], DOWNGRADING, False, "ada", AT_ONE),
    Scenario([[unavailable(2, 1), unavailable(1, 0, ONE)]], DOWNGRADING, True, errors.Unavailable, AT_ONE),
    Scenario([[unavailable(2, 1, SERIAL)]], DOWNGRADING, True, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[unavailable(2, 1, SERIAL)]] * 2, DOWNGRADING, True, errors.Unavailable, [(0, QUORUM), (1, QUORUM)]),
    Scenario([[read(2, 2)]], DEFAULT, False, "ada", [(0, QUORUM), (0, QUORUM)]),
    Scenario([[read(1, 2)]], DOWNGRADING, False, "ada", AT_ONE),
    Scenario([[write(WriteType.BATCH_LOG, 0, 1)]], DEFAULT, True, "ada", [(0, QUORUM), (0, QUORUM)]),
    Scenario([[write(WriteType.BATCH_LOG, 0, 1)]], DEFAULT, False, errors.WriteTimeout, [(0, QUORUM)]),
    Scenario([[write(WriteType.SIMPLE, 1, 2)]], DOWNGRADING, True, None, [(0, QUORUM)]),
    Scenario([[write(WriteType.SIMPLE, 1, 2)]], DOWNGRADING, False, errors.WriteTimeout, [(0, QUORUM)]),
    Scenario([[write(WriteType.UNLOGGED_BATCH, 2, 3)]], DOWNGRADING, True, "ada", [(0, QUORUM), (0, TWO)]),
    Scenario([[CLOSED]], DEFAULT, True, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[CLOSED]], DEFAULT, False, errors.ClosedConnection, [(0, QUORUM)]),
    Scenario([[CLOSED]] * 3, DEFAULT, True, errors.AllNodesFailed, ALL_NODES),
    Scenario(EVERYWHERE, DEFAULT, True, errors.AllNodesFailed, ALL_NODES),
    Scenario(EVERYWHERE, DEFAULT, False, errors.ServerError, [(0, QUORUM)]),
    Scenario([[errors.Overloaded("busy")]], DOWNGRADING, True, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[errors.TruncateError("no")]], DOWNGRADING, True, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[errors.Bootstrapping("joining")]], Always(RETHROW), False, "ada", [(0, QUORUM), (1, QUORUM)]),
    Scenario([[errors.ReadFailure("1/2")]], DEFAULT, True, errors.ReadFailure, [(0, QUORUM)]),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenarios(nodes: CqlCluster, scenario: Scenario) -> None:
    """A request goes where the policy sends it, at the level that it names, and ends as it decides."""
    run = play_in_driver(nodes, scenario.answers, scenario.policy, idempotent=scenario.idempotent)

    assert Run(scenario.ending, scenario.asked) == run


def test_what_bootstrapping_counts(nodes: CqlCluster) -> None:
    """The driver counts a node that is bootstrapping, so that the next one's first failure is the second."""
    answers: list[list[Answer]] = [[errors.Bootstrapping("joining")], [unavailable(2, 1)]]

    assert errors.Unavailable is play_in_driver(nodes, answers, DOWNGRADING).ending
    assert "ada" == play_in_machine(answers, DOWNGRADING, idempotent=True, level=QUORUM).ending


@pytest.mark.parametrize("error", [errors.CdcWriteFailure("full"), errors.FunctionFailure("throws")])
def test_what_no_policy_hears_of(nodes: CqlCluster, error: errors.CoordinatorError) -> None:
    """The driver raises by itself what it has no question for."""
    policy = Always(RETRY_NEXT)

    assert [(0, QUORUM)] == play_in_driver(nodes, [[error]], policy).asked
    assert [] == policy.asked


def test_preparing(nodes: CqlCluster) -> None:
    """About a PREPARE the driver asks a policy of its own, whatever the profile has."""
    nodes.asked.clear()
    nodes.script = lambda asked: SERVER if asked == (0, None) else None
    policy = Always(RETHROW)
    with Client(nodes, policy) as session:
        session.prepare("SELECT name FROM travel.people")

    assert [(0, None), (1, None)] == nodes.asked[:2]
    assert [] == policy.asked


@pytest.mark.parametrize("answer", [ZeroDivisionError("oops"), None, "RETRY_NEXT", (0, None)])
def test_policies_that_fail(nodes: CqlCluster, answer: object) -> None:
    """What a policy raises reaches the caller, with what the node answered; nothing else is taken for a verdict."""
    with pytest.raises(errors.PolicyFailed) as caught:
        play_in_driver(nodes, [[unavailable(2, 1)]], Always(answer))

    assert ["what the node answered: QUORUM needs 2 replicas, 1 is alive"] == caught.value.__notes__
    assert isinstance(caught.value.__cause__, ZeroDivisionError if isinstance(answer, Exception) else TypeError)
    assert [(0, QUORUM)] == nodes.asked


@given(
    answers=scripts(st.one_of(asked_about, never_asked_about, st.just(CLOSED))),
    policy=st.sampled_from([DEFAULT, DOWNGRADING]),
    idempotent=st.booleans(),
    level=levels,
)
def test_agrees_with_the_machine(
    nodes: CqlCluster, answers: list[list[Answer]], policy: RetryPolicy, idempotent: bool, level: ConsistencyLevel
) -> None:
    """Whatever the nodes answer, the driver with a policy of ours asks whom our machine asks, and ends as it does."""
    expected = play_in_machine(answers, policy, idempotent=idempotent, level=level)

    assert expected == play_in_driver(nodes, answers, policy, idempotent=idempotent, level=level)


@given(answers=scripts(asked_about), verdict=verdicts, idempotent=st.booleans())
def test_policies_of_ones_own_agree_too(
    nodes: CqlCluster, answers: list[list[Answer]], verdict: RetryVerdict, idempotent: bool
) -> None:
    """The same for a policy that always gives one verdict."""
    policy = Always(verdict)
    expected = play_in_machine(answers, policy, idempotent=idempotent, level=QUORUM)

    assert expected == play_in_driver(nodes, answers, policy, idempotent=idempotent)
