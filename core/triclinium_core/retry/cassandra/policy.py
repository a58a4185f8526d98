"""Interface of retry policies, with one method for each of five kinds of failure, and the function that calls them.

Source: the retry page of the Cassandra Java driver, "Behavior".
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Protocol

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.verdicts import RetryVerdict
from triclinium_core.retry.checks import check_integer
from triclinium_core.retry.kinds import DeciderKind, other_kind
from triclinium_core.shown import shown


class RetryPolicy(Protocol):
    """Policy that decides about a request that failed on a node. It is stateless, and its methods are synchronous.

    ``consistency`` is always the level in the error, which may differ from the level of the request. ``retry_count`` is
    the number of retries that verdicts have caused in this execution so far, after any kind of error.
    """

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a read that timed out. Called for any statement.

        Args:
            block_for: number of responses that the level needs.
            received: number of responses that the coordinator received in time.
            data_present: whether one of the responses contained the data and not only a digest.
        """
        ...

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a write that timed out. Called for idempotent statements only.

        Args:
            block_for: number of acknowledgements that the level needs.
            received: number of acknowledgements that the coordinator received in time.
        """
        ...

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a request for which too few replicas were alive. Called for any statement.

        Args:
            required: number of replicas that the level needs.
            alive: number of replicas that the coordinator believed alive.
        """
        ...

    def on_request_aborted(self, *, error: errors.RequestAborted, retry_count: int) -> RetryVerdict:
        """Return the verdict on a request without a readable response. Called if it is idempotent or a PREPARE.

        Args:
            error: ``ClosedConnection``, ``HeartbeatFailure``, or ``RequestAborted`` itself for an unreadable response.
        """
        ...

    def on_error_response(self, *, error: errors.CoordinatorError, retry_count: int) -> RetryVerdict:
        """Return the verdict on most other errors of the coordinator. Called for idempotent statements and PREPAREs.

        Args:
            error: for example ``Overloaded``, ``ServerError``, ``TruncateError``, ``ReadFailure`` or ``WriteFailure``.
        """
        ...


QUESTIONS: Mapping[type[errors.CassandraError], tuple[str, Sequence[str]]] = {
    errors.ReadTimeout: ("on_read_timeout", ("consistency", "block_for", "received", "data_present")),
    errors.WriteTimeout: ("on_write_timeout", ("consistency", "write_type", "block_for", "received")),
    errors.Unavailable: ("on_unavailable", ("consistency", "required", "alive")),
    errors.RequestAborted: ("on_request_aborted", ()),
    errors.CoordinatorError: ("on_error_response", ()),
}
"""Policy method for each class of errors, and the attributes of the error that it receives as arguments. A method
without attributes receives the error itself. The first row whose class matches an error applies."""

METHODS: Sequence[str] = tuple(method for method, _ in QUESTIONS.values())
"""Names of the methods that every policy has."""


def require_policy(policy: RetryPolicy, parameter: str = "policy") -> None:
    """Raise ArgumentError, about ``parameter``, unless ``policy`` is an object with all five methods, none async."""
    if isinstance(policy, type):
        raise ArgumentError(
            f"{parameter}={shown(policy)} is a class; pass an instance: {policy.__name__}()", parameter=parameter
        )
    for name in METHODS:
        method = getattr(policy, name, None)
        if not callable(method):
            hint = other_kind(policy, DeciderKind.CASSANDRA) or f"a RetryPolicy has {', '.join(METHODS)}"
            raise ArgumentError(f"{parameter}={shown(policy)} has no method {name}; {hint}", parameter=parameter)
        if inspect.iscoroutinefunction(method):
            raise ArgumentError(
                f"{name} of {parameter}={shown(policy)} is an `async def`; it must be a plain function",
                parameter=parameter,
            )


def verdict_on(policy: RetryPolicy, error: errors.CassandraError, *, retry_count: int) -> RetryVerdict:
    """Return the verdict of ``policy`` on ``error``.

    The caller must first check whether the statement is idempotent, because policies do not decide about some errors of
    statements that are not idempotent.

    Args:
        error: error that the coordinator sent, or the reason why its response is missing.
        retry_count: number of retries that verdicts have caused in this execution so far.

    Raises:
        ArgumentError: policies do not decide about ``error``, or ``retry_count`` is not an integer of at least 0.
        TypeError: the policy returned something other than a RetryVerdict.
        Exception: any exception that the policy raised.
    """
    check_integer(retry_count, "retry_count")
    for kind, (method, names) in QUESTIONS.items():
        if isinstance(error, kind):
            arguments = {name: getattr(error, name) for name in names} or {"error": error}
            return _checked(policy, method, getattr(policy, method)(**arguments, retry_count=retry_count))
    raise ArgumentError(
        f"error={shown(error)} must be a CoordinatorError or a RequestAborted, the errors about which a policy decides",
        parameter="error",
    )


def _checked(policy: RetryPolicy, method: str, answer: object) -> RetryVerdict:
    where = f"{method} of {type(policy).__name__}"
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError(f"{where} returned a coroutine; it must be a plain function, not an `async def`")
    if not isinstance(answer, RetryVerdict):
        raise TypeError(
            f"{where} returned {shown(answer)}; it must return a RetryVerdict, such as RETRY_NEXT or RETHROW"
        )
    return answer
