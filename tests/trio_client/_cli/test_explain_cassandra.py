"""``triclinium explain cassandra``: one case in words and as data, and what it says to nonsense."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.rows import rows
from triclinium._cli import _telling, main
from triclinium._cli._cassandra_case import LEVELS
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.errors import ReadTimeout
from triclinium_core.retry.cassandra.explaining.explain import Case, explain as explain_case
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.verdicts import RETHROW

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
        (f"{READ_TIMEOUT} --data-present", {"decision": "RETHROW", "error": "ReadTimeout"}),
        (f"{READ_TIMEOUT} --no-data-present --retry-count 1", {"decision": "RETHROW", "retry_count": 1}),
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
        (
            "write-timeout --received 1 --block-for 2 --idempotent --policy ConsistencyDowngradingRetryPolicy",
            {"decision": "IGNORE", "action": "empty", "error": None},
        ),
        ("unavailable --required 2 --alive 1", {"decision": "RETRY_NEXT", "action": "next_node"}),
        (
            "unavailable --required 2 --alive 0 --consistency local-quorum --policy downgrading",
            {"decision": "RETHROW", "failed_at": "LOCAL_QUORUM"},
        ),
        ("request-aborted --error heartbeat --idempotent", {"decision": "RETRY_NEXT", "counts_as_retry": True}),
        ("request-aborted --error heartbeat --not-idempotent", {"decision": None, "error": "HeartbeatFailure"}),
        ("request-aborted --error other --idempotent", {"decision": "RETHROW", "error": "RequestAborted"}),
        ("request-aborted --error FrameTooLong --idempotent", {"decision": None, "error": "FrameTooLong"}),
        ("error-response --error Overloaded --idempotent", {"decision": "RETRY_NEXT"}),
        ("error-response --error IS_BOOTSTRAPPING", {"action": "next_node", "counts_as_retry": False}),
        ("error-response --error unprepared", {"action": "prepare"}),
        ("error-response --error CAS_WRITE_UNKNOWN --idempotent", {"decision": "RETRY_NEXT"}),
        ("error-response --error ReadFailureException --idempotent", {"decision": "RETHROW", "error": "ReadFailure"}),
        ("request-aborted --error ClosedConnectionException --idempotent", {"decision": "RETRY_NEXT"}),
        ("error-response --error other --idempotent", {"action": "fail", "error": "ProtocolError"}),
    ],
)
def test_a_case_as_data(arguments: str, expected: dict[str, object]) -> None:
    """What the options say is what is explained."""
    result = explain(f"{arguments} --json")

    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    actual = json.loads(line)
    assert expected == {key: actual[key] for key in expected}


def test_a_case_in_words() -> None:
    """Where nobody sees colours, the sentences of the core stand one to a line."""
    result = explain(f"{READ_TIMEOUT} --policy downgrading --retry-count 2")

    error = ReadTimeout(consistency=ConsistencyLevel.QUORUM, block_for=2, received=2, data_present=False)
    case = Case(error=error, policy=ConsistencyDowngradingRetryPolicy(), retry_count=2)
    happened, *steps = explain_case(case).sentences()
    circumstances = (
        "Until then: 2 retries. The statement is not idempotent; its policy is ConsistencyDowngradingRetryPolicy."
    )
    assert [happened, circumstances, *steps] == result.output.splitlines()


@pytest.mark.parametrize(
    ("arguments", "outcome", "colour"),
    [
        (READ_TIMEOUT, "So the request is sent to the same node again.", "1;32"),
        (f"{READ_TIMEOUT} --data-present", "So the caller gets ReadTimeout.", "1;31"),
        (
            "write-timeout --received 1 --block-for 2 --idempotent --policy downgrading",
            "So the request counts as done",
            "1;33",
        ),
    ],
)
def test_the_outcome_stands_out(monkeypatch: pytest.MonkeyPatch, arguments: str, outcome: str, colour: str) -> None:
    """Colours carry the eye to what the driver does, and clauses recede."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=300, color_system="standard", highlight=False)
    monkeypatch.setattr(_telling, "Console", lambda **_: console)
    monkeypatch.setattr(_telling, "READABLE_WIDTH", 300)

    explain(arguments)

    assert f"\x1b[{colour}m{outcome}" in output.getvalue()
    assert "\x1b[2mdecision A2\x1b[0m" in output.getvalue()


def test_a_changed_policy_changes_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command holds no rule of its own."""
    monkeypatch.setattr(DefaultRetryPolicy, "on_unavailable", lambda *_, **__: RETHROW)

    actual = json.loads(explain("unavailable --required 2 --alive 1 --json").output)

    assert ("RETHROW", "Unavailable") == (actual["decision"], actual["error"])


@rows(
    ("arguments", "expected"),
    [
        ("", "name an event: read-timeout, write-timeout, unavailable, request-aborted, error-response"),
        ("unavailble", "there is no event 'unavailble'; did you mean unavailable?"),
        ("read-timeout --received 2", "read-timeout needs --block-for; --help says what they are"),
        ("unavailable", "unavailable needs --required and --alive; --help says what they are"),
        ("error-response --error Foo", "there is no error that a coordinator answers 'Foo'; --help lists them"),
        (
            "request-aborted --error hearbeat",
            "there is no error that aborts a request 'hearbeat'; did you mean Heartbeat or HeartbeatFailure?",
        ),
        (f"{READ_TIMEOUT} --alive 1", "--alive says nothing about read-timeout; leave it out"),
        (
            "unavailable --required 2 --alive 1 --data-present",
            "--data-present says nothing about unavailable; leave it out",
        ),
        (f"{READ_TIMEOUT} --policy downgrade", "there is no policy 'downgrade'; did you mean downgrading?"),
        (
            f"{READ_TIMEOUT} --consistency QUORM",
            "there is no consistency level 'QUORM'; did you mean QUORUM or EACH_QUORUM?",
        ),
        (
            "write-timeout --received 1 --block-for 2 --write-type MANY",
            "there is no write type 'MANY'; there is SIMPLE, BATCH, UNLOGGED_BATCH, COUNTER, BATCH_LOG, CAS, VIEW, CDC",
        ),
        (f"{READ_TIMEOUT} --consistency=", f"there is no consistency level ''; there is {', '.join(LEVELS)}"),
        (
            "write-timeout --received 1 --block-for 2 --write-type=",
            "there is no write type ''; there is SIMPLE, BATCH, UNLOGGED_BATCH, COUNTER, BATCH_LOG, CAS, VIEW, CDC",
        ),
        ("read-timeout --received -1 --block-for 2", "Invalid value for '--received': -1 is not in the range x>=0."),
        (f"{READ_TIMEOUT} --retry-count -1", "Invalid value for '--retry-count': -1 is not in the range x>=0."),
    ],
)
def test_nonsense(arguments: str, expected: str) -> None:
    """One line says what is wrong, and what was probably meant; the status is 2."""
    result = explain(arguments)

    assert (2, f"Error: {expected}\n") == (result.exit_code, result.stderr)
