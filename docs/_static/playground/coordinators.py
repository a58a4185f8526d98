"""Requests to Cassandra coordinators: the request machine and a policy, with the responses of the reader's choice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from docs._static.playground.story import CALLER, CLIENT, NODE, Html, Step, picture
from triclinium_core.explain.cassandra.explain import CassandraCase, explain
from triclinium_core.retry import cassandra
from triclinium_core.tools.vectors.cassandra_script import FixedPolicy, read_answer

OPERATIONS: Mapping[str, bool] = {"statement": False, "idempotent statement": True}
"""Whether a statement is idempotent, by the name of the operation."""
STRATEGIES: Mapping[str, Callable[[None], cassandra.RetryPolicy]] = {
    "DefaultRetryPolicy": lambda _: cassandra.DefaultRetryPolicy(),
    "ConsistencyDowngradingRetryPolicy": lambda _: cassandra.ConsistencyDowngradingRetryPolicy(),
}


def play(operation: str, answers: Sequence[str], make_policy: Callable[[None], cassandra.RetryPolicy]) -> Html:
    """Return the story of a request: each attempt gets the next answer, then rows. Raise ValueError for a wrong one."""
    left = deque(answer for answer in map(read_answer, answers) if not answer.is_to_prepare)
    request = cassandra.CassandraRequest(policy=make_policy(None), idempotent=OPERATIONS[operation])
    machine = cassandra.RequestMachine(request, ("node 1", "node 2", "node 3"))
    now, steps = 0.0, [Step(0.0, CALLER, CLIENT, f"executes the {operation}")]
    orders = deque(machine.handle(cassandra.RequestStarted(), now))
    while not isinstance(order := orders.popleft(), cassandra.Complete | cassandra.CompleteEmpty | cassandra.Fail):
        match order:
            case cassandra.ReportFailure():
                steps.append(_failure(order, now, idempotent=request.idempotent))
                continue
            case cassandra.Reprepare(node=node, attempt=attempt, statement_id=statement):
                text, answer = f"sends PREPARE to {node}", read_answer("prepared")
            case cassandra.Send(node=node, attempt=attempt, consistency=level):
                text, statement = f"sends the request to {node}{f' at {level.name}' if level else ''}", b""
                answer = left.popleft() if left else read_answer("rows")
            case _:
                continue
        event = answer.event(attempt, statement)
        steps.append(Step(now, CLIENT, NODE, text))
        now = machine.wakeup if isinstance(event, cassandra.TimerFired) else now
        steps.append(Step(now, NODE, CLIENT, f"{node}: {answer.text}"))
        orders.extend(machine.handle(event, now))
    name = type(order.error).__name__ if isinstance(order, cassandra.Fail) else ""
    result = "rows" if isinstance(order, cassandra.Complete) else "no rows, because the policy ignored the error"
    steps.append(Step(now, CLIENT, CALLER, f"gets {name or result}"))
    return picture(steps, str(order.error) if isinstance(order, cassandra.Fail) else result, name)


def _failure(report: cassandra.ReportFailure, now: float, *, idempotent: bool) -> Step:
    error, text = report.error, f"{type(report.error).__name__}: {report.error}".rstrip(": ")
    if not isinstance(error, cassandra.RequestAborted | cassandra.FrameTooLong | cassandra.CoordinatorError):
        return Step(now, CLIENT, CLIENT, text)
    policy, count = FixedPolicy(report.verdict), report.retry_count
    why = explain(CassandraCase(error=error, policy=policy, idempotent=idempotent, retry_count=count))
    return Step(now, CLIENT, CLIENT, text, why.outcomes[-1].replace("_", " "), "; ".join(why.clauses))
