"""Adapter of our Cassandra policies for ``cassandra-driver``, which the extra ``cassandra-driver`` installs.

::

    policy = DriverRetryPolicy(ConsistencyDowngradingRetryPolicy())
    cluster = Cluster(execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(retry_policy=policy)})

The driver calls four methods with its own types. The tables of this module convert these types to ours, and convert the
verdicts back. ``judge``, which the request machine also uses, decides whether the policy is called.

Source: ``cassandra.policies.RetryPolicy`` and ``cassandra.cluster.ResponseFuture`` of cassandra-driver 3.30.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.policy import RetryPolicy, require_policy
from triclinium_core.retry.cassandra.requests.cassandra_request import CassandraRequest, RequestKind
from triclinium_core.retry.cassandra.requests.judgement import Step, judge
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import printable, total_repr

try:
    import cassandra
    from cassandra import connection, policies, protocol
except ModuleNotFoundError as _missing:
    raise ImportError(
        "the package cassandra-driver is missing; run: pip install 'triclinium-core[cassandra-driver]'"
    ) from _missing

if TYPE_CHECKING:

    class _DriverBase:
        """Base class of the driver, which has no type hints."""

else:
    _DriverBase = policies.RetryPolicy

DriverAnswer = tuple[int, int | None]
"""Return value for the driver: one of its decisions, and the consistency level of the retry; None if unchanged."""

LEVELS: Mapping[int, ConsistencyLevel] = table_of(
    (cassandra.ConsistencyLevel.name_to_value[level.name], level) for level in ConsistencyLevel
)
"""Consistency levels by the driver's value."""

WRITE_TYPES: Mapping[int, WriteType] = table_of(
    (cassandra.WriteType.name_to_value[kind.name], kind) for kind in WriteType
)
"""Write types by the driver's value."""

ERRORS: Mapping[type, type[errors.CoordinatorError]] = {
    protocol.ServerError: errors.ServerError,
    protocol.OverloadedErrorMessage: errors.Overloaded,
    protocol.IsBootstrappingErrorMessage: errors.Bootstrapping,
    protocol.TruncateError: errors.TruncateError,
}
"""Errors of a coordinator for which the driver calls ``on_request_error``.

The driver calls other methods for timeouts and for too few replicas, and no method for the remaining errors.
"""

DECISIONS: Mapping[Step, int] = {
    Step.RETRY_SAME: policies.RetryPolicy.RETRY,
    Step.RETRY_NEXT: policies.RetryPolicy.RETRY_NEXT_HOST,
    Step.GO_ON: policies.RetryPolicy.RETRY_NEXT_HOST,
    Step.RAISE: policies.RetryPolicy.RETHROW,
    Step.IGNORE: policies.RetryPolicy.IGNORE,
}
"""Decision of the driver for each step. The driver reprepares by itself, and treats an unknown decision as IGNORE."""

_RETHROW: DriverAnswer = (policies.RetryPolicy.RETHROW, None)
_VALUES = {level: value for value, level in LEVELS.items()}


