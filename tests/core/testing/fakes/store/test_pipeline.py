"""Execution order of the commands of one connection of a fake node."""

from __future__ import annotations

from collections.abc import Sequence

from tests.core.testing.node_client import ready_client
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.faults import delay
from triclinium_core.testing.fakes.store.pipeline import REORDERABLE_OPCODES, Pipeline


def test_other_commands_run_in_order() -> None:
    """Commands of the session, collections and running scans, GET_META, OBSERVE and OBSERVE_SEQNO run in order."""
    assert {
        Opcode.NOOP,
        Opcode.HELLO,
        Opcode.SASL_LIST_MECHS,
        Opcode.SASL_AUTH,
        Opcode.SASL_STEP,
        Opcode.SELECT_BUCKET,
        Opcode.OBSERVE_SEQNO,
        Opcode.OBSERVE,
        Opcode.GET_META,
        Opcode.GET_COLLECTIONS_MANIFEST,
        Opcode.GET_COLLECTION_ID,
        Opcode.RANGE_SCAN_CONTINUE,
        Opcode.RANGE_SCAN_CANCEL,
        Opcode.GET_ERROR_MAP,
    } == set(Opcode) - REORDERABLE_OPCODES


@rows(
    ("commands", "expected"),
    [
        # Each command: time, delay, whether it may be reordered.
        ([(0, 2, True), (0, 1, True), (0, 0, True)], [2, 1, 0]),
        ([(0, 2, True), (0, 1, True), (0, 0, False)], [2, 1, 2]),
        ([(0, 2, False), (0, 1, False), (0, 0, False)], [2, 2, 2]),
        ([(0, 2, True), (0, 0, False), (0, 0, True), (0, 3, True)], [2, 2, 2, 3]),
        ([(0, 2, False), (1, 0, True), (3, 0, True)], [2, 2, 3]),
    ],
)
def test_replies_are_due_in_the_execution_order(
    commands: Sequence[tuple[float, float, bool]], expected: Sequence[float]
) -> None:
    """A command in order waits for all earlier ones, and later ones wait for it; others do not wait for each other."""
    pipeline = Pipeline()

    assert expected == [pipeline.complete(now, delay, 0, may_reorder=may) for now, delay, may in commands]


def test_slowness_delays_replies_without_commands() -> None:
    """A reply in transit is due later, and its command is complete."""
    pipeline = Pipeline()

    assert 3.0 == pipeline.complete(0, 1, 2, may_reorder=True)
    assert [True, False] == [pipeline.is_shared(now) for now in (0.5, 1)]


@rows(
    ("commands", "expected"),
    [
        ([], False),
        ([(0, 0, True)], False),
        ([(0, 2, True)], True),
        ([(0, 1, True)], False),
        ([(0, 2, True), (0, 1, True)], True),
        ([(0, 2, False)], False),
        ([(0, 2, True), (0, 0, True)], True),
        ([(0, 2, True), (0, 0, False)], False),
        ([(0, 2, True), (0, 0, False), (0, 0, True)], False),
    ],
)
def test_place_is_shared_behind_reorderable_commands(
    commands: Sequence[tuple[float, float, bool]], expected: bool
) -> None:
    """A command shares the pipeline only with commands in flight that may be reordered and precede none in order."""
    pipeline = Pipeline()
    for now, seconds, may_reorder in commands:
        pipeline.complete(now, seconds, 0, may_reorder=may_reorder)

    assert expected is pipeline.is_shared(1)


@rows(
    ("held_may_reorder", "next_may_reorder", "is_admitted", "is_shared"),
    [(True, True, True, False), (True, False, False, True), (False, True, False, False), (False, False, False, False)],
)
def test_held_commands_block_commands_in_order(
    held_may_reorder: bool, next_may_reorder: bool, is_admitted: bool, is_shared: bool
) -> None:
    """Only commands that may be reordered overtake a durable write, and none overtakes one in order."""
    pipeline = Pipeline()
    pipeline.hold(may_reorder=held_may_reorder)
    admitted = pipeline.admits(may_reorder=next_may_reorder)
    holds_up = pipeline.is_held_up(0)
    pipeline.release()
    pipeline.complete(0, 0, 0, may_reorder=held_may_reorder)
    found = admitted, pipeline.is_shared(0), pipeline.admits(may_reorder=next_may_reorder)
    pipeline.complete(0, 0, 0, may_reorder=False)

    assert (is_admitted, is_shared, True) == found
    assert (not is_admitted, not is_admitted) == (holds_up, pipeline.is_held_up(0))
    assert not pipeline.is_shared(0)
    pipeline.complete(1, 0, 0, may_reorder=False)
    assert not pipeline.is_held_up(1)


@rows(
    ("commands", "expected"),
    [
        ([(0, 3, True)], [False, False, False]),
        ([(0, 0, False)], [False, False, False]),
        ([(0, 3, True), (0, 0, False)], [True, True, False]),
        ([(0, 3, False)], [True, True, False]),
    ],
)
def test_commands_are_held_up_until_the_last(
    commands: Sequence[tuple[float, float, bool]], expected: Sequence[bool]
) -> None:
    """Commands count as held up through the time at which a delayed command in order is complete."""
    pipeline = Pipeline()
    for now, seconds, may_reorder in commands:
        pipeline.complete(now, seconds, 0, may_reorder=may_reorder)

    assert expected == [pipeline.is_held_up(now) for now in (0, 3, 4)]


def test_barrier_makes_a_command_wait() -> None:
    """A read with the barrier bit waits for a delayed read, and a later one for it; malformed extras are refused."""
    client = ready_client()
    client.node.faults.next(Opcode.GET, delay(1.0))
    barrier = encode_framing_extras({RequestFrameInfo.BARRIER: b""})
    read = [client.encode_of(Opcode.GET, "ada", framing_extras=extras) for extras in (b"", barrier, b"", b"\x0f")]
    early = [reply.opaque - client.opaque for reply in client.send(b"".join(read[:3]))]
    late = [reply.opaque - client.opaque for reply in client.wait(1.0)]

    client.node.faults.next(Opcode.GET, delay(1.0))
    refused = client.send(read[0] + read[3])

    assert ([], [-3, -2, -1]) == (early, late)
    assert [Status.INVALID_ARGUMENTS] == [reply.status for reply in refused]
