"""Our Cassandra policies inside the package ``cassandra-driver``, which the extra of that name installs.

::

    policy = DriverRetryPolicy(ConsistencyDowngradingRetryPolicy())
    cluster = Cluster(execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(retry_policy=policy)})

The driver asks four questions in words of its own; the tables here translate them, and the answers back. Whether a
policy is asked at all is decided as in the request machine.

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
        """The class of the driver, which has no types."""

else:
    _DriverBase = policies.RetryPolicy

DriverAnswer = tuple[int, int | None]
"""What the driver takes: one of its decisions, and the level to retry at; None for the same."""

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
"""The answers about which the driver asks ``on_request_error``. About all that is missing here it asks nobody."""

DECISIONS: Mapping[Step, int] = {
    Step.RETRY_SAME: policies.RetryPolicy.RETRY,
    Step.RETRY_NEXT: policies.RetryPolicy.RETRY_NEXT_HOST,
    Step.GO_ON: policies.RetryPolicy.RETRY_NEXT_HOST,
    Step.RAISE: policies.RetryPolicy.RETHROW,
    Step.IGNORE: policies.RetryPolicy.IGNORE,
}
"""What the driver calls what happens next. It prepares anew by itself, and takes what it does not know for IGNORE."""

_RETHROW: DriverAnswer = (policies.RetryPolicy.RETHROW, None)
_VALUES = {level: value for value, level in LEVELS.items()}


class DriverRetryPolicy(_DriverBase):
    """A policy of ours as the ``retry_policy`` of an ``ExecutionProfile``, a ``Statement`` or a ``Cluster``.

    As in the Java driver, write timeouts, lost connections and errors of the coordinator come to the policy for
    statements with ``is_idempotent=True`` only, and are rethrown for any other. A node that is bootstrapping sends any
    statement to the next one, unasked. Of read and write failures, of what is wrong with a statement, and of PREPARE no
    policy hears in this driver.

    The driver asks on threads of its own, and nothing else happens on them meanwhile: a policy neither waits nor keeps
    what is not safe between threads. Where a policy raises, or answers what is no verdict, the caller of ``execute``
    gets ``PolicyFailed`` with what it raised as ``__cause__``.

    Args:
        policy: such as ``DefaultRetryPolicy()`` or ``ConsistencyDowngradingRetryPolicy()``, or one of your own.

    Raises:
        ArgumentError: ``policy`` is no policy.
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
        """The policy that is asked."""
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
        """Return what the policy's ``on_read_timeout`` says, for any statement."""
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
        """Return what the policy's ``on_write_timeout`` says; for a statement that is not idempotent, RETHROW."""
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
        """Return what the policy's ``on_unavailable`` says, for any statement."""
        failure = _understood(
            lambda: errors.Unavailable(
                consistency=LEVELS[consistency], required=required_replicas, alive=alive_replicas
            )
        )
        return self._answer(query, failure, retry_num)

    def on_request_error(
        self, query: object, consistency: int | None, error: Exception, retry_num: int
    ) -> DriverAnswer:
        """Return what the policy says of a lost connection or of an error that tells of one node only.

        ``on_error_response`` is asked about the answers in ``ERRORS``, ``on_request_aborted`` about the rest; the driver
        does not tell an unanswered heartbeat from any other loss. For a statement that is not idempotent it is RETHROW.

        """
        return self._answer(query, _failure_of(error), retry_num)

    def _answer(self, query: object, failure: errors.CassandraError | None, retry_num: int) -> DriverAnswer:
        if failure is None:
            return _RETHROW
        request = CassandraRequest(
            policy=self._policy,
            idempotent=bool(getattr(query, "is_idempotent", False)),
            # The driver prepares without a statement; 3.30 has a policy of its own for that, and asks no other.
            kind=RequestKind.PREPARE if query is None else RequestKind.STATEMENT,
        )
        judgement = judge(request, failure, node="a node", retry_count=retry_num, preparing=False)
        if isinstance(judgement.error, errors.PolicyFailed):
            judgement.error.add_note(printable(f"what the node answered: {failure}"))
            raise judgement.error
        level = judgement.verdict.consistency if judgement.verdict and not request.is_prepare else None
        return DECISIONS[judgement.step], None if level is None else _VALUES[level]


def _understood(make: Callable[[], errors.CoordinatorError]) -> errors.CoordinatorError | None:
    """Return None for figures that cannot be: the caller gets the coordinator's answer as it is."""
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
