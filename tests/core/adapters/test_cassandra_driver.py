"""Adapter for ``cassandra-driver``. Its tables must match the package, and its callbacks the driver's calls."""

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

Theirs = policies.RetryPolicy
SAME, NEXT, THROW, IGNORED = Theirs.RETRY, Theirs.RETRY_NEXT_HOST, Theirs.RETHROW, Theirs.IGNORE

IDEMPOTENT = SimpleStatement("SELECT 1", is_idempotent=True)
NOT_IDEMPOTENT = SimpleStatement("UPDATE 1")
STATEMENTS = [IDEMPOTENT, NOT_IDEMPOTENT, BatchStatement()]

READ: dict[str, Any] = {"consistency": 4, "required_responses": 2, "received_responses": 1, "data_retrieved": False}
WRITE: dict[str, Any] = {"consistency": 4, "required_responses": 2, "received_responses": 1, "write_type": 0}
UNAVAILABLE: dict[str, Any] = {"consistency": 4, "required_replicas": 2, "alive_replicas": 1}
"""Arguments that the driver takes from an ERROR frame."""


def server_error(kind: type = protocol.ServerError) -> Any:
    """Return the driver's exception for an ERROR frame."""
    return kind(code=kind.error_code, message="oops", info=None)  # type: ignore[attr-defined]


def test_enumerations_match_the_driver() -> None:
    """The adapter has all consistency levels and write types of the driver, with the driver's names and values."""
    assert cassandra.ConsistencyLevel.value_to_name == {value: level.name for value, level in adapter.LEVELS.items()}
    assert cassandra.WriteType.value_to_name == {value: kind.name for value, kind in adapter.WRITE_TYPES.items()}


def test_every_step_except_reprepare_has_a_decision() -> None:
    """Each step except REPREPARE, which the driver does by itself, maps to a decision number of the driver."""
    assert set(Step) - {Step.REPREPARE} == set(adapter.DECISIONS)
    assert {SAME, NEXT, THROW, IGNORED} == set(adapter.DECISIONS.values())


def test_errors_have_the_codes_of_the_driver() -> None:
    """Our error class and the driver's for the same message have the same error code."""
    assert {getattr(theirs, "error_code", None): ours for theirs, ours in adapter.ERRORS.items()} == {
        ours.code: ours for ours in adapter.ERRORS.values()
    }


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, importing the adapter raises ImportError, which names the extra to install."""
    monkeypatch.delitem(sys.modules, adapter.__name__)
    monkeypatch.setitem(sys.modules, "cassandra", None)

    with pytest.raises(ImportError, match=r"pip install 'triclinium-core\[cassandra-driver\]'"):
        importlib.import_module(adapter.__name__)


@rows("policy", [None, DefaultRetryPolicy, policies.RetryPolicy()])
def test_invalid_policy_is_refused(policy: Any) -> None:
    """None, a class or the driver's own policy raises ArgumentError when the adapter is made."""
    with pytest.raises(ArgumentError, match="policy="):
        DriverRetryPolicy(policy)


def test_adapter_is_a_driver_policy() -> None:
    """The adapter is an instance of the driver's RetryPolicy and exposes the wrapped policy."""
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
    """Each of the four callbacks translates each decision of the policy to the driver's decision and level."""
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
def test_figures_reach_the_policy(
    method: str, statement: object, figures: dict[str, Any], ours: dict[str, Any]
) -> None:
    """The policy gets the figures of reads, idempotent writes and unavailable replicas in our names and types."""
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
    """For each error, the policy's method for its kind gets an error of our class, caused by the driver's exception."""
    policy = Always(verdicts.RETHROW)
    DriverRetryPolicy(policy).on_request_error(IDEMPOTENT, 4, error=error, retry_num=3)
    ((asked, arguments),) = policy.asked

    assert (method, kind, error) == (asked, type(arguments["error"]), arguments["error"].__cause__)
    assert str(error) == str(arguments["error"])
    assert 3 == arguments["retry_count"]


@rows("statement", [NOT_IDEMPOTENT, BatchStatement(), object()])
def test_non_idempotent_statements_are_rethrown(statement: object) -> None:
    """If a non-idempotent write may have been applied, the adapter rethrows without consulting the policy."""
    adapted = DriverRetryPolicy(never_asked())

    assert (THROW, None) == adapted.on_write_timeout(statement, retry_num=0, **WRITE)
    for error in (server_error(), connection.ConnectionShutdown("gone")):
        assert (THROW, None) == adapted.on_request_error(statement, 4, error=error, retry_num=0)


@rows("statement", [IDEMPOTENT, NOT_IDEMPOTENT, None])
def test_bootstrapping_node_retries_the_next(statement: object) -> None:
    """A bootstrapping node has applied nothing, so any statement goes to the next node without the policy."""
    error = server_error(protocol.IsBootstrappingErrorMessage)

    assert (NEXT, None) == DriverRetryPolicy(never_asked()).on_request_error(statement, 4, error=error, retry_num=0)


def test_prepare_counts_as_idempotent() -> None:
    """A PREPARE counts as idempotent and has no level; Unavailable is rethrown, and IGNORE is not permitted."""
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
def test_invalid_figures_are_rethrown(method: str, figures: dict[str, Any]) -> None:
    """If the driver passes invalid figures, the adapter rethrows without consulting the policy."""
    question = getattr(DriverRetryPolicy(never_asked()), method)

    assert (THROW, None) == question(IDEMPOTENT, retry_num=0, **figures)


def test_failing_policy_raises_policy_failed() -> None:
    """A policy's exception raises PolicyFailed, which names the failure and notes the node's response."""
    adapted = DriverRetryPolicy(Always(ZeroDivisionError("oops")))
    with pytest.raises(errors.PolicyFailed, match="the retry policy failed on Unavailable") as caught:
        adapted.on_unavailable(IDEMPOTENT, retry_num=0, **UNAVAILABLE)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "QUORUM needs 2 of the replicas; 1 is alive" in caught.value.__notes__[0]


@rows(("method", "failure"), [("on_unavailable", UNAVAILABLE), ("on_read_timeout", READ)])
def test_policy_failed_says_not_applied(method: str, failure: dict[str, Any]) -> None:
    """The text of PolicyFailed states that a non-idempotent statement was certainly not applied."""
    question = getattr(DriverRetryPolicy(Always(ZeroDivisionError("oops"))), method)
    with pytest.raises(errors.PolicyFailed, match="certainly not applied"):
        question(NOT_IDEMPOTENT, retry_num=0, **failure)


@rows("received", range(5))
@rows("retry_num", [0, 1])
def test_agrees_with_the_drivers_own_policies(received: int, retry_num: int) -> None:
    """After read timeouts at QUORUM with up to four responses, our policies decide like the driver's own two policies."""
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
            # Where our policy returns None, the driver's own policy returns the unchanged level.
            kept = None if level == figures["consistency"] else level
            assert (decision, kept) == ours.on_read_timeout(IDEMPOTENT, retry_num=retry_num, **figures)
