"""Questions about Cassandra: the fields of each, the function that answers it, and the clauses that decide the answer.

::

    verdict     policy (default, downgrading), event, and the fields of the event:
                    read_timeout     cl, block_for, received, data_present
                    write_timeout    cl, write_type, block_for, received
                    unavailable      cl, required, alive
                    request_aborted  error; an unknown name means any other error
                    error_response   error; the same
                retry_count
                -> decision, consistency; null if that of the request does not change
    request     idempotent, verdict, script (see ``cassandra_script``)
                -> result ("rows" or "empty"), coordinator and errors, or error and execution_info_errors;
                   retry_count_used, speculative_count, successful_execution_index

``verdict`` is what the policy returns for every call. If it is null, the policy must not be called.

Source: the retry page of the Cassandra Java driver; decisions A1 to A16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triclinium_core.explain.cassandra.error_names import aborted, answered, canonical
from triclinium_core.explain.cassandra.explain import PAGE, verdict_clause
from triclinium_core.retry import cassandra
from triclinium_core.tools.vectors.cassandra_script import AskedPolicy, FixedPolicy, UnusableScript, play
from triclinium_core.tools.vectors.fields import AnswerFields, Ask, Clauses, MalformedQuestion, Question

LEVELS: Mapping[str, cassandra.ConsistencyLevel] = cassandra.ConsistencyLevel.__members__
DECISIONS: Mapping[str, cassandra.RetryDecision] = cassandra.RetryDecision.__members__
WRITE_TYPES: Mapping[str, cassandra.WriteType] = cassandra.WriteType.__members__


def _answer_verdict(question: Question) -> AnswerFields:
    policy = question.choice("policy", cassandra.POLICIES)()
    error = question.choice("event", EVENTS)(question)
    verdict = cassandra.verdict_on(policy, error, retry_count=question.count("retry_count"))
    consistency = verdict.consistency
    return {"decision": str(verdict.decision), "consistency": None if consistency is None else consistency.name}


def _answer_request(question: Question) -> AnswerFields:
    request = cassandra.CassandraRequest(
        policy=FixedPolicy(_fixed_verdict(question)), idempotent=question.flag("idempotent")
    )
    script = question.each("script", "pairs of node and answer", _node_and_answer)
    try:
        end = play(request, script)
    except UnusableScript as error:
        raise MalformedQuestion(f"script: {error}") from error
    if isinstance(end, cassandra.Fail):
        return _failure(end.error)
    result = end.result if isinstance(end, cassandra.Complete) else "empty"
    return {"result": result, "coordinator": end.info.coordinator, "errors": _met(end.info)} | _counts(end.info)


def _failure(error: cassandra.CassandraError) -> AnswerFields:
    if isinstance(error.__cause__, AskedPolicy):
        raise MalformedQuestion(f"verdict is null, but the policy is consulted: {error}")
    assert error.execution_info is not None
    return {"error": _name(error), "execution_info_errors": _met(error.execution_info)} | _counts(error.execution_info)


def _counts(info: cassandra.ExecutionInfo) -> AnswerFields:
    return {
        "retry_count_used": info.retry_count,
        "speculative_count": info.speculative_executions,
        "successful_execution_index": info.successful_execution_index,
    }


def _met(info: cassandra.ExecutionInfo) -> list[list[object]]:
    return [[node, _name(error)] for node, error in info.errors]


def _name(error: cassandra.CassandraError) -> str:
    """Return the name of an error in an answer: its name in the script, except for two names of the protocol."""
    (in_script,) = getattr(error, "__notes__", ("",))
    if not in_script or canonical(in_script) in {"invalid", "isbootstrapping"}:
        return type(error).__name__
    return str(in_script)


def _fixed_verdict(question: Question) -> cassandra.RetryVerdict | None:
    if question.value("verdict") is None:
        return None
    return cassandra.RetryVerdict(question.choice("verdict", DECISIONS))


def _node_and_answer(script: Question, name: str) -> tuple[str, str]:
    step = script[name]
    if not isinstance(step, list) or len(step) != 2:
        raise MalformedQuestion(f'{name} must be a pair of node and answer, such as ["n1", "rows"]')
    node, answer = (Question({f"{name}[{index}]": text}).text(f"{name}[{index}]") for index, text in enumerate(step))
    return node, answer


def _read_timeout(question: Question) -> cassandra.CoordinatorError:
    return cassandra.ReadTimeout(
        consistency=question.choice("cl", LEVELS),
        block_for=question.count("block_for"),
        received=question.count("received"),
        data_present=question.flag("data_present"),
    )


def _write_timeout(question: Question) -> cassandra.CoordinatorError:
    return cassandra.WriteTimeout(
        consistency=question.choice("cl", LEVELS),
        write_type=question.choice("write_type", WRITE_TYPES),
        block_for=question.count("block_for"),
        received=question.count("received"),
    )


def _unavailable(question: Question) -> cassandra.CoordinatorError:
    return cassandra.Unavailable(
        consistency=question.choice("cl", LEVELS),
        required=question.count("required"),
        alive=question.count("alive"),
    )


EVENTS: Mapping[str, Callable[[Question], cassandra.CoordinatorError | cassandra.RequestAborted]] = {
    "read_timeout": _read_timeout,
    "write_timeout": _write_timeout,
    "unavailable": _unavailable,
    "request_aborted": lambda question: aborted(question.text("error")),
    "error_response": lambda question: answered(question.text("error")),
}
"""Reader of the error for each event for which a policy is called."""

ASKS: Mapping[str, Ask] = {"verdict": _answer_verdict, "request": _answer_request}
"""Functions that answer each kind of question."""

CLAUSES: Mapping[str, Clauses] = {
    "verdict": lambda question: (verdict_clause(question.choice("event", EVENTS)(question)),),
    "request": lambda _: (f"{PAGE}, Hard-coded rules; decisions A2 and A8 to A10",),
}
"""Functions that return the clauses on each kind of question."""
