"""Two fuzzing targets, which change valid bytes, cut them anywhere, and check the invariants.

``play_node`` is one connection with decoder and bootstrap: it never raises, returns only documented events, and loses
no request. ``play`` is the complete client: ``handle`` never raises; it returns only documented actions; every
operation is completed exactly once, by its deadline at the latest, with a result or an exception of the library;
nothing is sent on a closed stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from tests.fuzz.scenes import DEADLINE, NODES, OPERATIONS, SCENES, FuzzScene
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import Action, CompleteOperation, Event, FailOperation
from triclinium_core.runtime.kv.connection.connection_events import Answered, BecameUnusable, News
from triclinium_core.runtime.kv.connection.in_flight import is_last
from triclinium_core.runtime.kv.connection.states import ConnectionState

ACTIONS = get_args(Action)
NEWS = get_args(News)
STEPS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to the bytes: ``replacement`` replaces up to ``length`` bytes from ``position``, modulo the size."""

    position: int
    length: int
    replacement: bytes


@dataclass(frozen=True, slots=True)
class Attack:
    """One input of a target: the changes to the valid bytes, and the positions of the cuts."""

    scene: int
    edits: tuple[Edit, ...]
    tail: bytes
    """Bytes after the edited bytes."""
    cuts: tuple[int, ...]
    """Positions at which the bytes are cut into pieces; modulo their size."""

    def data(self, honest: bytes) -> bytes:
        """Return the changed bytes."""
        bent = bytearray(honest)
        for edit in self.edits:
            start = edit.position % (len(bent) + 1)
            bent[start : start + edit.length] = edit.replacement
        return bytes(bent) + self.tail

    def pieces(self, honest: bytes) -> Iterable[bytes]:
        """Return the changed bytes in pieces."""
        data = self.data(honest)
        bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in self.cuts)})
        return (data[start:end] for start, end in pairwise(bounds))


class _Witness:
    """Checker that feeds a client and examines all of its actions."""

    def __init__(self, scene: FuzzScene) -> None:
        self.machine = scene.machine
        self.settled: Counter[int] = Counter()
        self.ordered: dict[neutral.StreamId, int] = {}
        """Number of bytes sent on each open stream."""
        self.ended: list[neutral.StreamLost] = []
        """Lost streams whose event the client has not received yet."""
        self._look_at(scene.ordered)

    def feed(self, event: Event, now: float) -> None:
        self._look_at(self.machine.handle(event, now))
        while self.ended:
            self._look_at(self.machine.handle(self.ended.pop(), now))

    def _look_at(self, actions: Iterable[Action]) -> None:
        for action in actions:
            assert isinstance(action, ACTIONS), action
            match action:
                case neutral.OpenStream(stream):
                    if stream > 2:
                        self.ended.append(neutral.StreamLost(stream, neutral.LossCause.REFUSED))
                    else:
                        self.ordered[stream] = 0
                case neutral.SendBytes(stream, data):
                    assert stream in self.ordered, f"{action} after the stream was closed"
                    self.ordered[stream] += len(data)
                case neutral.CloseStream(stream):
                    handed_over = self.ordered.pop(stream)
                    self.ended.append(
                        neutral.StreamLost(stream, neutral.LossCause.CLOSED_BY_US, handed_over=handed_over)
                    )
                case CompleteOperation(token):
                    self.settled[token] += 1
                case FailOperation(token, error):
                    self.settled[token] += 1
                    assert isinstance(error, errors.CouchbaseException), error
                    assert not isinstance(error, errors.InternalError), error
                    assert str(error).isprintable(), "an error is one line"
                case _:
                    pass


def play(attack: Attack) -> None:
    """Play one attack to its end, and check the invariants.

    Raises:
        AssertionError: an invariant is broken.
    """
    scene = SCENES[attack.scene % len(SCENES)]()
    witness = _Witness(scene)
    for piece in attack.pieces(scene.honest):
        witness.feed(neutral.BytesReceived(scene.stream, piece), 0.0)
    for _ in range(STEPS_MAX):
        if scene.machine.wakeup > DEADLINE:
            break
        witness.feed(neutral.TimePassed(), max(0.0, scene.machine.wakeup))
    else:
        raise AssertionError(f"the client is still busy after {STEPS_MAX} steps")
    witness.feed(neutral.TimePassed(), DEADLINE)

    assert dict.fromkeys(range(1, len(OPERATIONS) + 1), 1) == dict(witness.settled)
    assert 0 == scene.machine.statistics().open_operations


def play_node(attack: Attack) -> None:
    """Play one attack against a single connection, and check its invariants.

    Raises:
        AssertionError: an invariant is broken.
    """
    node, honest = NODES[attack.scene % len(NODES)]()
    sent = len(node.in_flight)
    answered = 0
    for piece in attack.pieces(honest):
        news = node.bytes_received(piece, 0.0)
        for item in news:
            assert isinstance(item, NEWS), item
        answered += sum(isinstance(item, Answered) and is_last(item.request.opcode, item.frame.status) for item in news)
        if news and isinstance(news[-1], BecameUnusable):
            assert news[-1].text.isprintable(), "a reason is one line"
            break

    assert sent == answered + len(list(node.lost("the end")))
    assert ConnectionState.LOST is node.state
