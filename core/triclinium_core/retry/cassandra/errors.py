"""Errors of a Cassandra request, one class for each code of the protocol.

::

    CassandraError
    ├── CoordinatorError                 the coordinator answered it
    │   ├── ServerError, ProtocolError, AuthenticationError, Overloaded, Bootstrapping, TruncateError
    │   ├── Unavailable, ReadTimeout, WriteTimeout
    │   ├── ReplicaFailure
    │   │   └── ReadFailure, WriteFailure
    │   ├── FunctionFailure, CdcWriteFailure, CasWriteUnknown
    │   ├── QueryValidationError
    │   │   └── InvalidSyntax, Unauthorized, InvalidQuery, InvalidConfiguration, AlreadyExists
    │   └── Unprepared
    ├── RequestAborted                   no answer came, or none that can be read
    │   └── ClosedConnection, HeartbeatFailure
    ├── NodeUnavailable, FrameTooLong, RequestThrottled, DriverTimeout
    ├── PolicyFailed, UnexpectedAnswer, RepreparationFailed
    └── AllNodesFailed
        └── NoNodeAvailable

Source: CQL binary protocol v5 §9; the exceptions of the Cassandra Java driver.
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
"""How many nodes a message names."""
ERRORS_SHOWN_MAX = 3
"""How many errors of each: one that was retried again and again has no end of them."""


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """How a request went: what comes with its result, and with the error that it fails with.

    Source: the Cassandra Java driver, ``ExecutionInfo``.
    """

    coordinator: Hashable
    """The node that answered, or whose error was raised; None if no node did."""
    errors: tuple[tuple[Hashable, CassandraError], ...]
    """What was met on the way and not raised: node and error, in order, of all executions. An ignored error is not
    among them, and neither is the one that carries this."""
    successful_execution_index: int
    """The execution that settled the request, also by its error: 0 for the first; -1 where none did."""
    speculative_executions: int
    """How many speculative executions were started."""
    consistency: ConsistencyLevel | None
    """The level that the statement had in the end, in the execution that settled the request or was the last to find
    the plan empty; if there was none, the one that it was submitted with. None if no level was ever named."""
    retry_count: int
    """How often that execution was retried by a verdict; where none settled the request, all of them together."""


class CassandraError(Exception):
    """Base of all that a Cassandra request can fail with. A copy has all that the original has but its traceback."""

    execution_info: ExecutionInfo | None = None
    """How the request went; None for an error that no request was failed with, such as those on the way."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:
        state = dict(self.__dict__)
        if "__notes__" in state:
            # What is noted on a copy is the copy's own.
            state["__notes__"] = list(state["__notes__"])
        return _restored, (type(self), self.args), state or None


def _restored(kind: type[CassandraError], arguments: tuple[object, ...]) -> CassandraError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    return error


NO_CODE = -1
"""No error on the wire has it."""


class CoordinatorError(CassandraError):
    """The coordinator answered with an ERROR frame.

    An embedder that has an exception of its own for the same answer sets it as ``__cause__``. ``wire_errors.from_wire`` makes
    the one that an answer stands for.

    Args:
        message: what the node says, as it says it.
        details: what its figures mean, in front of the message.
    """

    code: int = NO_CODE
    """The error code on the wire, 32 bit; ``NO_CODE`` where there was no answer to read it from."""
    message: str = ""
    """What the node says, as it says it."""
    fields: Mapping[str, object] = MappingProxyType({})
    """What followed the message, as it came; empty for an error that was not made of an answer."""

    def __init__(self, message: str = "", *, details: str = "") -> None:
        super().__init__(f"{details}; the node says: {message}" if details and message else details or message)
        self.message = message


class ServerError(CoordinatorError):
    """Something unexpected happened at the coordinator."""

    code = 0x0000


class ProtocolError(CoordinatorError):
    """The coordinator did not understand the frame."""

    code = 0x000A


class AuthenticationError(CoordinatorError):
    """The coordinator refused the credentials."""

    code = 0x0100


class Overloaded(CoordinatorError):
    """The coordinator is overloaded and did nothing."""

    code = 0x1001


class Bootstrapping(CoordinatorError):
    """The coordinator is still joining the cluster and did nothing."""

    code = 0x1002


class TruncateError(CoordinatorError):
    """A truncation failed."""

    code = 0x1003


