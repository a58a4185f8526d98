"""The requests that the Java driver's own unit tests play, as data: each ends as it does there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.requests.scripted import ROWS, Answer, play
from tests.rows import rows
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.requests.request import CassandraRequest
from triclinium_core.retry.cassandra.verdicts import RetryDecision, RetryVerdict

QUORUM = ConsistencyLevel.QUORUM
NEVER_ASKED = Always(AssertionError("the policy was asked"))
LINES = (Path(__file__).parents[4] / "data" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [case for case in map(json.loads, LINES) if (case["family"], case["ask"]) == ("cassandra", "request")]

ANSWERS: dict[str, Answer] = {
    "rows": ROWS,
    "INVALID": errors.InvalidQuery("unconfigured table"),
    "IS_BOOTSTRAPPING": errors.Bootstrapping("joining"),
    "ServerError": errors.ServerError("no"),
    "ReadTimeout": errors.ReadTimeout(consistency=QUORUM, block_for=2, received=1, data_present=False),
    "WriteTimeout(SIMPLE)": errors.WriteTimeout(
        consistency=QUORUM, write_type=WriteType.SIMPLE, block_for=2, received=1
    ),
    "Unavailable": errors.Unavailable(consistency=QUORUM, required=2, alive=1),
    "Heartbeat(abort)": errors.HeartbeatFailure("no answer to OPTIONS"),
}

NAMES = {
    errors.InvalidQuery: "InvalidQuery",
    errors.Bootstrapping: "Bootstrapping",
    **{type(answer): name for name, answer in reversed(ANSWERS.items()) if name not in {"INVALID", "IS_BOOTSTRAPPING"}},
}


@rows("case", CASES)
def test_ends_as_in_the_driver(case: dict[str, Any]) -> None:
    """Result or error, coordinator and errors on the way are those of the driver."""
    verdict = case["verdict"]
    policy = NEVER_ASKED if verdict is None else Always(RetryVerdict(RetryDecision(verdict)))
    nodes: dict[Any, list[Answer]] = {}
    for node, answer in case["script"]:
        nodes.setdefault(node, []).append(ANSWERS[answer])
    run = play(CassandraRequest(policy=policy, idempotent=case["idempotent"]), nodes)
    on_the_way = [[node, NAMES[type(error)]] for node, error in run.info.errors]
    answered: dict[str, Any]
    if run.info.coordinator is None or "error" in case["expect"]:
        answered = {"error": NAMES[type(run.error)], "execution_info_errors": on_the_way}
    else:
        answered = {"result": run.result or "empty", "coordinator": run.info.coordinator, "errors": on_the_way}
    answered["retry_count_used"] = run.info.retry_count
    answered["speculative_count"] = run.info.speculative_executions
    answered["successful_execution_index"] = run.info.successful_execution_index

    assert case["expect"] == {name: answered[name] for name in case["expect"]}


def test_there_are_cases() -> None:
    """The file is not empty of them."""
    assert len(CASES) >= 16
