"""Defects of clusters, such as false replies of nodes, which the command of the simulation finds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Unpack

import pytest

from triclinium_core.event_tape.replay import replay
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.testing.fakes.answers import CommandAnswer
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.cluster.outbox import Delivery
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.fault_conditions import StartConditions
from triclinium_core.testing.fakes.faults import FaultAfterApplying
from triclinium_core.testing.fakes.store.state import ClientConnection
from triclinium_core.testing.simulation.history import BUCKET, COLLECTION_IDS, COUNTERS, TEXTS
from triclinium_core.testing.simulation.simulation_command import KeepTapes, main

SEEDS = 50
"""Number of seeds within which the command finds each defect."""
SELDOM = 20
"""Number of commands per false reply of a node."""
Struck = FaultAfterApplying | None

pytestmark = pytest.mark.history

RELATIVE = (Opcode.APPEND, Opcode.PREPEND, Opcode.INCREMENT, Opcode.DECREMENT)


def play(make_nodes: type[FakeNodes], *arguments: str, **options: Any) -> tuple[int, str]:
    """Run the command, and return its exit status and its output."""
    printed: list[str] = []
    status = main(arguments, clock=lambda: 0.0, write=printed.append, make_nodes=make_nodes, **options)
    return status, "\n".join(printed)


class SeldomLiar(FakeNode):
    """Node with a defect that affects some of its commands."""

    commands = 0

    def lies(self, frame: Frame, opcodes: Collection[int]) -> bool:
        """Return whether the defect affects this command."""
        self.commands += frame.opcode in opcodes
        return frame.opcode in opcodes and self.commands % SELDOM == 0


class Twice(SeldomLiar):
    """A node that applies each append, prepend or count without a CAS twice."""

    def _carry_out(self, connection: ClientConnection, frame: Frame, fault: Struck) -> CommandAnswer | None:
        answer = super()._carry_out(connection, frame, fault)
        return answer if frame.cas or frame.opcode not in RELATIVE else super()._carry_out(connection, frame, fault)


class Forgetful(SeldomLiar):
    """A node that sometimes acknowledges a write without storing it."""

    def _carry_out(self, connection: ClientConnection, frame: Frame, fault: Struck) -> CommandAnswer | None:
        if self.lies(frame, [Opcode.SET]):
            before, changes = self.documents.snapshot(), self.documents.changes
            answer = super()._carry_out(connection, frame, fault)
            self.documents.roll_back(before, [frame.status])
            self.documents.changes = changes
            return answer
        return super()._carry_out(connection, frame, fault)


class Stale(SeldomLiar):
    """A node that sometimes answers a read with the first result for its key."""

    def _carry_out(self, connection: ClientConnection, frame: Frame, fault: Struck) -> CommandAnswer | None:
        answer = super()._carry_out(connection, frame, fault)
        if frame.opcode == Opcode.GET:
            remembered: CommandAnswer | None = self.__dict__.setdefault("remembered", {}).setdefault(frame.key, answer)
            return remembered if self.lies(frame, [Opcode.GET]) else answer
        return answer


class Silent(SeldomLiar):
    """A node that sometimes does not answer, without a fault."""

    def _take_up(self, connection: ClientConnection, frame: Frame) -> Delivery | None:
        return Delivery() if self.lies(frame, DATA_OPCODES) else super()._take_up(connection, frame)


class LosesAtFailover(FakeNodes):
    """A cluster that loses a node's documents in a failover, even acknowledged ones."""

    def fail_over(self, index: int, **when: Unpack[StartConditions]) -> None:
        """Remove the node's documents, then fail the node over."""
        for keyspace, key in [*TEXTS, *COUNTERS]:
            collection_id = COLLECTION_IDS[keyspace]
            if self.owner_of(key) == index and self.documents.get(BUCKET, key, collection_id=collection_id):
                self.documents.remove(BUCKET, key, collection_id=collection_id)
        super().fail_over(index, **when)


def cluster_of(liar: type[FakeNode]) -> type[FakeNodes]:
    """Return a cluster class whose nodes have this defect."""
    return type(f"{liar.__name__}Nodes", (FakeNodes,), {"node_type": liar})


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (LosesAtFailover, "found no document|certainly replaced"),
        (cluster_of(Forgetful), "the node has not applied it"),
        (cluster_of(Twice), "a write twice|a count twice"),
        (cluster_of(Stale), "certainly replaced|certainly applied|CAS mismatch|with a CAS that|: CAS "),
        (cluster_of(Silent), " failed .*: (Una|A)mbiguousTimeoutException"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_lie_is_found(cluster: type[FakeNodes], words: str) -> None:
    """The command finds each defect soon, and prints the broken law and the command for a replay."""
    status, printed = play(cluster, "--seeds", str(SEEDS))
    found = re.search(r"seed (\d+) breaks a law:\n  (.*)\n", printed)

    assert 1 == status
    assert found is not None
    assert re.search(words, found[2])
    assert printed.endswith(f"python -m triclinium_core.testing.simulation --seed {found[1]}")


def test_lie_can_be_replayed() -> None:
    """After a broken law, tapes of the clients are kept and replay; a run of the single seed prints all of its steps."""
    kept: list[bytes] = []

    def keep_tapes(folder: str | None) -> KeepTapes:
        assert "there" == folder

        def keep(tapes: Sequence[bytes]) -> Sequence[str]:
            kept.extend(tapes)
            return [f"{folder}/{number}" for number, _ in enumerate(tapes)]

        return keep

    twice = cluster_of(Twice)
    _, many = play(twice, "--seeds", str(SEEDS), "--tapes", "there", keep_tapes=keep_tapes)
    found = re.search(r"seed (\d+) breaks a law:\n  (.*)\n", many)
    assert found is not None
    status, one = play(twice, "--seed", found[1])
    results = [replay([tape]) for tape in kept]

    assert [f"  triclinium replay there/{number}" for number, _ in enumerate(kept)] == many.splitlines()[-len(kept) :]
    assert {None} == {result.difference for result in results}
    assert sum(result.calls for result in results) > 10
    assert 1 == status
    assert found[0] in one
    assert len(one) > len(many)
    assert ":\n     0.000  " in one
