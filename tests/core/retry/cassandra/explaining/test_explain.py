"""One error of Cassandra's, explained by the policies and the request machine."""

from __future__ import annotations

from typing import cast

import pytest

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.explaining.explain import ROUTE_CLAUSES, VERDICT_CLAUSES, Case, explain
from triclinium_core.retry.cassandra.explaining.explanation import Outcome
from triclinium_core.retry.cassandra.explaining.fixed_policy import FixedPolicy
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy, verdict_on
from triclinium_core.retry.cassandra.requests import routes
from triclinium_core.retry.cassandra.requests.routes import Route, Routes
from triclinium_core.retry.cassandra.verdicts import RETRY_NEXT

QUORUM = ConsistencyLevel.QUORUM
READ = e.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=True)
WRITE = e.WriteTimeout(consistency=QUORUM, write_type=WriteType.SIMPLE, block_for=2, received=1)
UNAVAILABLE = e.Unavailable(consistency=QUORUM, required=2, alive=1)
DEFAULT, DOWNGRADING = DefaultRetryPolicy(), ConsistencyDowngradingRetryPolicy()

Failure = e.RequestAborted | e.FrameTooLong | e.CoordinatorError


@rows(
    ("error", "policy", "idempotent", "expected"),
    [
        (READ, DEFAULT, False, ("RETHROW", "fail", "ReadTimeout", None)),
        (READ, DOWNGRADING, False, ("RETRY_SAME", "same_node", None, "ONE")),
        (UNAVAILABLE, DEFAULT, False, ("RETRY_NEXT", "next_node", None, None)),
        (WRITE, DOWNGRADING, False, (None, "fail", "WriteTimeout", None)),
        (WRITE, DOWNGRADING, True, ("IGNORE", "empty", None, None)),
        (e.HeartbeatFailure(), DEFAULT, True, ("RETRY_NEXT", "next_node", None, None)),
        (e.HeartbeatFailure(), DEFAULT, False, (None, "fail", "HeartbeatFailure", None)),
        (e.RequestAborted("no UTF-8"), DEFAULT, True, ("RETHROW", "fail", "RequestAborted", None)),
        (e.Overloaded(), DEFAULT, True, ("RETRY_NEXT", "next_node", None, None)),
        (e.WriteFailure(), DEFAULT, True, ("RETHROW", "fail", "WriteFailure", None)),
        (e.Bootstrapping(), DEFAULT, False, (None, "next_node", None, None)),
        (e.Unprepared(), DEFAULT, False, (None, "prepare", None, None)),
        (e.InvalidQuery(), DEFAULT, True, (None, "fail", "InvalidQuery", None)),
        (e.AuthenticationError(), DEFAULT, True, (None, "fail", "ProtocolError", None)),
        (e.FrameTooLong(), DEFAULT, True, (None, "fail", "FrameTooLong", None)),
    ],
)
def test_what_happens(
    error: Failure, policy: RetryPolicy, idempotent: bool, expected: tuple[str | None, str, str | None, str | None]
) -> None:
    """The verdict where the policy is asked, what comes of the request, and at which level it goes on."""
    told = explain(Case(error=error, policy=policy, idempotent=idempotent)).to_json()

    assert expected == (told["decision"], told["action"], told["error"], told["consistency"])
    assert (expected[0] is not None) == told["is_policy_asked"]


