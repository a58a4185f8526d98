"""Client machine: the contract of its events and actions, and errors for faulty events."""

from __future__ import annotations

import math
import random
from typing import Any, cast

import pytest

from tests.core.client.client_cases import ONE, TWO, Bare
from tests.core.runtime.kv import simulated
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase, neutral
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.options import ClientOptions
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing.fakes import faults

# The contract.


def test_wakeup() -> None:
    """Wakeup is -inf before the first TimePassed event, and then the time of the earliest timer."""
    client = simulated.machine()
    client.handle(couchbase.OperationSubmitted(neutral.Token(1), simulated.get()), 98.0)

    assert -math.inf == client.wakeup

    client.handle(neutral.TimePassed(), 100.0)

    assert 100.5 == client.wakeup

    client.handle(couchbase.OperationAbandoned(neutral.Token(1)), 100.0)

    assert 108.0 == client.wakeup


@pytest.mark.parametrize(
    ("rest", "orders"),
    [
        (b"", [couchbase.FailOperation, neutral.SendBytes]),
        (b"nonsense", [couchbase.FailOperation, neutral.CloseStream, neutral.ReportConnection, couchbase.ReportRetry]),
    ],
)
def test_sends_are_the_last_actions(rest: bytes, orders: list[type[couchbase.Action]]) -> None:
    """The actions complete operations before they send bytes or close the stream."""
    simulation = simulated.ready()
    first, _ = simulation.submit_in_flight(simulated.get("a"))
    request = simulation.requests[TWO][-1]
    simulation.submit(simulated.get("b", simulated.HOTELS))
    simulation.swallow(TWO)
    question = simulation.requests[TWO][-1]
    del simulation.actions[:]
    simulation.inject(
        encode_response(Opcode.GET_COLLECTION_ID, opaque=question.opaque, extras=bytes(8) + b"\0\0\0\x08")
        + encode_response(Opcode.GET, opaque=request.opaque, status=1)
        + rest
    )

    assert orders == [type(each) for each in simulation.actions]
    assert first == cast("couchbase.FailOperation", simulation.actions[0]).token


# Invalid events, times and arguments.


def mistake(
    simulation: simulated.Recorded, event: Any, error: type[Exception] | tuple[type[Exception], ...]
) -> Exception:
    """Check that an event raises an error and changes nothing, and return the error."""
    before = simulation.machine.statistics()
    with pytest.raises(error) as caught:
        simulation.machine.handle(event, simulation.now)
    assert before == simulation.machine.statistics()
    assert [] == list(simulation.machine.handle(neutral.TimePassed(), simulation.now))
    return caught.value


def submitted(operation: Any, *options: Any, token: Any = 9) -> couchbase.OperationSubmitted:
    """Return a submission, which may be invalid."""
    return couchbase.OperationSubmitted(token, operation, *options)


NO_BUCKET = submitted(document_operations.Get(document_operations.Keyspace(None), "k"))
"""Submission of a document operation without a bucket, which is invalid."""


def test_token_of_an_open_operation() -> None:
    """A submission with the token of an open operation is rejected and changes nothing."""
    simulation = simulated.ready()
    token, _ = simulation.submit_in_flight(simulated.get())

    assert str(token) in str(mistake(simulation, submitted(simulated.get(), token=token), InvalidEvent))


@rows(
    ("parameter", "event"),
    [
        ("bucket", NO_BUCKET),
        ("operation", submitted(document_operations.DocumentOperation(simulated.TRAVEL, "k"))),
        ("operation", submitted(document_operations.Store(simulated.TRAVEL, "k", b"", 0))),
        ("operation", submitted(None)),
        ("operation", submitted("get")),
        ("retry_strategy", submitted(simulated.get(), "best effort")),
        ("retry_strategy", submitted(simulated.get(), BestEffortRetryStrategy)),
        ("client_context", submitted(simulated.get(), None, ["robot"])),
        *(("token", submitted(simulated.get(), token=token)) for token in ("tok", None, 1.5)),
        ("data", neutral.BytesReceived(ONE, cast("bytes", "text"))),
        *(("event", event) for event in ("time passed", None, neutral.TimePassed)),
    ],
)
def test_wrong_event(parameter: str, event: Any) -> None:
    """An invalid event raises an error that names the parameter, and changes nothing."""
    error = mistake(simulated.ready(), event, errors.InvalidArgumentException)

    assert parameter == cast("errors.InvalidArgumentException", error).parameter
    assert parameter in str(error)


