"""Durable writes of a fake node, whose replies wait until the writes are settled.

Source: kv_engine docs/BinaryProtocol.md, "ID:1 - Durability Requirement"; its ep engine for keys with a pending write.
"""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer, CommandRefused
from triclinium_core.testing.fakes.commands.index import CHANGING_OPCODES
from triclinium_core.testing.fakes.commands.read_request import Command, Needs, Request
from triclinium_core.testing.fakes.faults import FaultAfterApplying
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState
from triclinium_core.testing.fakes.store.sync_writes import COPIES_MAX, SyncWrite, majority_of


@dataclass(frozen=True, slots=True)
class HeldCommand:
    """A command whose reply has to wait until its durable write is settled."""

    connection: ClientConnection
    frame: Frame
    fault: FaultAfterApplying | None
    answer: CommandAnswer
    """Reply if the write succeeds."""
    write: SyncWrite
    came_at: float

    def settled(self) -> CommandAnswer:
        """Return the reply; raise CommandRefused if the write failed."""
        if self.write.outcome is not Status.SUCCESS:
            raise CommandRefused(
                Status.SYNC_WRITE_AMBIGUOUS,
                "too few copies received the write in time, or another node took over the vbucket",
            )
        return self.answer


def carry_out(
    command: Command, node: NodeState, connection: ClientConnection, request: Request
) -> tuple[CommandAnswer, SyncWrite | None]:
    """Return the reply of a command, and the durable write that the reply has to wait for; None if it need not wait."""
    sync_writes = node.cluster.sync_writes
    if command.needs is Needs.DOCUMENT and not request.reads_replica:
        to_write = command.opcode in CHANGING_OPCODES
        sync_writes.check_free(request.address, to_write=to_write)
    if request.durable_within is None:
        return command.handler(node, connection, request), None
    _check_possible(node, request)
    with node.documents.hiding() as written:
        answer = command.handler(node, connection, request)
    if not written:
        return answer, None
    due = node.documents.now + request.durable_within
    write = SyncWrite(request.address, written[-1], active=node.index, due=due)
    sync_writes.add(write)
    node.cluster.review_sync_writes()
    return answer, None if write.outcome is Status.SUCCESS else write


def _check_possible(node: NodeState, request: Request) -> None:
    known, vbucket = node.cluster.map, request.address.vbucket
    if known.owners[vbucket] != node.index:
        raise CommandRefused(Status.DURABILITY_IMPOSSIBLE, "no replica follows this node, because its map is outdated")
    chain = known.chain(vbucket)
    copies = sum(each != NO_NODE for each in chain)
    if copies < majority_of(chain) or len(chain) > COPIES_MAX:
        raise CommandRefused(
            Status.DURABILITY_IMPOSSIBLE,
            f"the vbucket has {copies} of {len(chain)} copies; a durable write needs a majority of at most 3 copies",
        )
