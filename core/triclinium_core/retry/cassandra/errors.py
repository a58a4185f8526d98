"""Errors that a Cassandra request raises, with one class for each error code of the protocol.

::

    CassandraError
    ├── CoordinatorError                 reported by the coordinator
    │   ├── ServerError, ProtocolError, AuthenticationError, Overloaded, Bootstrapping, TruncateError
    │   ├── Unavailable, ReadTimeout, WriteTimeout
    │   ├── ReplicaFailure
    │   │   └── ReadFailure, WriteFailure
    │   ├── FunctionFailure, CdcWriteFailure, CasWriteUnknown
    │   ├── QueryValidationError
    │   │   └── InvalidSyntax, Unauthorized, InvalidQuery, InvalidConfiguration, AlreadyExists
    │   └── Unprepared
    ├── RequestAborted                   the response is missing or unreadable
    │   └── ClosedConnection, HeartbeatFailure
    ├── NodeUnavailable, FrameTooLong, RequestThrottled, DriverTimeout
    ├── PolicyFailed, UnexpectedAnswer, RepreparationFailed
    └── AllNodesFailed
        └── NoNodeAvailable

Source: CQL binary protocol v5 §8; the exceptions of the Cassandra Java driver.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypedDict, Unpack

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.checks import check_choice, check_flag, check_integer
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import printable, shown

NODES_SHOWN_MAX = 3
"""Maximum number of nodes that a message lists."""
ERRORS_SHOWN_MAX = 3
"""Maximum number of errors that a message lists for each node. A request that is retried many times has many errors."""


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Summary of a request's executions, which accompanies the result or the error of the request.

    Source: the Cassandra Java driver, ``ExecutionInfo``.
    """

    coordinator: Hashable
    """Node whose result or error ended the request; None if there is no such node."""
    errors: tuple[tuple[Hashable, CassandraError], ...]
    """Errors of all executions after which the request continued, as pairs of node and error, in order. The tuple has
    neither the error that carries this summary nor an error that the policy ignored."""
    successful_execution_index: int
    """Index of the execution whose result or error ended the request, 0 for the first; -1 if no execution did."""
    speculative_executions: int
    """Number of speculative executions that were started."""
    consistency: ConsistencyLevel | None
    """Last consistency level of the execution that ended the request with a result, with an error, or because no node
    of the query plan was left. If no execution ended the request, the level with which the request was submitted. None
    if no level was specified."""
    retry_count: int
    """Number of retries that the policy's verdicts caused in the execution whose result or error ended the request. If
    there is no such execution, the total of all executions."""


