"""The adapter for ``cassandra-driver``: its tables against the package's, and each question, asked as the driver asks."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import cassandra
import pytest
from cassandra import connection, policies, protocol
from cassandra.query import BatchStatement, SimpleStatement

from tests.core.retry.cassandra.policies_for_tests import Always, never_asked
from tests.rows import rows
from triclinium_core.adapters import cassandra_driver as adapter
from triclinium_core.adapters.cassandra_driver import DriverRetryPolicy
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import errors, verdicts
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.requests.judgement import Step

pytestmark = pytest.mark.native

SAME, NEXT, THROW, IGNORED = (
    policies.RetryPolicy.RETRY,
    policies.RetryPolicy.RETRY_NEXT_HOST,
    policies.RetryPolicy.RETHROW,
    policies.RetryPolicy.IGNORE,
)

IDEMPOTENT = SimpleStatement("SELECT 1", is_idempotent=True)
NOT_IDEMPOTENT = SimpleStatement("UPDATE 1")
STATEMENTS = [IDEMPOTENT, NOT_IDEMPOTENT, BatchStatement()]

READ: dict[str, Any] = {"consistency": 4, "required_responses": 2, "received_responses": 1, "data_retrieved": False}
WRITE: dict[str, Any] = {"consistency": 4, "required_responses": 2, "received_responses": 1, "write_type": 0}
UNAVAILABLE: dict[str, Any] = {"consistency": 4, "required_replicas": 2, "alive_replicas": 1}
"""What the driver takes from an ERROR frame."""


def server_error(kind: type = protocol.ServerError) -> Any:
    """Return what the driver makes of an ERROR frame."""
    return kind(code=kind.error_code, message="oops", info=None)  # type: ignore[attr-defined]


def test_every_level_of_the_driver_is_known() -> None:
    """Names and values are those of the driver, and none is left out."""
    assert cassandra.ConsistencyLevel.value_to_name == {value: level.name for value, level in adapter.LEVELS.items()}


def test_every_write_type_of_the_driver_is_known() -> None:
    """Names and values are those of the driver, and none is left out."""
    assert cassandra.WriteType.value_to_name == {value: kind.name for value, kind in adapter.WRITE_TYPES.items()}


def test_every_step_but_one_has_a_decision() -> None:
    """The driver prepares anew by itself; all that is left it knows under a number of its own."""
    assert set(Step) - {Step.REPREPARE} == set(adapter.DECISIONS)
    assert {SAME, NEXT, THROW, IGNORED} == set(adapter.DECISIONS.values())


def test_errors_have_the_codes_of_the_driver() -> None:
    """A class of the driver stands beside ours for the same code."""
    assert {getattr(theirs, "error_code", None): ours for theirs, ours in adapter.ERRORS.items()} == {
        ours.code: ours for ours in adapter.ERRORS.values()
    }


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra that brings the package."""
    monkeypatch.delitem(sys.modules, adapter.__name__)
    monkeypatch.setitem(sys.modules, "cassandra", None)

    with pytest.raises(ImportError, match=r"pip install 'triclinium-core\[cassandra-driver\]'"):
        importlib.import_module(adapter.__name__)


@rows("policy", [None, DefaultRetryPolicy, policies.RetryPolicy()])
def test_what_is_no_policy(policy: Any) -> None:
    """A class, or a policy of the driver's own, is refused when the adapter is made."""
    with pytest.raises(ArgumentError, match="policy="):
        DriverRetryPolicy(policy)


def test_it_is_a_policy_of_the_driver() -> None:
    """It is one by type, and shows what it asks."""
    policy = DefaultRetryPolicy()
    adapted = DriverRetryPolicy(policy)

    assert isinstance(adapted, policies.RetryPolicy)
    assert policy is adapted.policy
    assert f"DriverRetryPolicy({policy!r})" == repr(adapted)


