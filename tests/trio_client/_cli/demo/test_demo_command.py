"""``triclinium demo``: the client follows the RFC, and the demo detects a broken rule."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from triclinium._cli import main
from triclinium._cli.demo import demo_command as demo_module
from triclinium._cli.demo.scenarios import SCENARIOS, DemoScenario
from triclinium._cluster_driver.log import Log, connection_logger, retry_logger
from triclinium.retries import RetryAction, RetryReason
from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRetry, TimerKind
from triclinium_core.contract.neutral import TimerId, Timers
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation import document_operations
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase import orchestrator, retry_machine
from triclinium_core.retry.couchbase.tables.error_map import RetrySpecification
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.services.prepared_statements import PreparedPlans
from triclinium_core.services.query.query_request import PreparedPlan

LAST_LINE = re.compile(r"11 scenarios, \d+ checks: all as RFC 0049 demands \(\d+\.\d\d s\)\.")

DEMO = (sys.executable, "-c", "from triclinium._cli import main; main()", "demo")


def run(*arguments: str) -> Result:
    """Run the demo in this process."""
    return CliRunner().invoke(main, ["demo", *arguments])


def test_every_scenario_follows_the_rfc() -> None:
    """The demo prints a timeline for each scenario and the overall result in the last line, and exits with status 0."""
    result = run()

    assert 0 == result.exit_code
    for number, scenario in enumerate(SCENARIOS, start=1):
        assert f"{number}. {scenario.title}\n" in result.output
        assert scenario.clause in result.output
    assert LAST_LINE.fullmatch(result.output.splitlines()[-1])


def test_json_has_every_row_and_check() -> None:
    """``--json`` prints every row and every check as one JSON document and leaves the loggers as they were."""
    loggers = (retry_logger, connection_logger)
    before = [(logger.level, [*logger.handlers]) for logger in loggers]
    result = run("--json")

    assert before == [(logger.level, logger.handlers) for logger in loggers]
    (line,) = result.output.splitlines()
    document = json.loads(line)
    assert (0, True, 0) == (result.exit_code, document["ok"], document["not_played"])
    assert [scenario.name for scenario in SCENARIOS] == [scenario["name"] for scenario in document["scenarios"]]
    for scenario in document["scenarios"]:
        assert scenario["ok"]
        assert all(check["holds"] for check in scenario["checks"])
        times = [row["at_ms"] for row in scenario["timeline"]]
        assert sorted(times) == times
    (locked,) = [scenario for scenario in document["scenarios"] if scenario["name"] == "locked"]
    assert [
        ("caller", None, None),
        ("node", None, None),
        ("client", "retry", 1),
        ("node", None, None),
        ("client", "retry", 2),
        ("node", None, None),
        ("caller", None, None),
    ] == [(row["source"], row["decision"], row["delay_ms"]) for row in locked["timeline"]]


def test_clauses_fit_on_a_narrow_screen() -> None:
    """Each clause fits on one line of 80 columns, including its margin."""
    assert max(len(scenario.clause) for scenario in SCENARIOS) <= 80 - 4


def test_it_needs_no_terminal_and_no_unicode() -> None:
    """A demo in a pipe prints plain ASCII text without trailing blanks."""
    ended = subprocess.run(DEMO, capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=False)

    output = ended.stdout.decode("ascii")
    assert (0, b"") == (ended.returncode, ended.stderr)
    assert LAST_LINE.fullmatch(output.splitlines()[-1])
    assert "\x1b" not in output
    assert all(line == line.rstrip() for line in output.splitlines())


def test_demo_fails_when_its_time_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo that exceeds its time limit exits with status 1 and prints how many scenarios it did not play."""
    monkeypatch.setattr(demo_module, "LIMIT_SECONDS", 0.0)

    plain, as_json = run(), run("--json")

    assert (1, 1) == (plain.exit_code, as_json.exit_code)
    assert plain.output.splitlines()[-1].startswith("11 not played, because time ran out (")
    assert {"ok": False, "not_played": 11, "scenarios": []} == {
        name: value for name, value in json.loads(as_json.output).items() if name != "seconds"
    }


# -- Broken rules and crashes.

Break = Callable[[pytest.MonkeyPatch], None]


def forbid_a_retry_of_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid retries of non-idempotent requests for the reason NODE_NOT_AVAILABLE."""
    monkeypatch.setattr(RetryReason.NODE_NOT_AVAILABLE, "allows_non_idempotent_retry", False)


def forget_that_reads_are_idempotent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove Get from the list of idempotent operations."""
    monkeypatch.setattr(document_operations, "IDEMPOTENT_KV_OPERATIONS", couchbase.IDEMPOTENT_KV_OPERATIONS - {"get"})


def trust_every_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the orchestrator's own check of whether an operation may be sent twice."""

    def judge(request: couchbase.RetryRequest, reason: RetryReason, answer: object) -> orchestrator.Verdict:
        assert isinstance(answer, RetryAction)
        return orchestrator.Refuse() if answer.delay is None else couchbase.Retry(answer.delay, dispatches=True)

    monkeypatch.setattr(retry_machine, "judge", judge)


def forget_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove a status from the list of retryable statuses."""
    monkeypatch.delitem(couchbase.RETRYABLE_STATUSES, couchbase.Status.TEMPORARY_FAILURE)


def exclude_replace_from_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exclude Replace from the operations that are retried on a locked document."""
    line = replace(couchbase.RETRYABLE_STATUSES[couchbase.Status.LOCKED], excluded=frozenset({"replace"}))
    monkeypatch.setitem(couchbase.RETRYABLE_STATUSES, couchbase.Status.LOCKED, line)