class CassandraError(Exception):
    """Base of all errors of a Cassandra request. A copy has the same attributes, but no traceback, cause or context."""

    execution_info: ExecutionInfo | None = None
    """Summary of the executions; None for an error that did not fail its request, for example because of a retry."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:
        state = dict(self.__dict__)
        if "__notes__" in state:
            # Without this copy of the list, a note that is added to a copy of the error would appear in the original.
            state["__notes__"] = list(state["__notes__"])
        return _restored, (type(self), self.args), state or None


def _restored(kind: type[CassandraError], arguments: tuple[object, ...]) -> CassandraError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    return error


NO_CODE = -1
"""Value of ``code`` for an error without a code on the wire. No error of the protocol has this code."""


class CoordinatorError(CassandraError):
    """The coordinator sent an ERROR frame.

    A program that embeds this package may have its own exception for the same response. It then sets its exception as
    the ``__cause__`` of this one. ``wire_errors.from_wire`` creates the error for a response.

    Args:
        message: message of the node, unchanged.
        details: explanation of the error's numbers, which ``str()`` puts before the message.
    """

    code: int = NO_CODE
    """Error code on the wire, 32 bits; ``NO_CODE`` if the class has no code and no response has set one."""
    message: str = ""
    """Message of the node, unchanged."""
    fields: Mapping[str, object] = MappingProxyType({})
    """Fields that follow the message in the response, unchanged; empty if the error was not read from a response."""

    def __init__(self, message: str = "", *, details: str = "") -> None:
        super().__init__(f"{details}; the node reports: {message}" if details and message else details or message)
        self.message = message


class ServerError(CoordinatorError):
    """The coordinator reported an unexpected internal error."""

    code = 0x0000


class ProtocolError(CoordinatorError):
    """The coordinator did not understand the frame."""

    code = 0x000A


class AuthenticationError(CoordinatorError):
    """The coordinator refused the credentials."""

    code = 0x0100


class Overloaded(CoordinatorError):
    """The coordinator is overloaded and refused the request."""

    code = 0x1001


class Bootstrapping(CoordinatorError):
    """The coordinator is still joining the cluster and did not execute the request."""

    code = 0x1002


class TruncateError(CoordinatorError):
    """A TRUNCATE statement failed."""

    code = 0x1003


class ReplicaFigures(TypedDict, total=False):
    """Arguments of :py:class:`ReplicaFailure` that describe the failed replicas."""

    consistency: ConsistencyLevel | None
    block_for: int | None
    received: int | None
    failures: int | None
    reasons: Mapping[str, int] | None


class ReplicaFailure(CoordinatorError):
    """Replicas failed for a reason other than a timeout. Attributes that the node omits have their defaults.

    Args:
        message: message of the node.
        consistency: consistency level that the request did not reach.
        block_for: number of responses that the level needs.
        received: number of responses that the coordinator received.
        failures: number of replicas that failed.
        reasons: code of each failure, by address of the replica. The server's version defines the codes. In protocol
            v5, a node sends them instead of ``failures``, which is then the number of codes.

    Raises:
        ArgumentError: a count or the level has the wrong type, or a count is negative.
    """

    def __init__(
        self,
        message: str = "",
        *,
        consistency: ConsistencyLevel | None = None,
        block_for: int | None = None,
        received: int | None = None,
        failures: int | None = None,
        reasons: Mapping[str, int] | None = None,
    ) -> None:
        check_answers(consistency, block_for, received)
        if failures is not None:
            check_integer(failures, "failures")
        super().__init__(message, details=self._details(consistency, block_for, received, failures, reasons))
        self.consistency = consistency
        self.block_for = block_for
        self.received = received
        self.failures: int | None = len(reasons) if failures is None and reasons is not None else failures
        self.reasons: Mapping[str, int] = {} if reasons is None else dict(reasons)

    def _details(  # A response may lack any of these values.
        self,
        consistency: ConsistencyLevel | None,
        block_for: int | None,
        received: int | None,
        failures: int | None,
        reasons: Mapping[str, int] | None,
    ) -> str:
        if consistency is None or block_for is None or received is None:
            return ""
        where = ", ".join(f"{node} (code {reason})" for node, reason in list((reasons or {}).items())[:NODES_SHOWN_MAX])
        failed = len(reasons) if failures is None and reasons is not None else failures
        lost = "" if failed is None else f", {shown(failed)} replica{'' if failed == 1 else 's'} failed"
        return (
            f"{consistency.name} needs {shown(block_for)} of the replicas to respond; "
            f"responses received: {shown(received)}{lost}{where and f': {where}'}"
        )


class ReadFailure(ReplicaFailure):
    """A replica failed to read for a reason other than a timeout. Attributes that the node omits have their defaults.

    Args:
        message: message of the node.
        data_present: whether one of the replicas' responses contained the data.
        figures: the other arguments of :py:class:`ReplicaFailure`.
    """

    code = 0x1300

    def __init__(
        self, message: str = "", *, data_present: bool | None = None, **figures: Unpack[ReplicaFigures]
    ) -> None:
        if data_present is not None:
            check_flag(data_present, "data_present")
        super().__init__(message, **figures)
        self.data_present = data_present


class FunctionFailure(CoordinatorError):
    """A user-defined function failed. Attributes that the node did not send are empty.

    Args:
        message: message of the node.
        keyspace: keyspace of the function.
        function: name of the function.
        arg_types: types of the function's arguments.
    """

    code = 0x1400

    def __init__(
        self, message: str = "", *, keyspace: str = "", function: str = "", arg_types: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.keyspace = keyspace
        self.function = function
        self.arg_types: tuple[str, ...] = tuple(arg_types)


class WriteFailure(ReplicaFailure):
    """A replica failed to write for a reason other than a timeout. Attributes that the node omits have their defaults.

    Args:
        message: message of the node.
        write_type: type of the write.
        figures: the other arguments of :py:class:`ReplicaFailure`.
    """

    code = 0x1500

    def __init__(
        self, message: str = "", *, write_type: WriteType | None = None, **figures: Unpack[ReplicaFigures]
    ) -> None:
        if write_type is not None:
            check_choice(write_type, "write_type", WriteType)
        super().__init__(message, **figures)
        self.write_type = write_type


class CdcWriteFailure(CoordinatorError):
    """The coordinator could not log the write for change data capture (CDC)."""

    code = 0x1600


class CasWriteUnknown(CoordinatorError):
    """A lightweight transaction may or may not have been applied. The node may omit attributes; each defaults to None.

    Args:
        message: message of the node.
        consistency: consistency level that the transaction did not reach.
        block_for: number of acknowledgements that the level needs.
        received: number of acknowledgements that the coordinator received.

    Raises:
        ArgumentError: a count or the level has the wrong type, or a count is negative.
    """

    code = 0x1700

    def __init__(
        self,
        message: str = "",
        *,
        consistency: ConsistencyLevel | None = None,
        block_for: int | None = None,
        received: int | None = None,
    ) -> None:
        check_answers(consistency, block_for, received)
        super().__init__(message)
        self.consistency = consistency
        self.block_for = block_for
        self.received = received


class QueryValidationError(CoordinatorError):
    """The statement is invalid or not permitted; other nodes would normally refuse it too."""


class InvalidSyntax(QueryValidationError):
    """The statement is not valid CQL."""

    code = 0x2000


class Unauthorized(QueryValidationError):
    """The user lacks the permission for the statement."""

    code = 0x2100


class InvalidQuery(QueryValidationError):
    """The statement is valid CQL, but the coordinator cannot execute it, for example because a table is unknown."""

    code = 0x2200


class InvalidConfiguration(QueryValidationError):
    """The statement requests an invalid configuration."""

    code = 0x2300


class AlreadyExists(QueryValidationError):
    """The keyspace or table already exists. Attributes that the node did not send are empty.

    Args:
        message: message of the node.
        keyspace: the existing keyspace, or the keyspace of the table.
        table: the existing table; empty for a keyspace.
    """

    code = 0x2400

    def __init__(self, message: str = "", *, keyspace: str = "", table: str = "") -> None:
        super().__init__(message)
        self.keyspace = keyspace
        self.table = table


class Unprepared(CoordinatorError):
    """The coordinator does not have the prepared statement, and did not execute the request.

    Args:
        statement_id: id of the statement in the request.
    """

    code = 0x2500

    def __init__(self, message: str = "the statement is not prepared", *, statement_id: bytes = b"") -> None:
        super().__init__(message)
        self.statement_id = statement_id


def check_answers(consistency: ConsistencyLevel | None, block_for: int | None, received: int | None) -> None:
    """Raise ArgumentError if a level or a number of responses is invalid; None is valid."""
    if consistency is not None:
        check_choice(consistency, "consistency", ConsistencyLevel)
    for name, count in (("block_for", block_for), ("received", received)):
        if count is not None:
            check_integer(count, name)


def check_read(consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool) -> None:
    """Raise ArgumentError unless the arguments are valid for a read that timed out."""
    check_choice(consistency, "consistency", ConsistencyLevel)
    check_integer(block_for, "block_for")
    check_integer(received, "received")
    check_flag(data_present, "data_present")


def check_write(consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int) -> None:
    """Raise ArgumentError unless the arguments are valid for a write that timed out."""
    check_choice(write_type, "write_type", WriteType)
    check_read(consistency, block_for, received, data_present=False)


def check_unavailable(consistency: ConsistencyLevel, required: int, alive: int) -> None:
    """Raise ArgumentError unless the arguments are valid for a request for which too few replicas were alive."""
    check_choice(consistency, "consistency", ConsistencyLevel)
    check_integer(required, "required")
    check_integer(alive, "alive")


class Unavailable(CoordinatorError):
    """The coordinator believed that too few replicas were alive, and did not execute the request.

    Raises:
        ArgumentError: a count or the level has the wrong type, or a count is negative.
    """

    code = 0x1000

    def __init__(self, message: str = "", *, consistency: ConsistencyLevel, required: int, alive: int) -> None:
        check_unavailable(consistency, required, alive)
        are = "is" if alive == 1 else "are"
        super().__init__(
            message,
            details=f"{consistency.name} needs {shown(required)} of the replicas; {shown(alive)} {are} alive",
        )
        self.consistency = consistency
        self.required = required
        self.alive = alive


class ReadTimeout(CoordinatorError):
    """Too few replicas responded to a read in time, or no response contained the data.

    Raises:
        ArgumentError: a count or the level has the wrong type, a count is negative, or ``data_present`` is not a bool.
    """

    code = 0x1200

    def __init__(
        self, message: str = "", *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool
    ) -> None:
        check_read(consistency, block_for, received, data_present)
        super().__init__(
            message,
            details=f"{consistency.name} needs {shown(block_for)} of the replicas to respond; {shown(received)} responded "
            f"in time, {'one' if data_present else 'none'} with the data",
        )
        self.consistency = consistency
        self.block_for = block_for
        self.received = received
        self.data_present = data_present


class WriteTimeout(CoordinatorError):
    """Too few replicas acknowledged a write in time; it may have been applied.

    ``contentions`` is the number of contentions of a lightweight transaction, which protocol v5 adds; None if the node
    did not send it.

    Raises:
        ArgumentError: a count, the level or the write type has the wrong type, or a count is negative.
    """

    code = 0x1100

    def __init__(
        self,
        message: str = "",
        *,
        consistency: ConsistencyLevel,
        write_type: WriteType,
        block_for: int,
        received: int,
        contentions: int | None = None,
    ) -> None:
        check_write(consistency, write_type, block_for, received)
        if contentions is not None:
            check_integer(contentions, "contentions")
        super().__init__(
            message,
            details=f"{write_type} write: {consistency.name} needs {shown(block_for)} of the replicas to acknowledge "
            f"it; {shown(received)} acknowledged it in time",
        )
        self.contentions = contentions
        self.consistency = consistency
        self.write_type = write_type
        self.block_for = block_for
        self.received = received


class RequestAborted(CassandraError):
    """The response to the request will not arrive, or cannot be read."""


class ClosedConnection(RequestAborted):
    """The connection was closed before the response arrived."""


class HeartbeatFailure(RequestAborted):
    """The node did not respond to a heartbeat, so the driver closed the connection."""


class NodeUnavailable(CassandraError):
    """There was no usable connection to the node; nothing was sent."""


class FrameTooLong(CassandraError):
    """The request or its response does not fit into a frame."""


class RequestThrottled(CassandraError):
    """The driver's own throttle refused the request; nothing was sent."""