@rows(
    ("verdict", "answer"),
    [
        (verdicts.RETRY_SAME, (SAME, None)),
        (verdicts.RETRY_NEXT, (NEXT, None)),
        (verdicts.RETHROW, (THROW, None)),
        (verdicts.IGNORE, (IGNORED, None)),
        *(
            (verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_SAME, level), (SAME, level.value))
            for level in ConsistencyLevel
        ),
        *(
            (verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_NEXT, level), (NEXT, level.value))
            for level in ConsistencyLevel
        ),
    ],
)
def test_verdicts(verdict: verdicts.RetryVerdict, answer: adapter.DriverAnswer) -> None:
    """Each verdict is what the driver calls it, from each of the four questions."""
    adapted = DriverRetryPolicy(Always(verdict))

    assert answer == adapted.on_read_timeout(IDEMPOTENT, retry_num=0, **READ)
    assert answer == adapted.on_write_timeout(IDEMPOTENT, retry_num=0, **WRITE)
    assert answer == adapted.on_unavailable(IDEMPOTENT, retry_num=0, **UNAVAILABLE)
    assert answer == adapted.on_request_error(IDEMPOTENT, 4, error=server_error(), retry_num=0)


@rows(
    ("method", "statement", "figures", "ours"),
    [
        *(
            (
                "on_read_timeout",
                statement,
                {**READ, "consistency": level.value},
                {"consistency": level, "block_for": 2, "received": 1, "data_present": False},
            )
            for statement in STATEMENTS
            for level in ConsistencyLevel
        ),
        *(
            (
                "on_write_timeout",
                IDEMPOTENT,
                {**WRITE, "write_type": cassandra.WriteType.name_to_value[kind]},
                {"consistency": ConsistencyLevel.QUORUM, "write_type": kind, "block_for": 2, "received": 1},
            )
            for kind in WriteType
        ),
        *(
            (
                "on_unavailable",
                statement,
                UNAVAILABLE,
                {"consistency": ConsistencyLevel.QUORUM, "required": 2, "alive": 1},
            )
            for statement in STATEMENTS
        ),
    ],
)
def test_figures(method: str, statement: object, figures: dict[str, Any], ours: dict[str, Any]) -> None:
    """They arrive in our words; those of reads and of missing replicas for any statement."""
    policy = Always(verdicts.RETHROW)
    getattr(DriverRetryPolicy(policy), method)(statement, retry_num=3, **figures)

    assert [(method, ours | {"retry_count": 3})] == policy.asked


@rows(
    ("error", "method", "kind"),
    [
        (server_error(), "on_error_response", errors.ServerError),
        (server_error(protocol.OverloadedErrorMessage), "on_error_response", errors.Overloaded),
        (server_error(protocol.TruncateError), "on_error_response", errors.TruncateError),
        (connection.ConnectionShutdown("gone"), "on_request_aborted", errors.ClosedConnection),
        (connection.CrcMismatchException("odd"), "on_request_aborted", errors.RequestAborted),
        (connection.ConnectionException("odd"), "on_request_aborted", errors.RequestAborted),
        (OSError("what the driver never gave"), "on_request_aborted", errors.RequestAborted),
    ],
)
def test_request_errors(error: Exception, method: str, kind: type[errors.CassandraError]) -> None:
    """Errors go to the method for their kind, in our class, with the driver's own as their cause."""
    policy = Always(verdicts.RETHROW)
    DriverRetryPolicy(policy).on_request_error(IDEMPOTENT, 4, error=error, retry_num=3)
    ((asked, arguments),) = policy.asked

    assert (method, kind, error) == (asked, type(arguments["error"]), arguments["error"].__cause__)
    assert str(error) == str(arguments["error"])
    assert 3 == arguments["retry_count"]


@rows("statement", [NOT_IDEMPOTENT, BatchStatement(), object()])
def test_statements_that_are_not_idempotent(statement: object) -> None:
    """Nobody is asked about them where the write may have been applied."""
    adapted = DriverRetryPolicy(never_asked())

    assert (THROW, None) == adapted.on_write_timeout(statement, retry_num=0, **WRITE)
    for error in (server_error(), connection.ConnectionShutdown("gone")):
        assert (THROW, None) == adapted.on_request_error(statement, 4, error=error, retry_num=0)