class ReplicaFigures(TypedDict, total=False):
    """What is told of replicas that failed, as :py:class:`ReplicaFailure` takes it."""

    consistency: ConsistencyLevel | None
    block_for: int | None
    received: int | None
    failures: int | None
    reasons: Mapping[str, int] | None


class ReplicaFailure(CoordinatorError):
    """Replicas failed, for a reason other than time. What is None was not sent.

    Args:
        message: what the node says.
        consistency: the level that could not be held.
        block_for: answers that it needs.
        received: answers that came.
        failures: replicas that failed.
        reasons: why, by the address of the replica: a number that the server's version explains. Protocol v5 has it in the
            place of ``failures``, which counts them then.

    Raises:
        ArgumentError: a count or the level is not one, or a count is negative.
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

    def _details(  # What was told, each of which may be missing.
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
            f"{consistency.name} needs {shown(block_for)} answers, {shown(received)} came{lost}{where and f': {where}'}"
        )


class ReadFailure(ReplicaFailure):
    """A replica failed to read, for another reason than time. What is None was not told.

    Args:
        message: what the node says.
        data_present: whether one of the answers carried the data.
        figures: the rest, as :py:class:`ReplicaFailure` has it.
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
    """A user-defined function failed. What is empty was not told.

    Args:
        message: what the node says.
        keyspace: of the function.
        function: its name.
        arg_types: the types of its arguments.
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
    """A replica failed to write, for another reason than time. What is None was not told.

    Args:
        message: what the node says.
        write_type: what kind of write it was.
        figures: the rest, as :py:class:`ReplicaFailure` has it.
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
    """The write could not be logged for change data capture."""

    code = 0x1600


class CasWriteUnknown(CoordinatorError):
    """A lightweight transaction may or may not have been applied. What is None was not told.

    Args:
        message: what the node says.
        consistency: the level that could not be held.
        block_for: acknowledgements that it needs.
        received: acknowledgements that came.

    Raises:
        ArgumentError: a count or the level is not one, or a count is negative.
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
    """The statement itself is wrong; no node will take it."""


class InvalidSyntax(QueryValidationError):
    """The statement is not CQL."""

    code = 0x2000


class Unauthorized(QueryValidationError):
    """The user may not do this."""

    code = 0x2100


class InvalidQuery(QueryValidationError):
    """The statement is CQL, but has no meaning here."""

    code = 0x2200


class InvalidConfiguration(QueryValidationError):
    """The statement asks for a configuration that cannot be."""

    code = 0x2300


class AlreadyExists(QueryValidationError):
    """The keyspace or table is there already. What is empty was not told.

    Args:
        message: what the node says.
        keyspace: the one that is there, or that the table is in.
        table: empty for a keyspace.
    """

    code = 0x2400

    def __init__(self, message: str = "", *, keyspace: str = "", table: str = "") -> None:
        super().__init__(message)
        self.keyspace = keyspace
        self.table = table


class Unprepared(CoordinatorError):
    """The coordinator does not know the prepared statement, and did nothing.

    Args:
        statement_id: the id that it was asked for.
    """

    code = 0x2500

    def __init__(self, message: str = "the statement is not prepared", *, statement_id: bytes = b"") -> None:
        super().__init__(message)
        self.statement_id = statement_id


def check_answers(consistency: ConsistencyLevel | None, block_for: int | None, received: int | None) -> None:
    """Raise ArgumentError unless each of these is a figure of replicas that answered, or was not told."""
    if consistency is not None:
        check_choice(consistency, "consistency", ConsistencyLevel)
    for name, count in (("block_for", block_for), ("received", received)):
        if count is not None:
            check_integer(count, name)


def check_read(consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool) -> None:
    """Raise ArgumentError unless these are figures of a read that timed out."""
    check_choice(consistency, "consistency", ConsistencyLevel)
    check_integer(block_for, "block_for")
    check_integer(received, "received")
    check_flag(data_present, "data_present")


def check_write(consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int) -> None:
    """Raise ArgumentError unless these are figures of a write that timed out."""
    check_choice(write_type, "write_type", WriteType)
    check_read(consistency, block_for, received, data_present=False)


def check_unavailable(consistency: ConsistencyLevel, required: int, alive: int) -> None:
    """Raise ArgumentError unless these are figures of missing replicas."""
    check_choice(consistency, "consistency", ConsistencyLevel)
    check_integer(required, "required")
    check_integer(alive, "alive")


class Unavailable(CoordinatorError):
    """The coordinator knew too few live replicas, and did nothing.

    Raises:
        ArgumentError: a count or the level is not one, or a count is negative.
    """

    code = 0x1000

    def __init__(self, message: str = "", *, consistency: ConsistencyLevel, required: int, alive: int) -> None:
        check_unavailable(consistency, required, alive)
        are = "is" if alive == 1 else "are"
        super().__init__(
            message,
            details=f"{consistency.name} needs {shown(required)} replicas, {shown(alive)} {are} alive",
        )
        self.consistency = consistency
        self.required = required
        self.alive = alive


class ReadTimeout(CoordinatorError):
    """Too few replicas answered a read in time.

    Raises:
        ArgumentError: a count or the level is not one, a count is negative, or ``data_present`` is no
                bool.
    """

    code = 0x1200

    def __init__(
        self, message: str = "", *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool
    ) -> None:
        check_read(consistency, block_for, received, data_present)
        super().__init__(
            message,
            details=f"{consistency.name} needs {shown(block_for)} answers, {shown(received)} came in time, "
            f"{'one' if data_present else 'none'} with the data",
        )
        self.consistency = consistency
        self.block_for = block_for
        self.received = received
        self.data_present = data_present


class WriteTimeout(CoordinatorError):
    """Too few replicas acknowledged a write in time; it may have been applied.

    ``contentions`` counts what a lightweight transaction met of others, in protocol v5; None where it was not told.

    Raises:
        ArgumentError: a count, the level or the write type is not one, or a count is negative.
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
            details=f"{write_type} write: {consistency.name} needs {shown(block_for)} acknowledgements, "
            f"{shown(received)} came in time",
        )
        self.contentions = contentions
        self.consistency = consistency
        self.write_type = write_type
        self.block_for = block_for
        self.received = received