def test_the_policy_is_told_the_count() -> None:
    """A retry that was done already is one that the default policy does not do again."""
    first, second = (explain(Case(error=UNAVAILABLE, policy=DEFAULT, retry_count=count)) for count in (0, 1))

    assert (Outcome.NEXT_NODE, True) == (first.outcome, first.counts_as_retry)
    assert (Outcome.FAIL, False) == (second.outcome, second.counts_as_retry)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            Case(error=READ, policy=DOWNGRADING),
            [
                "The coordinator answered ReadTimeout: QUORUM needs 2 answers, 1 came in time, one with the data.",
                "Such an error is brought before the policy, whether the statement is idempotent or not (decision A2).",
                (
                    "ConsistencyDowngradingRetryPolicy says RETRY_SAME at ONE "
                    "(driver's page, onReadTimeoutVerdict; decisions A3, A5 and A6)."
                ),
                "So the request is sent to the same node again, at ONE from now on. This counts as retry 1.",
            ],
        ),
        (
            Case(error=WRITE, policy=DOWNGRADING),
            [
                "The coordinator answered WriteTimeout: SIMPLE write: QUORUM needs 2 acknowledgements, 1 came in time.",
                (
                    "The statement is not idempotent and may have been executed, so no policy is asked (decision A2). If "
                    "the statement were idempotent, ConsistencyDowngradingRetryPolicy would say IGNORE."
                ),
                "So the caller gets WriteTimeout.",
            ],
        ),
        (
            Case(error=WRITE, policy=DOWNGRADING, idempotent=True),
            [
                "The coordinator answered WriteTimeout: SIMPLE write: QUORUM needs 2 acknowledgements, 1 came in time.",
                "The statement is idempotent, so such an error is brought before the policy (decision A2).",
                (
                    "ConsistencyDowngradingRetryPolicy says IGNORE "
                    "(driver's page, onWriteTimeoutVerdict; decisions A3 and A6)."
                ),
                "So the request counts as done, and the caller gets no rows.",
            ],
        ),
        (
            Case(error=e.ClosedConnection(), policy=DEFAULT, idempotent=True, retry_count=4),
            [
                "No answer came, or none that can be read: ClosedConnection.",
                "The statement is idempotent, so such an error is brought before the policy (decision A2).",
                "DefaultRetryPolicy says RETRY_NEXT (driver's page, onRequestAbortedVerdict; decision A1).",
                (
                    "So the request is sent to the next node of its plan; where there is none left, it fails with "
                    "AllNodesFailed. This counts as retry 5."
                ),
            ],
        ),
        (
            Case(error=e.Bootstrapping("soon"), policy=DEFAULT),
            [
                "The coordinator answered Bootstrapping (soon).",
                (
                    "The node has certainly not executed it, so no policy is asked "
                    "(driver's page, Hard-coded rules; decision A8)."
                ),
                (
                    "So the request is sent to the next node of its plan; where there is none left, it fails with "
                    "AllNodesFailed. This does not count as a retry."
                ),
            ],
        ),
        (
            Case(error=e.Unprepared(), policy=DEFAULT),
            [
                "The coordinator answered Unprepared (the statement is not prepared).",
                (
                    "The node does not know the statement any more, so no policy is asked "
                    "(driver's page, Hard-coded rules; decisions A8 and A10)."
                ),
                (
                    "So the statement is prepared on that node again, and the request sent there anew. "
                    "This does not count as a retry."
                ),
            ],
        ),
        (
            Case(error=e.FrameTooLong(), policy=DEFAULT),
            [
                "The request or its answer does not fit a frame.",
                "No retry can mend this, so no policy is asked (driver's page, Hard-coded rules; decision A9).",
                "So the caller gets FrameTooLong.",
            ],
        ),
    ],
)
def test_in_words(case: Case, expected: list[str]) -> None:
    """What happened, who decides, what is decided and what comes of it, each with its clause."""
    assert expected == explain(case).sentences()


def test_clauses_stand_in_the_sentences() -> None:
    """Those of the decision are listed, in their order."""
    explanation = explain(Case(error=READ, policy=DEFAULT))

    words = " ".join(explanation.sentences())
    assert ("decision A2", VERDICT_CLAUSES[e.ReadTimeout]) == explanation.clauses
    assert sorted(explanation.clauses, key=words.index) == list(explanation.clauses)


def test_every_route_has_a_clause() -> None:
    """None is told without saying where it stands."""
    assert set(Route) == ROUTE_CLAUSES.keys()


def test_it_follows_the_table_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is changed changes the explanation."""
    rows = dict(routes.ROUTES) | {e.Overloaded: Routes(Route.RAISE, Route.RAISE, Route.RAISE)}
    monkeypatch.setattr(routes, "ROUTES", rows)

    explanation = explain(Case(error=e.Overloaded(), policy=DEFAULT, idempotent=True))

    assert (Outcome.FAIL, False) == (explanation.outcome, explanation.is_policy_asked)


def test_a_policy_that_fails() -> None:
    """It makes the request fail, and that is told."""
    explanation = explain(Case(error=READ, policy=FixedPolicy(None)))

    assert [
        "FixedPolicy fails to answer (decision A12).",
        "So the caller gets PolicyFailed.",
    ] == explanation.sentences()[2:]
    assert ("decision A2", "decision A12") == explanation.clauses


def test_a_policy_of_ones_own() -> None:
    """Whatever it is called, it is asked."""
    explanation = explain(Case(error=READ, policy=FixedPolicy(RETRY_NEXT)))

    assert ("FixedPolicy", RETRY_NEXT) == (explanation.policy, explanation.verdict)


@pytest.mark.parametrize("error", [READ, WRITE, UNAVAILABLE, e.ClosedConnection(), e.Overloaded()])
def test_a_fixed_policy_answers_the_same(error: e.CassandraError) -> None:
    """Whatever it is asked about."""
    assert RETRY_NEXT is verdict_on(FixedPolicy(RETRY_NEXT), error, retry_count=3)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"error": e.DriverTimeout()}, "error"),
        ({"error": None}, "error"),
        ({"policy": "default"}, "policy"),
        ({"policy": DefaultRetryPolicy}, "policy"),
        ({"idempotent": None}, "idempotent"),
        ({"retry_count": -1}, "retry_count"),
    ],
)
def test_refuses(change: dict[str, object], parameter: str) -> None:
    """What cannot be a case is refused, with the name of what is wrong."""
    arguments = {"error": READ, "policy": DEFAULT} | change
    with pytest.raises(InvalidArgumentException) as caught:
        Case(
            error=cast(Failure, arguments["error"]),
            policy=cast(RetryPolicy, arguments["policy"]),
            idempotent=cast(bool, arguments.get("idempotent", False)),
            retry_count=cast(int, arguments.get("retry_count", 0)),
        )

    assert parameter == caught.value.parameter