def ignore_the_error_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the error map: find no entry for any status."""
    monkeypatch.setattr(couchbase.ErrorMapStore, "entry", lambda *_: None)


def ignore_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use ``interval`` as the delay of the first retry, too, instead of ``after``."""
    monkeypatch.setattr(RetrySpecification, "delay", lambda specification, _: specification.interval_ms / 1000)


def ask_about_vbuckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let strategies decide about a reason that is always retried."""
    monkeypatch.setattr(RetryReason.KV_NOT_MY_VBUCKET, "always_retry", False)


def forget_that_plans_go_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove error 4050 from the list of retryable error codes."""
    monkeypatch.delitem(couchbase.RETRYABLE_ERROR_CODES, (couchbase.Service.QUERY, 4050))


def remember_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan a statement on every execution."""

    def forgetful(plans: PreparedPlans, key: object) -> PreparedPlan | None:
        return None

    monkeypatch.setattr(PreparedPlans, "recall", forgetful)


def retry_refused_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the wrong exception class for refused credentials."""
    monkeypatch.setitem(couchbase.TERMINAL_ERRORS, RetryReason.AUTHENTICATION_ERROR, errors.CouchbaseException)


def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a retry delay, but retry immediately."""
    schedule = Timers.schedule
    monkeypatch.setattr("triclinium_core.retry.couchbase.retry_machine.RESOLUTION", math.inf)

    def hasty(timers: Timers[TimerKind], when: float, kind: TimerKind, subject: object) -> TimerId:
        return schedule(timers, 0.0 if kind is TimerKind.RETRY else when, kind, subject)

    monkeypatch.setattr(Timers, "schedule", hasty)


def report_half_of_the_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log only every other retry."""
    retry = Log.retry

    def lazy(log: Log, report: ReportRetry) -> None:
        if report.request.retry_attempts % 2 == 0:
            retry(log, report)

    monkeypatch.setattr(Log, "retry", lazy)


def count_no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the statistics of retries empty."""
    empty = property(lambda _: Counter[RetryReason](), lambda *_: None)
    monkeypatch.setattr(Lifecycle, "retries_by_reason", empty, raising=False)


def count_attempts_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add one retry too many to the error context."""
    context_of = couchbase.RetryMachine.error_context

    def wrong(machine: couchbase.RetryMachine, now: float) -> ErrorContext:
        context = context_of(machine, now)
        return replace(context, retry_attempts=context.retry_attempts + 1)

    monkeypatch.setattr(couchbase.RetryMachine, "error_context", wrong)


SABOTAGES: Sequence[tuple[str, str, Break]] = (
    ("before dispatch", "outcome", forbid_a_retry_of_writes),
    ("in flight, a read", "outcome", forget_that_reads_are_idempotent),
    ("a reckless strategy", "times applied", trust_every_strategy),
    ("temporary failure", "reasons", forget_a_status),
    ("the map's own plan", "waits by the node's clock", retry_at_once),
    ("temporary failure", "retries", report_half_of_the_retries),
    ("temporary failure", "statistics", count_no_retries),
    ("locked", "frames at the node", exclude_replace_from_locked),
    ("unknown status", "outcome", ignore_the_error_map),
    ("the map's own plan", "delays", ignore_after),
    ("not my vbucket", "answer", ask_about_vbuckets),
    ("a stale plan", "outcome", forget_that_plans_go_stale),
    ("a stale plan", "frames at the node", remember_no_plan),
    ("wrong password", "outcome", retry_refused_credentials),
    ("in flight, a write", "error context", count_attempts_instead),
)
"""For each broken rule, the scenario and the check that detect it, and the function that breaks it."""


def scenario_of(name: str) -> DemoScenario:
    """Return the scenario with this name."""
    (scenario,) = [scenario for scenario in SCENARIOS if scenario.name == name]
    return scenario


@pytest.mark.parametrize(("name", "check", "commit"), SABOTAGES)
def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str, check: str, commit: Break) -> None:
    """If the client breaks a rule, the demo marks the check that fails and exits with status 1."""
    monkeypatch.setattr(demo_module, "SCENARIOS", (scenario_of(name),))
    commit(monkeypatch)

    result = run()

    (difference,) = [line for line in result.output.splitlines() if f"\N{BALLOT X} {check}: " in line]
    assert 1 == result.exit_code
    assert "demanded" in difference
    assert result.output.splitlines()[-1].startswith("1 of 1 scenario not as RFC 0049 demands (")


def test_every_scenario_has_a_sabotage() -> None:
    """Each scenario detects at least one of the broken rules."""
    assert {scenario.name for scenario in SCENARIOS} == {name for name, *_ in SABOTAGES}


async def crash(*_: object) -> None:
    """Raise an exception that the client never raises."""
    raise ZeroDivisionError("no luck")


def test_a_crash_is_reported_as_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception before or during the operation is the outcome of its scenario; the next scenario still passes."""
    scenario = scenario_of("locked")
    crashing = scenario.operation._replace(perform=crash)
    crashes = replace(scenario, arrange=crashing), replace(scenario, operation=crashing)
    monkeypatch.setattr(demo_module, "SCENARIOS", (*crashes, scenario))

    result = run("--json")

    *crashed, last = json.loads(result.output)["scenarios"]
    assert 1 == result.exit_code
    assert [("ZeroDivisionError", "no luck", False)] * 2 == [
        (scenario["outcome"], scenario["message"], scenario["ok"]) for scenario in crashed
    ]
    assert last["ok"]
