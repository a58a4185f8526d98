"""Our policies in the real ``ResponseFuture`` of ``cassandra-driver``, with scripted nodes.

The tests compare the driver, which uses one of our policies, with our own request machine. Unless a test
names a difference, both send the same requests to the same nodes at the same levels, with the same result.
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

Level = ConsistencyLevel
ONE, TWO, QUORUM, SERIAL = Level.ONE, Level.TWO, Level.QUORUM, Level.SERIAL
NODES = range(3)

SAFETY_NET_SECONDS = 300.0
"""Seconds until a request without a response fails its test."""

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
    """Result of a request, and the requests that the nodes received."""

    ending: object
    """Result of the request: the name in its row, None without a row, or the class of the error."""
    asked: Sequence[tuple[Hashable, ConsistencyLevel | None]]


class InOrder(RoundRobinPolicy):  # type: ignore[misc]  # The package has no types.
    """Load balancing policy that tries the nodes in the order of ``ports``."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__()
        self._ports = ports

    def make_query_plan(self, working_keyspace: object = None, query: object = None) -> list[Any]:
        """Return all live nodes in the order of ``ports``."""
        return sorted(self._live_hosts, key=lambda host: self._ports.index(host.endpoint.port))


class Client:
    """Context manager that opens a session of the driver, and shuts the driver down at the end."""

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
            connect_timeout=SAFETY_NET_SECONDS,
            control_connection_timeout=SAFETY_NET_SECONDS,
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
    """Yield three nodes, which the tests of the module share. By default each responds with a row."""
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
    """Run a request in the driver; each node sends the responses in its list, and rows afterwards."""

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
    """Run a request in our own machine."""
    scripts: dict[Hashable, Script] = {
        node: [answer or ROWS for answer in answers[node]] if node < len(answers) else [] for node in NODES
    }
    run = play(CassandraRequest(policy=policy, idempotent=idempotent, consistency=level), scripts)
    ending = "ada" if run.ending == ROWS else run.ending
    return Run(ending, [(order.node, order.consistency) for order in run.cluster.sent if isinstance(order, Send)])


def unavailable(required: int, alive: int, level: ConsistencyLevel = QUORUM) -> errors.Unavailable:
    """Return an UNAVAILABLE error."""
    return errors.Unavailable(consistency=level, required=required, alive=alive)


def read(received: int, block_for: int, *, data: bool = False) -> errors.ReadTimeout:
    """Return a READ_TIMEOUT error."""
    return errors.ReadTimeout(consistency=QUORUM, block_for=block_for, received=received, data_present=data)


def write(write_type: WriteType, received: int, block_for: int) -> errors.WriteTimeout:
    """Return a WRITE_TIMEOUT error."""
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
"""Rows, and errors about which the driver consults a policy."""

never_asked_about = st.sampled_from(
    [errors.ReadFailure("1/2"), errors.WriteFailure("1/2"), errors.InvalidQuery("what?")]
)
"""Errors that the driver and our machine raise. Policies rethrow the first two; the third reaches no policy."""


def scripts(answers: st.SearchStrategy[Answer]) -> st.SearchStrategy[list[list[Answer]]]:
    """Return a strategy for the responses of the three nodes."""
    return st.lists(st.lists(answers, max_size=4), min_size=3, max_size=3)


verdicts = st.one_of(
    st.sampled_from([RETRY_SAME, RETRY_NEXT, IGNORE]),
    st.builds(RetryVerdict, st.sampled_from([RetryDecision.RETRY_SAME, RetryDecision.RETRY_NEXT]), levels),
)


class Scenario(NamedTuple):
    """Responses of the nodes to a request, and the expected result and attempts."""

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
    """The driver sends a request to the nodes and at the levels that the policy chooses, and gives its result."""
    run = play_in_driver(nodes, scenario.answers, scenario.policy, idempotent=scenario.idempotent)

    assert Run(scenario.ending, scenario.asked) == run


def test_driver_counts_a_bootstrapping_node(nodes: CqlCluster) -> None:
    """The driver counts a bootstrapping node as a retry; our machine does not."""
    answers: list[list[Answer]] = [[errors.Bootstrapping("joining")], [unavailable(2, 1)]]

    assert errors.Unavailable is play_in_driver(nodes, answers, DOWNGRADING).ending
    assert "ada" == play_in_machine(answers, DOWNGRADING, idempotent=True, level=QUORUM).ending


@pytest.mark.parametrize("error", [errors.CdcWriteFailure("full"), errors.FunctionFailure("throws")])
def test_driver_raises_without_the_policy(nodes: CqlCluster, error: errors.CoordinatorError) -> None:
    """The driver neither retries nor consults the policy for errors for which it has no callback."""
    policy = Always(RETRY_NEXT)

    assert [(0, QUORUM)] == play_in_driver(nodes, [[error]], policy).asked
    assert [] == policy.asked


def test_prepare_uses_the_drivers_own_policy(nodes: CqlCluster) -> None:
    """The driver consults its own policy about a PREPARE, never the profile's."""
    nodes.asked.clear()
    nodes.script = lambda asked: SERVER if asked == (0, None) else None
    policy = Always(RETHROW)
    with Client(nodes, policy) as session:
        session.prepare("SELECT name FROM travel.people")

    assert [(0, None), (1, None)] == nodes.asked[:2]
    assert [] == policy.asked


@pytest.mark.parametrize("answer", [ZeroDivisionError("oops"), None, "RETRY_NEXT", (0, None)])
def test_failing_policy_reaches_the_caller(nodes: CqlCluster, answer: object) -> None:
    """If a policy raises or returns an invalid decision, PolicyFailed is raised with the node's response as a note."""
    with pytest.raises(errors.PolicyFailed) as caught:
        play_in_driver(nodes, [[unavailable(2, 1)]], Always(answer))

    assert "QUORUM needs 2 of the replicas; 1 is alive" in caught.value.__notes__[0]
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
    """For many responses, the driver with our policy sends the same requests as our machine, with the same result."""
    expected = play_in_machine(answers, policy, idempotent=idempotent, level=level)

    assert expected == play_in_driver(nodes, answers, policy, idempotent=idempotent, level=level)


@given(answers=scripts(asked_about), verdict=verdicts, idempotent=st.booleans())
def test_custom_policies_agree_with_the_machine(
    nodes: CqlCluster, answers: list[list[Answer]], verdict: RetryVerdict, idempotent: bool
) -> None:
    """Under a policy that always makes the same decision, the driver and our machine also send the same requests."""
    policy = Always(verdict)
    expected = play_in_machine(answers, policy, idempotent=idempotent, level=QUORUM)

    assert expected == play_in_driver(nodes, answers, policy, idempotent=idempotent)
