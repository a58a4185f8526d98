"""``triclinium explain cassandra``: one case in words and as data, and errors for wrong input."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.explain.cassandra import LEVELS
from triclinium_core.explain.cassandra.explain import CassandraCase, explain as explain_case
from triclinium_core.retry import cassandra

READ_TIMEOUT = "read-timeout --received 2 --block-for 2"


def explain(arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["explain", "cassandra", *arguments.split()])


@rows(
    ("arguments", "expected"),
    [
        (
            f"{READ_TIMEOUT} --policy downgrading",
            {"decision": "RETRY_SAME", "consistency": None, "failed_at": "QUORUM"},
        ),
        (READ_TIMEOUT, {"policy": "DefaultRetryPolicy", "decision": "RETRY_SAME", "is_policy_asked": True}),
        (f"{READ_TIMEOUT} --data-present --retry-count 1", {"decision": "RETHROW", "retry_count": 1}),
        (f"{READ_TIMEOUT} --no-data-present", {"decision": "RETRY_SAME"}),
        (f"{READ_TIMEOUT} --consistency serial --policy downgrading", {"failed_at": "SERIAL", "decision": "RETHROW"}),
        ("READ_TIMEOUT --received 1 --block-for 3 --policy downgrading", {"consistency": "ONE", "action": "same_node"}),
        (
            "write-timeout --received 0 --block-for 2 --write-type batch-log --idempotent",
            {"decision": "RETRY_SAME", "action": "same_node"},
        ),
        (
            "write-timeout --received 0 --block-for 2",
            {"decision": None, "decision_if_idempotent": "RETHROW", "is_policy_asked": False, "action": "fail"},
        ),
        ("unavailable --required 2 --alive 1", {"decision": "RETRY_NEXT", "action": "next_node"}),
        (
            "unavailable --required 2 --alive 0 --consistency local-quorum --policy downgrading",
            {"decision": "RETHROW", "failed_at": "LOCAL_QUORUM"},
        ),
        ("request-aborted --error heartbeat --not-idempotent", {"decision": None, "error": "HeartbeatFailure"}),
        ("request-aborted --error other --idempotent", {"decision": "RETHROW", "error": "RequestAborted"}),
        ("error-response --error IS_BOOTSTRAPPING", {"action": "next_node", "counts_as_retry": False}),
        ("error-response --error ReadFailureException --idempotent", {"decision": "RETHROW", "error": "ReadFailure"}),
        ("request-aborted --error ClosedConnectionException --idempotent", {"decision": "RETRY_NEXT"}),
        ("error-response --error other --idempotent", {"action": "fail", "error": "ProtocolError"}),
    ],
)
def test_a_case_as_data(arguments: str, expected: dict[str, object]) -> None:
    """``--json`` prints the decision for the case that the options describe."""
    result = explain(f"{arguments} --json")

    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    actual = json.loads(line)
    assert expected == {key: actual[key] for key in expected}


def test_a_case_in_words() -> None:
    """Without colours, the command prints each sentence of the core's explanation on one line."""
    result = explain(f"{READ_TIMEOUT} --policy downgrading --retry-count 2")

    error = cassandra.ReadTimeout(
        consistency=cassandra.ConsistencyLevel.QUORUM, block_for=2, received=2, data_present=False
    )
    case = CassandraCase(error=error, policy=cassandra.ConsistencyDowngradingRetryPolicy(), retry_count=2)
    happened, *steps = explain_case(case).sentences()
    first, circumstances, *others = result.output.splitlines()
    assert [happened, *steps] == [first, *others]
    assert all(fact in circumstances for fact in ("2 retries", "not idempotent", "ConsistencyDowngradingRetryPolicy"))


def test_explain_follows_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed policy changes the explanation, because the command itself contains no rules."""
    monkeypatch.setattr(cassandra.DefaultRetryPolicy, "on_unavailable", lambda *_, **__: cassandra.RETHROW)

    actual = json.loads(explain("unavailable --required 2 --alive 1 --json").output)

    assert ("RETHROW", "Unavailable") == (actual["decision"], actual["error"])


@rows(
    ("arguments", "words"),
    [
        ("", "read-timeout, write-timeout, unavailable, request-aborted, error-response"),
        ("unavailble", "did you mean unavailable?"),
        ("read-timeout --received 2", "--block-for"),
        ("unavailable", "--required and --alive"),
        ("error-response --error Foo", "'Foo'; --help lists them"),
        ("request-aborted --error hearbeat", "did you mean Heartbeat or HeartbeatFailure?"),
        (f"{READ_TIMEOUT} --alive 1", "--alive "),
        ("unavailable --required 2 --alive 1 --data-present", "--data-present "),
        (f"{READ_TIMEOUT} --policy downgrade", "did you mean downgrading?"),
        (f"{READ_TIMEOUT} --consistency QUORM", "did you mean QUORUM or EACH_QUORUM?"),
        (f"{READ_TIMEOUT} --consistency=", ", ".join(LEVELS)),
        (
            "write-timeout --received 1 --block-for 2 --write-type MANY",
            "SIMPLE, BATCH, UNLOGGED_BATCH, COUNTER, BATCH_LOG, CAS, VIEW, CDC",
        ),
        ("read-timeout --received -1 --block-for 2", "'--received': -1"),
        (f"{READ_TIMEOUT} --retry-count -1", "'--retry-count': -1"),
    ],
)
def test_wrong_input_is_refused(arguments: str, words: str) -> None:
    """Wrong input exits with status 2 and one line that names the mistake or the correction."""
    assert_refused(explain(arguments), words)
