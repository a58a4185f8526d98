"""Questions about Cassandra: each has an answer, or an error that names the invalid field."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.core.tools.vectors.sample_questions import (
    ERROR_RESPONSE,
    READ_TIMEOUT,
    REQUEST,
    REQUEST_ABORTED,
    WRITE_TIMEOUT,
)
from tests.rows import rows
from triclinium_core.tools.vectors.fields import MalformedQuestion
from triclinium_core.tools.vectors.questions import answer


def verdict(decision: str, consistency: str | None = None) -> dict[str, object]:
    """Return the answer to a question whose policy makes this decision."""
    return {"decision": decision, "consistency": consistency}


@rows(
    ("question", "expected"),
    [
        (READ_TIMEOUT | {"policy": "ConsistencyDowngradingRetryPolicy"}, verdict("RETRY_SAME", "ONE")),
        (REQUEST_ABORTED | {"error": "ClosedConnectionException"}, verdict("RETRY_NEXT")),
        (REQUEST_ABORTED | {"error": "Overloaded"}, verdict("RETHROW")),
        (REQUEST_ABORTED | {"error": ""}, verdict("RETHROW")),
        (ERROR_RESPONSE | {"error": "READ_FAILURE"}, verdict("RETHROW")),
        (ERROR_RESPONSE | {"error": "ReadTimeout"}, verdict("RETRY_NEXT")),
        (ERROR_RESPONSE | {"error": "Heartbeat"}, verdict("RETRY_NEXT")),
    ],
)
def test_other_names_of_policies_and_errors(question: dict[str, object], expected: dict[str, object]) -> None:
    """A question may use any name of a policy or error; an unknown error, or one of another kind, counts as generic."""
    assert expected == answer(question)


def failed(error: str, *errors: list[str], retries: int = 0, execution: int = 0) -> dict[str, object]:
    """Return the answer for a request that failed."""
    return {
        "error": error,
        "execution_info_errors": list(errors),
        "retry_count_used": retries,
        "speculative_count": 0,
        "successful_execution_index": execution,
    }


def succeeded(coordinator: str, *errors: list[str], result: str = "rows", retries: int = 0) -> dict[str, object]:
    """Return the answer for a request that succeeded."""
    return {
        "result": result,
        "coordinator": coordinator,
        "errors": list(errors),
        "retry_count_used": retries,
        "speculative_count": 0,
        "successful_execution_index": 0,
    }


@rows(
    ("changes", "expected"),
    [
        ({}, succeeded("n2", ["n1", "Unavailable"], retries=1)),
        ({"script": []}, failed("NoNodeAvailable", execution=-1)),
        ({"script": [["n1", "empty"]]}, succeeded("n1", result="empty")),
        ({"script": [["n1", "Unavailable"]]}, failed("AllNodesFailed", ["n1", "Unavailable"], retries=1, execution=-1)),
        (
            {"script": [["n1", "WriteTimeout(UNLOGGED_BATCH)"], ["n2", "Overloaded"], ["n3", "rows"]]},
            succeeded("n3", ["n1", "WriteTimeout(UNLOGGED_BATCH)"], ["n2", "Overloaded"], retries=2),
        ),
        (
            {"script": [["n1", "Heartbeat(abort)"], ["n2", "rows"]]},
            succeeded("n2", ["n1", "Heartbeat(abort)"], retries=1),
        ),
        ({"script": [["n1", "Heartbeat(abort)"]], "idempotent": False}, failed("Heartbeat(abort)")),
        (
            {"script": [["n1", "IS_BOOTSTRAPPING"], ["n2", "rows"]], "idempotent": False, "verdict": None},
            succeeded("n2", ["n1", "Bootstrapping"]),
        ),
        ({"script": [["n1", "SYNTAX_ERROR"]], "verdict": None}, failed("SYNTAX_ERROR")),
        ({"script": [["n1", "AUTH_ERROR"]], "verdict": None}, failed("ProtocolError")),
        ({"script": [["n1", "UNPREPARED"], ["n1", "rows"]], "verdict": None}, succeeded("n1")),
        (
            {"script": [["n1", "ClosedConnection(unsent)"], ["n2", "rows"]], "idempotent": False, "verdict": None},
            succeeded("n2", ["n1", "ClosedConnection(unsent)"]),
        ),
        (
            {"script": [["n1", "ReadTimeout"], ["n1", "ReadTimeout"], ["n1", "rows"]], "verdict": "RETRY_SAME"},
            succeeded("n1", ["n1", "ReadTimeout"], ["n1", "ReadTimeout"], retries=2),
        ),
        ({"script": [["n1", "ReadTimeout"]], "verdict": "IGNORE"}, succeeded("n1", result="empty")),
        ({"script": [["n1", "timeout"]], "verdict": None}, failed("DriverTimeout", execution=-1)),
    ],
)
def test_requests(changes: dict[str, object], expected: dict[str, object]) -> None:
    """The answer has the result of the request, the errors on the way and the counts, with the script's names."""
    assert expected == answer(REQUEST | changes)