class DriverTimeout(CassandraError):
    """The client's timeout for the complete request has expired."""


class PolicyFailed(CassandraError):
    """A policy or the query plan raised an exception, which is the ``__cause__``, or returned an invalid value."""


class UnexpectedAnswer(CassandraError):
    """The coordinator responded to a PREPARE with an error that no PREPARE can cause. ``__cause__`` is that error."""


class RepreparationFailed(CassandraError):
    """A node cannot prepare the statement again: the driver does not have its text, or the node returned another id."""


class AllNodesFailed(CassandraError):
    """The request failed on all nodes of the query plan.

    Args:
        failures: errors of the attempts, as pairs of node and error, in order.
    """

    errors: Mapping[Hashable, tuple[CassandraError, ...]]
    """All errors of each node, in order. The nodes are in the order of their first errors."""

    def __init__(self, failures: Sequence[tuple[Hashable, CassandraError]]) -> None:
        met: dict[Hashable, list[CassandraError]] = {}
        for node, error in failures:
            met.setdefault(node, []).append(error)
        grouped = {node: tuple(errors) for node, errors in met.items()}
        super().__init__(_summary(grouped))
        self.errors = grouped


class NoNodeAvailable(AllNodesFailed):
    """No node of the query plan is left, although none has failed: usually the plan was empty.

    There is one other cause. The last node of the plan had prepared the statement again, but then there was no
    connection to it for the request.
    """

    def __init__(self) -> None:
        super().__init__(())


def _summary(errors: Mapping[Hashable, tuple[CassandraError, ...]]) -> str:
    if not errors:
        return "the query plan has no nodes left, and none has failed; check the load balancing policy"
    shown = list(errors.items())[:NODES_SHOWN_MAX]
    texts = ", ".join(f"{node}: [{_all_shown(met)}]" for node, met in shown)
    more = f", and {len(errors) - len(shown)} more in `errors`" if len(errors) > len(shown) else ""
    return f"{len(errors)} node{'s' if len(errors) > 1 else ''} tried, no other is left: {texts}{more}"


def _all_shown(errors: Sequence[CassandraError]) -> str:
    more = [f"{len(errors) - ERRORS_SHOWN_MAX} more"] if len(errors) > ERRORS_SHOWN_MAX else []
    return "; ".join([*map(_shown, errors[:ERRORS_SHOWN_MAX]), *more])


def _shown(error: CassandraError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


CODES: Mapping[int, type[CoordinatorError]] = table_of(
    (error.code, error)
    for base in (CoordinatorError, ReplicaFailure, QueryValidationError)
    for error in base.__subclasses__()
    if error.code != NO_CODE
)
"""Error class for each code on the wire."""