@rows("statement", [IDEMPOTENT, NOT_IDEMPOTENT, None])
def test_bootstrapping(statement: object) -> None:
    """A node that is bootstrapping has done nothing, so the next one is tried for any statement, and nobody is asked."""
    error = server_error(protocol.IsBootstrappingErrorMessage)

    assert (NEXT, None) == DriverRetryPolicy(never_asked()).on_request_error(statement, 4, error=error, retry_num=0)


def test_preparing() -> None:
    """A PREPARE, which has no statement, counts as idempotent and has no level; nobody is asked about timeouts."""
    adapted = DriverRetryPolicy(Always(verdicts.RetryVerdict(verdicts.RetryDecision.RETRY_NEXT, ConsistencyLevel.ONE)))

    assert (NEXT, None) == adapted.on_request_error(None, None, error=server_error(), retry_num=0)
    assert (THROW, None) == adapted.on_unavailable(None, retry_num=0, **UNAVAILABLE)
    with pytest.raises(errors.PolicyFailed, match="ignores ServerError of a PREPARE"):
        DriverRetryPolicy(Always(verdicts.IGNORE)).on_request_error(None, None, error=server_error(), retry_num=0)


@rows(
    ("method", "figures"),
    [
        ("on_read_timeout", {**READ, "consistency": 11}),
        ("on_read_timeout", {**READ, "received_responses": -1}),
        ("on_write_timeout", {**WRITE, "write_type": 99}),
        ("on_write_timeout", {**WRITE, "write_type": None}),
        ("on_write_timeout", {**WRITE, "required_responses": -1}),
        ("on_unavailable", {**UNAVAILABLE, "consistency": None}),
        ("on_unavailable", {**UNAVAILABLE, "alive_replicas": -1}),
    ],
)
def test_figures_that_cannot_be(method: str, figures: dict[str, Any]) -> None:
    """The caller gets what the coordinator said, and no policy is asked to make sense of it."""
    question = getattr(DriverRetryPolicy(never_asked()), method)

    assert (THROW, None) == question(IDEMPOTENT, retry_num=0, **figures)


def test_policies_that_fail() -> None:
    """The error says what failed on what, and has what the policy raised as its cause."""
    adapted = DriverRetryPolicy(Always(ZeroDivisionError("oops")))
    with pytest.raises(errors.PolicyFailed, match="the retry policy failed on Unavailable") as caught:
        adapted.on_unavailable(IDEMPOTENT, retry_num=0, **UNAVAILABLE)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert ["what the node answered: QUORUM needs 2 replicas, 1 is alive"] == caught.value.__notes__


@rows(("method", "failure"), [("on_unavailable", UNAVAILABLE), ("on_read_timeout", READ)])
def test_policies_that_fail_leave_no_doubt(method: str, failure: dict[str, Any]) -> None:
    """The error of a policy that fails says that a statement that is not idempotent was not applied."""
    question = getattr(DriverRetryPolicy(Always(ZeroDivisionError("oops"))), method)
    with pytest.raises(errors.PolicyFailed, match="certainly not applied"):
        question(NOT_IDEMPOTENT, retry_num=0, **failure)


@rows("received", range(5))
@rows("retry_num", [0, 1])
def test_where_the_driver_agrees(received: int, retry_num: int) -> None:
    """Over small reads at QUORUM the answers are those of the driver's own two policies."""
    with pytest.warns(DeprecationWarning, match="DowngradingConsistencyRetryPolicy"):
        downgrading = policies.DowngradingConsistencyRetryPolicy()
    pairs = [
        (DriverRetryPolicy(DefaultRetryPolicy()), policies.RetryPolicy()),
        (DriverRetryPolicy(ConsistencyDowngradingRetryPolicy()), downgrading),
    ]
    for ours, theirs in pairs:
        for data_retrieved in (False, True):
            figures = {**READ, "received_responses": received, "data_retrieved": data_retrieved}
            decision, level = theirs.on_read_timeout(IDEMPOTENT, retry_num=retry_num, **figures)
            # The driver's own names the level it was asked about where it keeps it.
            kept = None if level == figures["consistency"] else level
            assert (decision, kept) == ours.on_read_timeout(IDEMPOTENT, retry_num=retry_num, **figures)
