"""Faults between a client and a node, as values.

A fault strikes one command of KV or one request to a service over HTTP, before or after the node has applied it; one
strikes a connection. Each constructor says what happens, and which defect of a client it shows; those that only an
answer over HTTP can have stand in ``fakes.services.faults``.
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
"""The command is not applied."""

FaultAfterApplying = DropResponse | Delay | HangUpAfterApplying | HangUpMidReply | Garble | WrongLength
"""The command is applied, and then the client does not learn of it, or late."""

CommandFault = FaultBeforeApplying | FaultAfterApplying
"""What strikes a command."""

ServiceFaultBeforeApplying = HangUpBeforeApplying | HttpFaultBeforeApplying
"""The request to a service is not carried out."""

ServiceFaultAfterApplying = (
    DropResponse | Delay | HangUpAfterApplying | HangUpMidReply | Garble | HttpFaultAfterApplying
)
"""The request to a service is carried out, and then the client does not learn of it, or late."""

ServiceFault = ServiceFaultBeforeApplying | ServiceFaultAfterApplying
"""What strikes a request to a service over HTTP."""

Fault = CommandFault | ServiceFault | RefuseConnection
"""What strikes a command, a request or a connection: a value that one of the functions here returns."""


def drop_response() -> Fault:
    """Apply the command and never answer; the connection stays.

    Finds a client that waits for ever, or calls the timeout of a write unambiguous.
    """
    return DropResponse()


def delay(seconds: Duration) -> Fault:
    """Apply the command at once and answer ``seconds`` later.

    Without unordered execution, later answers on that connection wait behind it, as on a real node. Finds a client that
    matches answers by their order, or takes a late answer to an abandoned request for that of another.

    Raises:
        InvalidArgumentException: ``seconds`` is not a duration, or is out of range.
    """
    return Delay(check_duration(seconds, "seconds", most=SECONDS_MAX))


def status(code: int, body: bytes = b"", datatype: int = 0) -> Fault:
    """Answer with this status and body, exactly as given, instead of applying the command.

    Finds a client that retries what it must not, gives up on what it must retry, or fails on a body that it did
    not expect. With ``Status.SUCCESS`` it forges a reply.

    Raises:
        InvalidArgumentException: a number does not fit its field, or the body is not bytes, or larger than any value.
    """
    check_integer(code, "code", 0, 0xFFFF)
    check_integer(datatype, "datatype", 0, 0xFF)
    if not isinstance(body, bytes) or len(body) > VALUE_SIZE_MAX:
        raise errors.InvalidArgumentException(f"body must be bytes, at most {VALUE_SIZE_MAX} of them", parameter="body")
    return AnswerStatus(code, body, datatype)


def temporary_failure() -> Fault:
    """Answer TEMPORARY_FAILURE instead of applying the command.

    Finds a client that does not back off, or never gives up.
    """
    return AnswerStatus(Status.TEMPORARY_FAILURE)


def locked() -> Fault:
    """Answer LOCKED instead of applying the command.

    Finds a client that treats a lock as an error of the caller, or a failed unlock as a lock.
    """
    return AnswerStatus(Status.LOCKED)


def not_my_vbucket(with_config: bool = True) -> Fault:
    """Answer NOT_MY_VBUCKET instead of applying the command, with the node's cluster config unless told otherwise.

    Finds a client that surfaces it, does not look into the body, or needs one.

    Raises:
        InvalidArgumentException: ``with_config`` is neither True nor False.
    """
    return AnswerNotMyVbucket(check_flag(with_config, "with_config"))


def hang_up() -> Fault:
    """Close the connection instead of applying the command. Naming a bootstrap opcode makes the bootstrap fail there.

    Finds a client that does not reconnect, or re-sends a write since nobody applied it: it cannot know.
    """
    return HangUpBeforeApplying()


def hang_up_after_applying() -> Fault:
    """Apply the command and close the connection without an answer.

    Finds a client that re-sends a write whose connection was lost: the second time it is applied twice.
    """
    return HangUpAfterApplying()


def hang_up_mid_reply(*, bytes_sent: int = 12) -> Fault:
    """Apply the command, send the first ``bytes_sent`` bytes of the reply (never the whole of it) and close.

    Finds a client that keeps half a frame across a reconnect, or counts it as an answer.

    Raises:
        InvalidArgumentException: ``bytes_sent`` is negative.
    """
    return HangUpMidReply(check_integer(bytes_sent, "bytes_sent", 0, UINT32_MAX))


def garble() -> Fault:
    """Apply the command and invert every bit of the reply; the connection stays.

    Finds a client that raises, hangs or goes on reading, instead of closing with a reason.
    """
    return Garble()


def wrong_length(*, announced: int = UINT32_MAX) -> Fault:
    """Apply the command and send its reply with a body length of ``announced`` bytes in the header.

    Finds a client that allocates, or waits for, whatever a peer announces.

    Raises:
        InvalidArgumentException: ``announced`` has more than 32 bits.
    """
    return WrongLength(check_integer(announced, "announced", 0, UINT32_MAX))


def refuse_connection() -> Fault:
    """Refuse a connection; each ``FakeNode.accepts`` is one attempt. It goes with the opcode None only.

    Finds a client that reconnects without backing off, or fails operations that have time left.
    """
    return RefuseConnection()
