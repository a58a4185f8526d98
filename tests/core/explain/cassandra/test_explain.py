"""Explanations of one Cassandra error, as the policies and the request machine produce them."""

from __future__ import annotations

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.explain.cassandra.explain import CassandraCase, explain
from triclinium_core.explain.explanation import Outcome
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors
from triclinium_core.tools.vectors.cassandra_script import FixedPolicy

QUORUM = cassandra.ConsistencyLevel.QUORUM
READ = errors.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True)
WRITE = errors.WriteTimeout(consistency=QUORUM, write_type=cassandra.WriteType.SIMPLE, block_for=2, received=1)
UNAVAILABLE = errors.Unavailable(consistency=QUORUM, required=2, alive=1)
DEFAULT, DOWNGRADING = cassandra.DefaultRetryPolicy(), cassandra.ConsistencyDowngradingRetryPolicy()

Failure = errors.RequestAborted | errors.FrameTooLong | errors.CoordinatorError


@rows(
    ("error", "policy", "idempotent", "expected"),
    [
        (READ, DEFAULT, False, ("RETHROW", "fail", "ReadTimeout", None)),
        (READ, DOWNGRADING, False, ("RETRY_SAME", "same_node", None, "ONE")),
        (UNAVAILABLE, DEFAULT, False, ("RETRY_NEXT", "next_node", None, None)),
        (WRITE, DOWNGRADING, False, (None, "fail", "WriteTimeout", None)),
        (WRITE, DOWNGRADING, True, ("IGNORE", "empty", None, None)),
        (errors.HeartbeatFailure(), DEFAULT, True, ("RETRY_NEXT", "next_node", None, None)),
        (errors.HeartbeatFailure(), DEFAULT, False, (None, "fail", "HeartbeatFailure", None)),
        (errors.RequestAborted("no UTF-8"), DEFAULT, True, ("RETHROW", "fail", "RequestAborted", None)),
        (errors.Overloaded(), DEFAULT, True, ("RETRY_NEXT", "next_node", None, None)),
        (errors.WriteFailure(), DEFAULT, True, ("RETHROW", "fail", "WriteFailure", None)),
        (errors.Bootstrapping(), DEFAULT, False, (None, "next_node", None, None)),
        (errors.Unprepared(), DEFAULT, False, (None, "prepare", None, None)),
        (errors.InvalidQuery(), DEFAULT, True, (None, "fail", "InvalidQuery", None)),
        (errors.AuthenticationError(), DEFAULT, True, (None, "fail", "ProtocolError", None)),
        (errors.FrameTooLong(), DEFAULT, True, (None, "fail", "FrameTooLong", None)),
    ],
)
def test_decision_action_error_and_consistency(
    error: Failure,
    policy: cassandra.RetryPolicy,
    idempotent: bool,
    expected: tuple[str | None, str, str | None, str | None],
) -> None:
    """The facts have the action, the error, the next consistency level and, if the policy is called, its decision."""
    reported = explain(CassandraCase(error=error, policy=policy, idempotent=idempotent)).to_json()

    assert expected == (reported["decision"], reported["action"], reported["error"], reported["consistency"])
    assert (expected[0] is not None) == reported["is_policy_asked"]


@rows(
    ("case", "clauses"),
    [
        (CassandraCase(error=READ, policy=DOWNGRADING), ["A2", "A3", "A5", "A6"]),
        (CassandraCase(error=WRITE, policy=DOWNGRADING), ["A2"]),
        (CassandraCase(error=WRITE, policy=DOWNGRADING, idempotent=True), ["A2", "A3", "A6"]),
        (CassandraCase(error=errors.ClosedConnection(), policy=DEFAULT, idempotent=True, retry_count=4), ["A2", "A1"]),
        (CassandraCase(error=errors.Bootstrapping("soon"), policy=DEFAULT), ["A8"]),
        (CassandraCase(error=errors.Unprepared(), policy=DEFAULT), ["A8", "A10"]),
        (CassandraCase(error=errors.FrameTooLong(), policy=DEFAULT), ["A9"]),
        (CassandraCase(error=READ, policy=FixedPolicy(None)), ["A2", "A12"]),
        (CassandraCase(error=READ, policy=FixedPolicy(cassandra.RETRY_NEXT)), ["A2"]),
    ],
)
def test_sentences_contain_all_facts(case: CassandraCase, clauses: list[str]) -> None:
    """The sentences have the event, the decider, the decision and the result, in this order, each with its clause."""
    explanation = explain(case)
    reported, sentences = explanation.facts, explanation.sentences()
    words = " ".join(sentences)
    facts = [str(reported["happened"])[1:], *explanation.clauses, *clauses]
    if reported["is_policy_asked"]:
        facts += [str(reported["policy"]), str(reported["decision"] or "fails")]
    if reported["decision_if_idempotent"] is not None:
        facts += ["If the statement were idempotent", str(reported["decision_if_idempotent"])]
    if reported["consistency"] is not None:
        facts.append(f"at {reported['consistency']} ")
    if reported["error"] is not None:
        facts.append(str(reported["error"]))
    if reported["action"] in {"same_node", "next_node", "prepare"}:
        facts.append(f"as retry {case.retry_count + 1}" if reported["counts_as_retry"] else "not count as a retry")

    assert [] == [fact for fact in facts if fact not in words]
    assert (4 if reported["is_policy_asked"] else 3) == len(sentences)
    assert sorted(explanation.clauses, key=words.index) == list(explanation.clauses)
    assert (reported["action"],) == explanation.outcomes


def test_policy_gets_the_retry_count() -> None:
    """The policy gets the retry count, so the default policy retries the first failure and refuses the second."""
    first, second = (explain(CassandraCase(error=UNAVAILABLE, policy=DEFAULT, retry_count=count)) for count in (0, 1))

    assert ((Outcome.NEXT_NODE,), True) == (first.outcomes, first.facts["counts_as_retry"])
    assert ((Outcome.FAIL,), False) == (second.outcomes, second.facts["counts_as_retry"])


@rows("error", [READ, WRITE, UNAVAILABLE, errors.ClosedConnection(), errors.Overloaded()])
def test_fixed_policy_gives_the_same_verdict(error: errors.CassandraError) -> None:
    """A FixedPolicy returns the same verdict for errors of different kinds."""
    assert cassandra.RETRY_NEXT is cassandra.verdict_on(FixedPolicy(cassandra.RETRY_NEXT), error, retry_count=3)


@rows(
    ("change", "parameter"),
    [
        ({"error": errors.DriverTimeout()}, "error"),
        ({"error": None}, "error"),
        ({"policy": "default"}, "policy"),
        ({"policy": cassandra.DefaultRetryPolicy}, "policy"),
        ({"idempotent": None}, "idempotent"),
        ({"retry_count": -1}, "retry_count"),
    ],
)
def test_refuses(change: dict[str, object], parameter: str) -> None:
    """An invalid argument raises ArgumentError with the parameter's name."""
    with refusal_of(parameter):
        CassandraCase(**({"error": READ, "policy": DEFAULT} | change))  # type: ignore[arg-type]