@rows(
    "wrong",
    [NO_BUCKET, submitted(simulated.get(), "best effort"), submitted(simulated.get(), token=8), None, simulated.get()],
)
def test_one_mistake_of_several(wrong: Any) -> None:
    """If one submission in an event is invalid, none in the event takes effect; otherwise all start in order."""
    simulation = simulated.ready()
    is_open, _ = simulation.submit_in_flight(simulated.get())
    wrong = wrong or submitted(simulated.get(), token=is_open)
    first, last = (submitted(simulated.get(str(token)), token=token) for token in (8, 10))
    mistake(
        simulation, couchbase.OperationsSubmitted([first, wrong, last]), (InvalidEvent, errors.InvalidArgumentException)
    )
    actions = simulation.feed(couchbase.OperationsSubmitted([first, last]))

    assert [neutral.SendBytes] == [type(action) for action in actions]
    assert [b"\x008", b"\x0010"] == [request.key for request in simulation.requests[TWO][-2:]]


@pytest.mark.parametrize(
    "now",
    [None, "0", True, math.nan, math.inf, -math.inf, 10**5000],
    ids=lambda now: str(now)[:9] if now != 10**5000 else "huge",
)
def test_wrong_time(now: Any) -> None:
    """An invalid time is rejected and changes nothing."""
    fresh = simulated.machine()
    refused("now", fresh.handle, neutral.TimePassed(), now)

    assert -math.inf == fresh.wakeup
    assert [neutral.OpenStream(ONE, "127.0.0.1", 11210, False)] == list(fresh.handle(neutral.TimePassed(), 0.0))


def test_time_that_goes_back() -> None:
    """An event may have the time of the previous event, but not an earlier one."""
    fresh = simulated.machine()
    fresh.handle(neutral.TimePassed(), 5.0)
    fresh.handle(neutral.TimePassed(), 5.0)
    with pytest.raises(errors.InvalidArgumentException, match="now=4.999"):
        fresh.handle(neutral.TimePassed(), 4.999)


@pytest.mark.parametrize(
    ("parameter", "options", "rng"),
    [("options", None, random.Random(1)), ("rng", ClientOptions(connection_string=simulated.ADDRESS), None)],
)
def test_wrong_parts(parameter: str, options: Any, rng: Any) -> None:
    """An invalid argument of the constructor raises an error that names the argument."""
    refused(parameter, ClientMachine, options, rng=rng)


# Errors and random numbers.


def test_local_addresses_in_errors() -> None:
    """The context of an error has the local address of the stream, even after a retry."""
    bare = Bare(open_stream=False)
    bare.feed(neutral.StreamOpened(ONE, "", local_address="10.0.0.9:40000"))
    bare.submit(1, simulated.get())
    bare.answer(status=Status.KEY_NOT_FOUND)
    bare.submit(2, simulated.get())
    bare.answer(status=Status.TEMPORARY_FAILURE)
    bare.feed(neutral.TimePassed(), 0.001)
    bare.answer(status=Status.KEY_NOT_FOUND)

    assert [("10.0.0.9:40000", "127.0.0.1:11211")] * 2 == [
        (action.error.context.last_dispatched_from, action.error.context.last_dispatched_to)
        for action in bare.actions
        if isinstance(action, couchbase.FailOperation)
    ]


def test_0x81_to_hello_fails_at_once() -> None:
    """If the node responds to HELLO with status 0x81, all operations fail immediately even under best effort."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.HELLO, faults.status(Status.UNKNOWN_COMMAND))
    tokens = [
        simulation.submit(simulated.get("a"), retry_strategy=BestEffortRetryStrategy()),
        simulation.submit(simulated.upsert("b", simulated.HOTELS)),
    ]
    simulation.flow()
    later = simulation.finish(simulated.get("c"))

    for token in (*tokens, later):
        assert "memcached://" in str(simulation.error(errors.UnsupportedOperationException, token))


def test_seeded_randomness_is_the_only_one() -> None:
    """Two clients with the same seed open streams at the same times; a client with another seed does not."""

    def play(seed: int) -> list[float]:
        simulation = simulated.Recorded(rng=random.Random(seed))
        simulation.node.faults.next(None, faults.refuse_connection(), times=5)
        simulation.flow()
        simulation.live(2.0)
        return [at for at, _ in simulation.opened_at]

    assert play(7) == play(7) != play(8)
