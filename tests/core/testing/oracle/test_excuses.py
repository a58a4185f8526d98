"""Excuses: what excuses a client, and what does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.core.testing.asked import at
from tests.rows import rows
from triclinium_core.errors import DocumentNotFoundException
from triclinium_core.kv.operation.requests import Get, Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request, encode_response
from triclinium_core.kv.wire.frame_buffer import SERVER_ACCEPTS, FrameBuffer
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.error_map import ERROR_MAP
from triclinium_core.testing.fakes.faults import (
    AnswerNotMyVbucket,
    AnswerStatus,
    CommandFault,
    Delay,
    DropResponse,
    Garble,
    HangUpAfterApplying,
    HangUpBeforeApplying,
    HangUpMidReply,
    WrongLength,
    status,
)
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.oracle.excuses import (
    HARMLESS_STATUSES,
    INVALIDATING_STATUSES,
    RETRIED_BY_MAP,
    RETRIED_STATUSES,
    SURVIVABLE_DELAY,
    Excuses,
    frame_size,
    is_survivable,
)
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.simulation import Simulation

DEFAULT = Keyspace("default")
STREAM, OTHER_STREAM = 1, 2
REPLY = encode_response(Opcode.GET, opaque=1, value=b"<1>")

HARMLESS: tuple[CommandFault, ...] = (
    Delay(2.5),
    DropResponse(),
    AnswerNotMyVbucket(),
    *(AnswerStatus(code) for code in HARMLESS_STATUSES),
)
HARMFUL: tuple[CommandFault, ...] = (
    HangUpBeforeApplying(),
    HangUpAfterApplying(),
    HangUpMidReply(),
    Garble(),
    WrongLength(),
    *(AnswerStatus(code) for code in INVALIDATING_STATUSES),
    AnswerStatus(Status.SUCCESS),
)


def command(fault: CommandFault | None, opcode: int = Opcode.GET) -> LoggedCommand:
    """Return a command on a stream, as the node remembers it."""
    return LoggedCommand(
        connection=STREAM,
        opcode=opcode,
        key=b"ada",
        opaque=1,
        cas=0,
        now=0.0,
        fault=fault,
        status=None,
        applied=False,
        bucket="travel",
        collection_id=0,
        vbucket=0,
    )


def is_suspect(troubles: Excuses, stream: int = STREAM) -> bool:
    """Tell whether the client may close a stream."""
    try:
        troubles.check_end(stream, "because")
    except Violation:
        return False
    return True


def test_without_trouble_there_is_no_excuse() -> None:
    """Nothing went wrong, so nothing may end."""
    troubles = Excuses()

    assert troubles.newest < at(0)
    with pytest.raises(Violation) as caught:
        troubles.check_end(STREAM, "it was Monday")
    assert "stream 1 was ended though nothing was wrong with it: it was Monday" == str(caught.value)


@rows("fault", HARMLESS)
def test_fault_that_leaves_the_stream_as_it_is(fault: CommandFault) -> None:
    """What strikes one command of a caller excuses nothing else."""
    troubles = Excuses()
    troubles.struck(command(fault), at(3))

    assert troubles.newest < at(0)
    assert not is_suspect(troubles)


@pytest.mark.parametrize("fault", HARMFUL, ids=repr)
def test_fault_that_spoils_the_stream(fault: CommandFault) -> None:
    """What breaks a stream, or makes it useless, is noticed by every operation on it; other streams live on."""
    troubles = Excuses()
    troubles.struck(command(fault), at(3))

    assert at(3) == troubles.newest
    assert is_suspect(troubles)
    assert not is_suspect(troubles, OTHER_STREAM)


@pytest.mark.parametrize("opcode", [Opcode.HELLO, Opcode.NOOP, Opcode.GET_COLLECTION_ID, 0x77])
@pytest.mark.parametrize("fault", [DropResponse(), AnswerStatus(Status.TEMPORARY_FAILURE)], ids=repr)
def test_fault_that_strikes_what_is_ours(fault: CommandFault, opcode: int) -> None:
    """A request of the client's own that fails may cost the connection, and whatever waits for it."""
    troubles = Excuses()
    troubles.struck(command(fault, opcode), at(3))

    assert at(3) == troubles.newest
    assert is_suspect(troubles)
    assert not is_suspect(troubles, OTHER_STREAM)


def test_trouble_has_its_place() -> None:
    """What happened at one node is none of another's; what happened to all is everybody's."""
    troubles = Excuses()
    troubles.struck(command(DropResponse(), Opcode.NOOP), at(3), node=1)
    troubles.out_of_order(2, [OTHER_STREAM], at(4))
    troubles.lost(at(2), node=0)

    assert at(4) == troubles.newest
    assert [at(2), at(3), at(4)] == [troubles.newest_at([node]) for node in (0, 1, 2)]
    assert at(3) == troubles.newest_at([0, 1])
    assert troubles.newest_at([3]) < at(0)
    assert is_suspect(troubles, OTHER_STREAM)

    troubles.lost(at(5))

    assert at(5) == troubles.newest_at([3])


