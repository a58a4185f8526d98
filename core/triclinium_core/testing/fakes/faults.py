"""Faults between a client and a node, as values.

A fault strikes one KV command or one HTTP request to a service, before or after the node has applied it; one fault
strikes a connection. The function that creates a fault describes its effect, and the client defect that it finds.
Faults that apply only to HTTP are in ``fakes.services.faults``.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_flag, check_integer
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX
from triclinium_core.options import SECONDS_MAX
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.services.faults import HttpFaultAfterApplying, HttpFaultBeforeApplying


@dataclass(frozen=True, slots=True)
class DropResponse:
    """See ``drop_response``."""


@dataclass(frozen=True, slots=True)
class Delay:
    """See ``delay``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AnswerStatus:
    """See ``status``."""

    code: int
    body: bytes = b""
    datatype: int = 0


@dataclass(frozen=True, slots=True)
class AnswerNotMyVbucket:
    """See ``not_my_vbucket``."""

    with_config: bool = True


@dataclass(frozen=True, slots=True)
class HangUpBeforeApplying:
    """See ``hang_up``."""


@dataclass(frozen=True, slots=True)
class HangUpAfterApplying:
    """See ``hang_up_after_applying``."""


@dataclass(frozen=True, slots=True)
class HangUpMidReply:
    """See ``hang_up_mid_reply``."""

    bytes_sent: int = 12


@dataclass(frozen=True, slots=True)
class Garble:
    """See ``garble``."""


@dataclass(frozen=True, slots=True)
class WrongLength:
    """See ``wrong_length``."""

    announced: int = UINT32_MAX


@dataclass(frozen=True, slots=True)
class RefuseConnection:
    """See ``refuse_connection``."""


FaultBeforeApplying = AnswerStatus | AnswerNotMyVbucket | HangUpBeforeApplying
"""Faults that prevent the command from being applied."""

FaultAfterApplying = DropResponse | Delay | HangUpAfterApplying | HangUpMidReply | Garble | WrongLength
"""Faults that strike after the command is applied: the client learns of the result late or never."""

CommandFault = FaultBeforeApplying | FaultAfterApplying
"""Faults that strike a command."""

ServiceFaultBeforeApplying = HangUpBeforeApplying | HttpFaultBeforeApplying
"""Faults that prevent the request to a service from being carried out."""

ServiceFaultAfterApplying = (
    DropResponse | Delay | HangUpAfterApplying | HangUpMidReply | Garble | HttpFaultAfterApplying
)
"""Faults that strike the response after the request to a service is carried out."""

ServiceFault = ServiceFaultBeforeApplying | ServiceFaultAfterApplying
"""Faults that strike an HTTP request to a service."""

Fault = CommandFault | ServiceFault | RefuseConnection
"""Any fault of a command, a request or a connection."""


def drop_response() -> Fault:
    """Apply the command and send no reply; the connection stays open.

    Finds a client that waits forever, or reports the timeout of a write as unambiguous.
    """
    return DropResponse()


def delay(seconds: Duration) -> Fault:
    """Apply the command immediately and send the reply ``seconds`` later.

    Without unordered execution, later replies on that connection wait behind it, as on a real node; with it, only those
    to commands that may not be reordered, such as HELLO, and to the commands after these. Finds a client that matches
    replies by their order, or takes a late reply to an abandoned request as the reply to another request.

    Raises:
        InvalidArgumentException: ``seconds`` is not a duration, or is out of range.
    """
    return Delay(check_duration(seconds, "seconds", most=SECONDS_MAX))


def status(code: int, body: bytes = b"", datatype: int = 0) -> Fault:
    """Reply with exactly this status and body, instead of applying the command.

    Finds a client that retries statuses that it must not retry, gives up on retryable statuses, or fails on an
    unexpected body. With ``Status.SUCCESS`` the fault forges a reply.

    Raises:
        InvalidArgumentException: a number does not fit its field, or the body is not bytes or exceeds the value limit.
    """
    check_integer(code, "code", 0, 0xFFFF)
    check_integer(datatype, "datatype", 0, 0xFF)
    if not isinstance(body, bytes) or len(body) > VALUE_SIZE_MAX:
        raise errors.InvalidArgumentException(f"body must be bytes, at most {VALUE_SIZE_MAX} of them", parameter="body")
    return AnswerStatus(code, body, datatype)


def temporary_failure() -> Fault:
    """Reply TEMPORARY_FAILURE instead of applying the command.

    Finds a client that does not back off, or never gives up.
    """
    return AnswerStatus(Status.TEMPORARY_FAILURE)


def locked() -> Fault:
    """Reply LOCKED instead of applying the command.

    Finds a client that treats a lock as an error of the caller, or a failed unlock as a lock.
    """
    return AnswerStatus(Status.LOCKED)


def not_my_vbucket(with_config: bool = True) -> Fault:
    """Reply NOT_MY_VBUCKET instead of applying the command, by default with the node's cluster config.

    Finds a client that reports the status to its caller, ignores the body, or requires a body.

    Raises:
        InvalidArgumentException: ``with_config`` is neither True nor False.
    """
    return AnswerNotMyVbucket(check_flag(with_config, "with_config"))


def hang_up() -> Fault:
    """Close the connection instead of applying the command. Naming a bootstrap opcode makes the bootstrap fail there.

    Finds a client that does not reconnect, or that re-sends a write that may have been applied.
    """
    return HangUpBeforeApplying()


def hang_up_after_applying() -> Fault:
    """Apply the command and close the connection without a reply.

    Finds a client that re-sends a write after a lost connection, so that it is applied twice.
    """
    return HangUpAfterApplying()


def hang_up_mid_reply(*, bytes_sent: int = 12) -> Fault:
    """Apply the command, send the first ``bytes_sent`` bytes of the reply (never all of them) and close.

    Finds a client that keeps half a frame across a reconnect, or counts half a frame as a reply.

    Raises:
        InvalidArgumentException: ``bytes_sent`` is out of range.
    """
    return HangUpMidReply(check_integer(bytes_sent, "bytes_sent", 0, UINT32_MAX))


def garble() -> Fault:
    """Apply the command and invert every bit of the reply; the connection stays open.

    Finds a client that raises, hangs or continues to read, instead of closing the connection with a reason.
    """
    return Garble()


def wrong_length(*, announced: int = UINT32_MAX) -> Fault:
    """Apply the command and send its reply with a body length of ``announced`` bytes in the header.

    Finds a client that allocates, or waits for, any size that a node announces.

    Raises:
        InvalidArgumentException: ``announced`` is not an unsigned number of 32 bits.
    """
    return WrongLength(check_integer(announced, "announced", 0, UINT32_MAX))


def refuse_connection() -> Fault:
    """Refuse a connection; each call of ``FakeNode.accepts`` is one attempt. Requires the opcode None.

    Finds a client that reconnects without backing off, or fails operations that have time left.
    """
    return RefuseConnection()
