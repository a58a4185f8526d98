"""Cassandra retry policies: single decisions, execution profiles, and a request over a query plan."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CoordinatorError, Overloaded, ReadTimeout, Unavailable, WriteTimeout
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import verdict_on
from triclinium_core.retry.cassandra.profiles.profiles import ExecutionProfile, ExecutionProfiles
from triclinium_core.retry.cassandra.requests.actions import CassandraAction, Complete, Fail, Send
from triclinium_core.retry.cassandra.requests.events import (
    ErrorReceived,
    RequestStarted,
    RequestWritten,
    ResultReceived,
)
from triclinium_core.retry.cassandra.requests.request_machine import RequestMachine
from triclinium_core.retry.cassandra.verdicts import RETHROW, RETRY_NEXT, RetryVerdict

QUORUM = ConsistencyLevel.QUORUM
FAILURES = [
    ReadTimeout(consistency=QUORUM, block_for=2, received=2, data_present=False),
    ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True),
    WriteTimeout(consistency=QUORUM, write_type=WriteType.SIMPLE, block_for=2, received=1),
    Unavailable(consistency=QUORUM, required=2, alive=1),
    Overloaded("too many requests"),
]


def in_words(verdict: RetryVerdict) -> str:
    """Return the decision of a policy as text."""
    return f"{verdict.decision}" + (f" at {verdict.consistency.name}" if verdict.consistency is not None else "")


def ask() -> None:
    """Print the decisions of both policies on each failure, before any retry."""
    for failure in FAILURES:
        print(f"{type(failure).__name__}: {failure}")
        for policy in (DefaultRetryPolicy(), ConsistencyDowngradingRetryPolicy()):
            print(f"    {type(policy).__name__}: {in_words(verdict_on(policy, failure, retry_count=0))}")


@dataclass(frozen=True, kw_only=True)
class PatientRetryPolicy(DefaultRetryPolicy):
    """A policy that tries several other nodes if replicas are missing."""

    nodes: int = 2

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> RetryVerdict:
        """Return RETRY_NEXT until the maximum number of other nodes is reached."""
        return RETRY_NEXT if retry_count < self.nodes else RETHROW


DOCUMENT = """
request_timeout = 2.0
consistency = "QUORUM"

[profiles.slow]
request_timeout = 30.0

[profiles.reports]
default_idempotence = true
retry_policy.class = "ConsistencyDowngradingRetryPolicy"

[profiles.archive.retry_policy]
class = "downgrading"

[profiles.patient.retry_policy]
class = "PatientRetryPolicy"
nodes = 3
"""


DRIVER_DOCUMENT = """
[datastax-java-driver]
advanced.retry-policy.class = "DefaultRetryPolicy"

[datastax-java-driver.profiles.custom-retries]
advanced.retry-policy.class = "com.example.PatientRetryPolicy"

[datastax-java-driver.profiles.slow]
request.timeout = "30 seconds"
"""


def read_profiles() -> ExecutionProfiles:
    """Show that profiles inherit options, and that profiles with the same policy options share one policy."""
    profiles = ExecutionProfiles.from_toml(DOCUMENT, policies={"PatientRetryPolicy": PatientRetryPolicy})
    for name in profiles.names:
        profile = profiles.find(name)
        print(f"{name}: {profile.request_timeout} s, {profile.consistency.name}, {type(profile.retry_policy).__name__}")

    assert profiles.find("slow").retry_policy is profiles.default.retry_policy
    assert profiles.find("reports").retry_policy is profiles.find("archive").retry_policy
    return profiles


def read_driver_names() -> None:
    """Read a document with the driver's option names."""
    own = {"com.example.PatientRetryPolicy": PatientRetryPolicy}
    profiles = ExecutionProfiles.from_toml(DRIVER_DOCUMENT, policies=own)
    for name in profiles.names:
        profile = profiles.find(name)
        print(f"{name}: {profile.request_timeout} s, {type(profile.retry_policy).__name__}")


def mistakes(profiles: ExecutionProfiles) -> None:
    """Show that an error in a document names its position, and that an unknown profile is an error."""
    for text in ("profiles.slow.request_timeout = nan", 'profiles.slow.retry_policy.class = "Patient"'):
        try:
            ExecutionProfiles.from_toml(text)
        except ArgumentError as error:
            print(error)
    try:
        profiles.find("fast")
    except ArgumentError as error:
        print(error)


def replicas_are_missing(level: ConsistencyLevel | None) -> CoordinatorError | None:
    """Return the error of every node while one replica of three is alive; None at the level ONE."""
    asked = level or QUORUM
    return None if asked is ConsistencyLevel.ONE else Unavailable(consistency=asked, required=2, alive=1)


def execute(profile: ExecutionProfile, nodes: list[str]) -> None:
    """Send a read to the nodes that the profile's policy selects."""
    machine = RequestMachine(profile.request(idempotent=True), nodes)
    actions: deque[CassandraAction] = deque(machine.handle(RequestStarted(), now=0.0))
    while actions:
        match actions.popleft():
            case Send(attempt=attempt, node=node, consistency=level):
                print(f"    to {node} at {level.name if level is not None else None}")
                actions += machine.handle(RequestWritten(attempt), now=0.0)
                error = replicas_are_missing(level)
                answer = ResultReceived(attempt, "rows") if error is None else ErrorReceived(attempt, error)
                actions += machine.handle(answer, now=0.0)
            case Complete(result=result):
                print(f"    {result}")
            case Fail(error=error):
                print(f"    {type(error).__name__}: {error}")
            case _:
                pass  # reports, for logs and metrics


if __name__ == "__main__":
    ask()
    print()
    profiles = read_profiles()
    print()
    read_driver_names()
    print()
    mistakes(profiles)
    for name in ("default", "reports", "patient"):
        print(f"\n{name}:")
        execute(profiles.find(name), ["n1", "n2", "n3", "n4"])
    print("\ndefault, one node:")
    execute(profiles.default, ["n1"])