def test_null_verdict_forbids_consulting_the_policy() -> None:
    """A question with a null verdict whose policy is consulted is refused, and the error names the failure."""
    with pytest.raises(MalformedQuestion) as caught:
        answer(REQUEST | {"verdict": None})

    assert str(caught.value).startswith("verdict is null, but the policy is consulted: ")
    assert "Unavailable of n1" in str(caught.value)


@rows(
    ("question", "message"),
    [
        (READ_TIMEOUT | {"policy": "hope"}, "policy 'hope' is not known; expected one of default, "),
        (READ_TIMEOUT | {"event": "read"}, "event 'read' is not known; expected one of read_timeout, write_timeout"),
        (READ_TIMEOUT | {"cl": "MOST"}, "cl 'MOST' is not known; expected one of ANY, ONE, TWO"),
        (WRITE_TIMEOUT | {"write_type": "SIMPEL"}, "write_type 'SIMPEL' is not known; expected one of SIMPLE, BATCH"),
        (REQUEST | {"verdict": "RETRY"}, "verdict 'RETRY' is not known; expected one of RETRY_SAME, RETRY_NEXT"),
        (REQUEST | {"script": "rows"}, "script is a string, expected an array of pairs of node and answer"),
        (REQUEST | {"script": ["rows"]}, 'script[0] must be a pair of node and answer, such as ["n1", "rows"]'),
        (REQUEST | {"script": [["n1", "rows"], ["n2"]]}, "script[1] must be a pair of node and answer, such as"),
        (REQUEST | {"script": [["n1", 1]]}, "script[0][1] is a number, expected a string"),
        (REQUEST | {"script": [["n1", "row"]]}, "script: 'row' is not known; an answer is rows, an error such as"),
        (REQUEST | {"verdict": "RETRY_SAME"}, "script: 'n1' receives one more request, but has no further answer"),
    ],
)
def test_refuses(question: dict[str, object], message: str) -> None:
    """The error names the invalid field, and its expected value or the missing response."""
    with pytest.raises(MalformedQuestion) as caught:
        answer(question)

    assert message == str(caught.value)[: len(message)]


ANSWERS = """
    rows ReadTimeout Unavailable WriteTimeout(BATCH) ServerError Heartbeat(abort) Foo(unsent) IS_BOOTSTRAPPING
    UNPREPARED prepared prepared(other) INVALID(prepare) FrameTooLong NodeUnavailable timeout Throttled
"""
STEPS = st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(ANSWERS.split())).map(list)


@given(
    script=st.lists(STEPS, max_size=8),
    idempotent=st.booleans(),
    decision=st.sampled_from([None, "RETRY_SAME", "RETRY_NEXT", "RETHROW", "IGNORE"]),
)
def test_any_script_is_played_or_refused(script: list[list[str]], idempotent: bool, decision: str | None) -> None:
    """Each script ends with a result or an error, or is refused; an answer names only nodes of the script."""
    try:
        answered = answer(REQUEST | {"script": script, "idempotent": idempotent, "verdict": decision})
    except MalformedQuestion as error:
        answered = {}
        assert str(error).startswith(("script: ", "verdict is null"))

    nodes = {node for node, _ in script}
    assert answered.get("coordinator") in nodes | {None}
    met = answered.get("errors", answered.get("execution_info_errors", []))
    assert isinstance(met, list)
    assert nodes.issuperset(node for node, _ in met)
    assert ("result" in answered) != ("error" in answered) or not answered