def test_withheld() -> None:
    """While time passes and no byte moves, any stream may end; afterwards those whose bytes were held back."""
    troubles = Excuses()
    troubles.withholding(at(3))

    assert at(3) == troubles.newest
    assert is_suspect(troubles)

    troubles.withheld([OTHER_STREAM], at(4))

    assert at(4) == troubles.newest
    assert not is_suspect(troubles)
    assert is_suspect(troubles, OTHER_STREAM)


@pytest.mark.parametrize("before", [b"", REPLY], ids=["first", "second"])
@pytest.mark.parametrize("size", [1, 23, 24, len(REPLY) - 1])
def test_stuck(before: bytes, size: int) -> None:
    """What was delivered ends within a frame, until the rest comes."""
    troubles = Excuses()
    troubles.delivered(STREAM, before + REPLY[:size])

    assert troubles.is_stuck(STREAM)
    assert not troubles.is_stuck(OTHER_STREAM)

    troubles.delivered(STREAM, REPLY[size:])

    assert not troubles.is_stuck(STREAM)
    assert not troubles.is_broken(STREAM)


def test_broken() -> None:
    """What begins no frame is seen at its first byte, behind whole frames or without one."""
    troubles = Excuses()
    troubles.delivered(STREAM, REPLY + REPLY)

    assert not troubles.is_broken(STREAM)

    troubles.delivered(STREAM, REPLY + b"\x7e")
    troubles.delivered(3, bytes(byte ^ 0xFF for byte in REPLY))

    assert troubles.is_broken(STREAM)
    assert troubles.is_broken(3)
    assert not troubles.is_broken(OTHER_STREAM)


SURVIVED: tuple[CommandFault, ...] = (
    AnswerNotMyVbucket(),
    AnswerNotMyVbucket(with_config=False),
    Delay(SURVIVABLE_DELAY),
    *(AnswerStatus(code) for code in RETRIED_STATUSES + RETRIED_BY_MAP),
)


@rows("fault", [*SURVIVED, *HARMLESS, *HARMFUL, Delay(SURVIVABLE_DELAY + 0.001)])
def test_survivable(fault: CommandFault) -> None:
    """Who waits a little, or retries what may be retried, gets an answer; else patience does not help."""
    assert (fault in SURVIVED) == is_survivable(fault, Opcode.GET)


def test_unlocking_what_is_locked() -> None:
    """To an unlock, LOCKED is an answer; what else may be retried still may."""
    assert not is_survivable(AnswerStatus(Status.LOCKED), Opcode.UNLOCK)
    assert is_survivable(AnswerStatus(Status.TEMPORARY_FAILURE), Opcode.UNLOCK)


def test_frame_size() -> None:
    """It counts everything that is on the wire."""
    data = encode_request(Opcode.SET, opaque=1, framing_extras=b"\1\2", extras=b"abc", key=b"key-1", value=b"<1234>")
    (frame,) = FrameBuffer(SERVER_ACCEPTS).receive(data)

    assert len(data) == frame_size(frame) == 24 + 2 + 3 + 5 + 6


@pytest.fixture(scope="module")
def fates() -> Mapping[int, tuple[bool, bool]]:
    """Return, for each status in an answer to a read, whether a client gets over it and whether it leaves its stream."""
    simulation = Simulation(FakeNode(FakeNodeOptions(error_map=ERROR_MAP)))
    found: dict[int, tuple[bool, bool]] = {}
    for code in [*Status, *(row.code for row in ERROR_MAP.rows), 0x7ABC]:
        simulation.submit(Get(DEFAULT, "ada"))
        simulation.run()
        streams = set(simulation.links)
        simulation.node.faults.next(Opcode.GET, status(code))
        token = simulation.submit(Get(DEFAULT, "ada"))
        simulation.run()
        error = simulation.errors.get(token)
        is_survived = isinstance(error, DocumentNotFoundException) and error.context.retry_attempts == 1
        found[code] = is_survived, streams != set(simulation.links)
    return found


def test_statuses_that_are_retried(fates: Mapping[int, tuple[bool, bool]]) -> None:
    """They are those that a client really gets over, but for what a node says that has not the right config."""
    survived = {code for code, (is_survived, _) in fates.items() if is_survived}
    retried = {*RETRIED_STATUSES, *RETRIED_BY_MAP}

    assert set() == retried - survived
    assert {Status.NOT_MY_VBUCKET, Status.CONFIG_ONLY} >= survived - retried


def test_statuses_that_spoil_the_stream(fates: Mapping[int, tuple[bool, bool]]) -> None:
    """They are among those after which a client really connects again; harmless ones are not."""
    spoiling = {code for code, (_, is_spoilt) in fates.items() if is_spoilt}

    assert {Status.NO_BUCKET, Status.AUTH_STALE, Status.NOT_INITIALIZED} == {*INVALIDATING_STATUSES}
    assert {*INVALIDATING_STATUSES} <= spoiling
    assert set() == spoiling & {*HARMLESS_STATUSES}
    assert {*RETRIED_STATUSES, *RETRIED_BY_MAP, Status.NOT_SUPPORTED, Status.INTERNAL_ERROR} < {*HARMLESS_STATUSES}