class DriverRetryPolicy(_DriverBase):
    """Adapter that makes a policy the ``retry_policy`` of an ``ExecutionProfile``, a ``Statement`` or a ``Cluster``.

    As in the Java driver, the policy is called for read timeouts and too few replicas with any statement, and for write
    timeouts, lost connections and other errors of the coordinator only if the statement has ``is_idempotent=True``. For
    other statements, the last three are rethrown. If a node is bootstrapping, any statement goes to the next node
    without calling the policy. This driver calls no policy for read and write failures and invalid statements, and only
    a built-in policy for PREPARE.

    The driver calls the policy in its own threads, and waits for the result. So a policy must not block, and must be
    thread-safe. If a policy raises, or does not return a ``RetryVerdict``, the caller of ``execute`` gets
    ``PolicyFailed``, with the policy's exception as ``__cause__``.

    Args:
        policy: ``DefaultRetryPolicy()``, ``ConsistencyDowngradingRetryPolicy()`` or your own policy.

    Raises:
        ArgumentError: ``policy`` is not a policy.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        require_policy(policy)
        super().__init__()
        self._policy = policy

    @total_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._policy!r})"

    @property
    def policy(self) -> RetryPolicy:
        """Wrapped policy."""
        return self._policy

    def on_read_timeout(  # noqa: PLR0917  # The driver's own signature.
        self,
        query: object,
        consistency: int,
        required_responses: int,
        received_responses: int,
        data_retrieved: bool,
        retry_num: int,
    ) -> DriverAnswer:
        """Return the decision of the policy's ``on_read_timeout``, for any statement; RETHROW for invalid arguments."""
        failure = _understood(
            lambda: errors.ReadTimeout(
                consistency=LEVELS[consistency],
                block_for=required_responses,
                received=received_responses,
                data_present=bool(data_retrieved),
            )
        )
        return self._answer(query, failure, retry_num)

    def on_write_timeout(  # noqa: PLR0917  # The driver's own signature.
        self,
        query: object,
        consistency: int,
        write_type: int,
        required_responses: int,
        received_responses: int,
        retry_num: int,
    ) -> DriverAnswer:
        """Return the decision of the policy's ``on_write_timeout``.

        Return RETHROW if the statement is not idempotent, or if an argument is invalid.
        """
        failure = _understood(
            lambda: errors.WriteTimeout(
                consistency=LEVELS[consistency],
                write_type=WRITE_TYPES[write_type],
                block_for=required_responses,
                received=received_responses,
            )
        )
        return self._answer(query, failure, retry_num)

    def on_unavailable(
        self, query: object, consistency: int, required_replicas: int, alive_replicas: int, retry_num: int
    ) -> DriverAnswer:
        """Return the decision of the policy's ``on_unavailable``, for any statement; RETHROW for invalid arguments."""
        failure = _understood(
            lambda: errors.Unavailable(
                consistency=LEVELS[consistency], required=required_replicas, alive=alive_replicas
            )
        )
        return self._answer(query, failure, retry_num)

    def on_request_error(
        self, query: object, consistency: int | None, error: Exception, retry_num: int
    ) -> DriverAnswer:
        """Return the policy's decision on a lost connection or an error of one node.

        If a node is bootstrapping, return RETRY_NEXT_HOST without calling the policy. The policy's
        ``on_error_response`` decides on the other errors in ``ERRORS``, ``on_request_aborted`` on all remaining errors.
        The driver does not distinguish an unanswered heartbeat from any other loss. Except for a bootstrapping node,
        return RETHROW if the statement is not idempotent.
        """
        return self._answer(query, _failure_of(error), retry_num)

    def _answer(self, query: object, failure: errors.CassandraError | None, retry_num: int) -> DriverAnswer:
        if failure is None:
            return _RETHROW
        request = CassandraRequest(
            policy=self._policy,
            idempotent=bool(getattr(query, "is_idempotent", False)),
            # The driver passes no query for a PREPARE. Version 3.30 consults only a built-in policy then, not this one.
            kind=RequestKind.PREPARE if query is None else RequestKind.STATEMENT,
        )
        judgement = judge(request, failure, node="a node", retry_count=retry_num, preparing=False)
        if isinstance(judgement.error, errors.PolicyFailed):
            judgement.error.add_note(printable(f"response of the node: {failure}"))
            raise judgement.error
        level = judgement.verdict.consistency if judgement.verdict and not request.is_prepare else None
        return DECISIONS[judgement.step], None if level is None else _VALUES[level]


def _understood(make: Callable[[], errors.CoordinatorError]) -> errors.CoordinatorError | None:
    """Return the error that ``make`` creates; None if its values are invalid, so that the driver rethrows its own."""
    try:
        return make()
    except (KeyError, ArgumentError):
        return None


def _failure_of(error: Exception) -> errors.CassandraError:
    failure: errors.CassandraError
    if isinstance(error, connection.ConnectionShutdown):
        failure = errors.ClosedConnection(str(error))
    else:
        answer = next((ERRORS[kind] for kind in type(error).__mro__ if kind in ERRORS), errors.RequestAborted)
        failure = answer(str(error))
    failure.__cause__ = error
    return failure
