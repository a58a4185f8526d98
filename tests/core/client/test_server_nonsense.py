"""Arbitrary bytes and faults of a server: no event raises, and every operation completes by its deadline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

from hypothesis import given, strategies as st

from tests.core.client.client_cases import TWO
from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.connection.peer import CONFIG, ERROR_MAP
from tests.core.runtime.kv.phases import PHASES, Make, read, write
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy, RetryAction
from triclinium_core.testing.fakes import faults

ACTIONS = get_args(couchbase.Action)


STATUSES = [0, 1, 7, 9, 0x1F, 0x20, 0x21, 0x24, 0x81, 0x86, 0x88, 0x8C, 0xA6, 0xCD, 0x7FF0, 0xFFFF]


@st.composite
def server_frames(draw: st.DrawFn) -> bytes:
    """Return a well-formed frame with arbitrary content."""
    frame = encode_response(
        draw(st.sampled_from([*Opcode])),
        opaque=draw(st.integers(0, 9)),
        status=draw(st.sampled_from(STATUSES)),
        cas=draw(st.sampled_from([0, 5, 2**64 - 1])),
        datatype=draw(st.sampled_from([0, 1, 2, 4, 7])),
        extras=draw(st.binary(max_size=24) | st.sampled_from([bytes(4), bytes(12), bytes(16), bytes(21)])),
        value=draw(st.binary(max_size=12) | st.sampled_from([CONFIG.encode(), ERROR_MAP.encode(), bytes(8), b"{}"])),
    )
    return bytes([draw(st.sampled_from([0x81, 0x81, 0x81, 0x18, 0x82]))]) + frame[1:]


pieces = st.lists(server_frames() | st.binary(max_size=40), max_size=8).map(b"".join)
cuts = st.lists(st.integers(0, 400), max_size=6)
makes: Sequence[Make] = (read, write)


def settles_everything(simulation: simulated.Recorded) -> None:
    """Let the deadlines pass, and check that each operation completed once and that all actions are documented.

    The client must then connect again and serve an operation.
    """
    simulation.node.faults.clear()
    simulation.live(simulated.TIMEOUT)
    assert 0 == simulation.open_operations
    assert set(range(1, simulation._last_token + 1)) == set(simulation.settled_at)
    assert all(isinstance(action, ACTIONS) for action in simulation.actions)
    assert all(isinstance(error, errors.CouchbaseException) for error in simulation.errors.values())
    for stream in [*simulation.links]:
        # The node may have sent a partial frame, which would swallow its next response on this stream.
        simulation.lose(stream)
    simulation.live(11.0)
    assert "READY" == simulation.connection().state
    simulation.result(simulated.upsert("afterwards"), retry_strategy=BestEffortRetryStrategy())


def deliver(simulation: simulated.Recorded, stream: neutral.StreamId, data: bytes, cut: list[int]) -> None:
    """Deliver ``data`` to the client in pieces, while the stream is open."""
    bounds = sorted({0, len(data), *(each % (len(data) + 1) for each in cut)})
    for start, end in pairwise(bounds):
        if stream in simulation.links:
            simulation.inject(data[start:end], stream)


@given(data=pieces, cut=cuts, answered=st.integers(0, 4_000))
def test_nonsense_to_a_bootstrapping_client(data: bytes, cut: list[int], answered: int) -> None:
    """During a bootstrap, arbitrary bytes raise nothing, and every operation completes by its deadline."""
    simulation = simulated.Recorded()
    simulation.flow()
    for make in makes:
        simulation.submit(make(simulated.TRAVEL))
        simulation.submit(make(simulated.HOTELS))
    simulation.open(TWO)
    simulation.hand_over(TWO)
    simulation.deliver(TWO, answered)
    if TWO in simulation.links:
        simulation.swallow(TWO)
    deliver(simulation, TWO, data, cut)

    settles_everything(simulation)


@given(data=pieces, cut=cuts)
def test_nonsense_to_a_ready_client(data: bytes, cut: list[int]) -> None:
    """While reads, writes and id requests are in flight, arbitrary bytes raise nothing and all operations complete."""
    simulation = simulated.ready()
    for make in makes:
        simulation.submit(make(simulated.TRAVEL))
        simulation.submit(make(simulated.HOTELS))
    simulation.submit(document_operations.Exists(simulated.TRAVEL, "k"))
    simulation.submit(document_operations.GetAndLock(simulated.TRAVEL, "k"))
    simulation.swallow(TWO)
    deliver(simulation, TWO, data, cut)

    settles_everything(simulation)


@given(data=pieces, phase=st.sampled_from([*PHASES]), make=st.sampled_from(makes), cut=cuts)
def test_nonsense_in_every_phase(data: bytes, phase: str, make: Make, cut: list[int]) -> None:
    """If arbitrary bytes arrive in any phase of an operation, the operation still completes by its deadline."""
    simulation, token = PHASES[phase](make)
    for stream in [*simulation.links]:
        if simulation.links[stream].outgoing or simulation.requests[stream]:
            deliver(simulation, stream, data, cut)
    for consulted in simulation.consulted:
        if consulted.token not in simulation.settled_at:
            simulation.feed(neutral.StrategyDecided(consulted.token, RetryAction.after(0.001)))
            break
    simulation.node.faults.clear()
    simulation.live(simulated.TIMEOUT)

    assert token in simulation.settled_at
    assert simulated.TIMEOUT >= simulation.settled_at[token]


any_fault = (
    st.builds(faults.status, st.sampled_from(STATUSES), st.binary(max_size=20) | st.just(CONFIG.encode()))
    | st.sampled_from(STATUSES).map(lambda code: faults.delay(code / 100))
    | st.builds(faults.not_my_vbucket, st.booleans())
    | st.just(faults.drop_response())
    | st.just(faults.hang_up())
    | st.just(faults.refuse_connection())
)


@given(st.lists(st.tuples(st.sampled_from([*Opcode]), any_fault), max_size=12))
def test_any_faults(script: list[tuple[Opcode, faults.Fault]]) -> None:
    """If a node has arbitrary faults, all operations complete by their deadlines."""
    simulation = simulated.Recorded()
    for opcode, fault in script:
        simulation.node.faults.next(None if fault == faults.refuse_connection() else opcode, fault)
    submitted: dict[neutral.Token, float] = {}
    for make in makes:
        for keyspace in (simulated.TRAVEL, simulated.HOTELS):
            for _ in range(2):
                token = simulation.submit(make(keyspace))
                submitted[token] = simulation.now
                simulation.live(0.25)
    simulation.live(simulated.TIMEOUT)

    assert 0 == simulation.open_operations
    for token, at in submitted.items():
        assert at + simulated.TIMEOUT + 1e-9 >= simulation.settled_at[token]