class RequestAborted(CassandraError):
    """The request was written, and its answer will not come or cannot be read."""


class ClosedConnection(RequestAborted):
    """The connection was closed before the answer came."""


class HeartbeatFailure(RequestAborted):
    """The node left a heartbeat unanswered, so its connection was given up."""


class NodeUnavailable(CassandraError):
    """There was no connection to the node; nothing was sent."""


class FrameTooLong(CassandraError):
    """The request or its answer does not fit a frame."""


class RequestThrottled(CassandraError):
    """The driver's own throttle refused the request; nothing was sent."""


class DriverTimeout(CassandraError):
    """The client's own time for the whole request is over."""


class PolicyFailed(CassandraError):
    """A policy, or the query plan, raised or gave an invalid answer; what it raised is the ``__cause__``."""


class UnexpectedAnswer(CassandraError):
    """The coordinator answered a PREPARE with an error that no PREPARE can meet, which is the ``__cause__``."""


class RepreparationFailed(CassandraError):
    """The statement cannot be prepared again: its text is not known, or the node gave it another id."""


class AllNodesFailed(CassandraError):
    """Every node of the plan was tried, and none is left.

    Args:
        failures: what was met on the way, node and error, in order.
    """

    errors: Mapping[Hashable, tuple[CassandraError, ...]]
    """All errors of each node, in order; nodes in the order in which they first failed."""

    def __init__(self, failures: Sequence[tuple[Hashable, CassandraError]]) -> None:
        met: dict[Hashable, list[CassandraError]] = {}
        for node, error in failures:
            met.setdefault(node, []).append(error)
        grouped = {node: tuple(errors) for node, errors in met.items()}
        super().__init__(_summary(grouped))
        self.errors = grouped


class NoNodeAvailable(AllNodesFailed):
    """No node is left, and none has failed: the query plan was empty.

    There is one other way here: a node had prepared the statement again, the connection to it was gone when the request
    was to follow, and it was the last of the plan.
    """

    def __init__(self) -> None:
        super().__init__(())


def _summary(errors: Mapping[Hashable, tuple[CassandraError, ...]]) -> str:
    if not errors:
        return "no node is left to try, and none has failed; see which nodes the load balancing leaves"
    shown = list(errors.items())[:NODES_SHOWN_MAX]
    texts = ", ".join(f"{node}: [{_all_shown(met)}]" for node, met in shown)
    more = f", and {len(errors) - len(shown)} more in `errors`" if len(errors) > len(shown) else ""
    return f"{len(errors)} node{'s' if len(errors) > 1 else ''} tried, none is left: {texts}{more}"


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
"""The class of each error code."""
