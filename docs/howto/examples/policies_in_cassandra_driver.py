"""triclinium's retry policies in the package cassandra-driver. The example calls them without a node."""

from __future__ import annotations

from cassandra import ConsistencyLevel, WriteType
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RetryPolicy, RoundRobinPolicy
from cassandra.query import SimpleStatement

from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy

DECISIONS = {
    RetryPolicy.RETRY: "same node",
    RetryPolicy.RETRY_NEXT_HOST: "next node",
    RetryPolicy.RETHROW: "raise",
    RetryPolicy.IGNORE: "ignore",
}


def configure() -> Cluster:
    """Return a cluster whose profile for reports may read from fewer replicas; `connect()` opens a session."""
    careful = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=DriverRetryPolicy(DefaultRetryPolicy()),
        consistency_level=ConsistencyLevel.QUORUM,
    )
    reports = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=DriverRetryPolicy(ConsistencyDowngradingRetryPolicy()),
        consistency_level=ConsistencyLevel.QUORUM,
    )
    return Cluster(["127.0.0.1"], execution_profiles={EXEC_PROFILE_DEFAULT: careful, "reports": reports})


def in_words(answer: tuple[int, int | None]) -> str:
    """Return the decision that the driver gets, as text."""
    decision, level = answer
    return DECISIONS[decision] + (f" at {ConsistencyLevel.value_to_name[level]}" if level is not None else "")


def ask(policy: RetryPolicy) -> None:
    """Print the policy's decisions about a read and a write when only one of three replicas is alive."""
    read = SimpleStatement("SELECT * FROM travel.people")
    quorum = ConsistencyLevel.QUORUM
    print("unavailable:", in_words(policy.on_unavailable(read, quorum, 2, 1, 0)))
    print("read timeout:", in_words(policy.on_read_timeout(read, quorum, 2, 1, False, 0)))
    for is_idempotent in (False, True):
        write = SimpleStatement("UPDATE travel.people SET name = 'ada' WHERE id = 1", is_idempotent=is_idempotent)
        answer = policy.on_write_timeout(write, quorum, WriteType.SIMPLE, 2, 1, 0)
        print(f"write timeout, is_idempotent={is_idempotent}:", in_words(answer))


if __name__ == "__main__":
    with configure() as cluster:
        for name in (EXEC_PROFILE_DEFAULT, "reports"):
            policy = cluster.profile_manager.profiles[name].retry_policy
            print(type(policy.policy).__name__)
            ask(policy)
