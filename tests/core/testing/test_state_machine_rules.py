"""The state machine: each of its rules, played by hand."""

from __future__ import annotations

import pytest

from tests.core.testing.distorted import (
    connected,
    newest,
)
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    DocumentNotFoundException,
    RequestCanceledException,
    TemporaryFailureException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.events import LossCause
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import (
    Fault,
    drop_response,
    garble,
    refuse_connection,
    temporary_failure,
)
from triclinium_core.testing.hypothesis_strategies import Strike
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.state_machine import KVStateMachine

DEFAULT, OTHER = KVStateMachine.keyspaces
ADA = Place(DEFAULT, "ada")
FAR_ADA = Place(OTHER, "ada")


def commands(machine: KVStateMachine, opcode: Opcode) -> list[Fault | None]:
    """Return what struck the commands with this opcode, None for nothing."""
    return [command.fault for command in machine.node.command_log if command.opcode == opcode]


def test_exchanging() -> None:
    """An operation is submitted, and nothing moves, or everything does."""
    machine = connected()
    machine.operate(template=OperationTemplate("upsert", FAR_ADA), retry_strategy="default")
    waiting = [submission.operation.name for submission in machine.model.open], commands(machine, Opcode.SET)
    machine.exchange(template=OperationTemplate("upsert", FAR_ADA), retry_strategy="default")

    assert (["upsert"], []) == waiting
    assert [] == machine.model.open
    assert [None, None] == commands(machine, Opcode.SET)
    assert machine.document(FAR_ADA) is not None


def test_struck_exchange() -> None:
    """A fault strikes the operation, and somebody reads beside it."""
    machine = connected()
    machine.struck_exchange(
        template=OperationTemplate("upsert", FAR_ADA),
        retry_strategy="fail fast",
        fault=temporary_failure(),
        is_for_question=False,
    )

    assert [temporary_failure()] == commands(machine, Opcode.SET)
    assert [None] == commands(machine, Opcode.GET_META) == commands(machine, Opcode.GET_COLLECTION_ID)
    assert TemporaryFailureException in {type(error) for error in machine.simulation.errors.values()}


def test_struck_question() -> None:
    """It strikes the question for the collection instead, where there is one."""
    machine = connected()
    machine.struck_exchange(
        template=OperationTemplate("upsert", FAR_ADA),
        retry_strategy="default",
        fault=drop_response(),
        is_for_question=True,
    )
    machine.struck_exchange(
        template=OperationTemplate("upsert", ADA), retry_strategy="default", fault=drop_response(), is_for_question=True
    )

    assert [drop_response()] == commands(machine, Opcode.GET_COLLECTION_ID)
    assert [drop_response()] == commands(machine, Opcode.SET)


def test_silence() -> None:
    """Everything times out, the breaker opens, and after that the node answers again."""
    machine = connected()
    machine.go_silent(
        members=[
            OperationTemplate("get", ADA),
            OperationTemplate("upsert", ADA),
            OperationTemplate("exists", ADA),
            OperationTemplate("get", ADA),
        ]
    )
    errors = [type(error) for error in machine.simulation.errors.values()]

    assert {UnambiguousTimeoutException, AmbiguousTimeoutException, DocumentNotFoundException} == set(errors)
    assert 2.5 == machine.now
    assert "BreakerState.OPEN" in machine.simulation.describe()
    assert machine.node.faults.take(Opcode.GET) is None

    machine.recover(is_busy=False)

    assert machine.simulation.is_healthy


@pytest.mark.parametrize(("position", "left"), [(0, ["get", "touch"]), (1, ["upsert", "touch"]), (3, ["get", "touch"])])
def test_abandoning(position: int, left: list[str]) -> None:
    """Whoever stands at that place leaves; behind the last it begins again."""
    machine = connected()
    for kind in ("upsert", "get", "touch"):
        machine.operate(template=OperationTemplate(kind, ADA), retry_strategy="default")
    machine.abandon(position=position)

    assert left == [submission.operation.name for submission in machine.model.open]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("retry", None),
        ("refuse", TemporaryFailureException),
        ("raise", RequestCanceledException),
        ("nonsense", RequestCanceledException),
    ],
)
def test_deciding(answer: str, error: type[Exception] | None) -> None:
    """The oldest question is answered."""
    machine = connected()
    machine.node.faults.next(Opcode.SET, temporary_failure(), times=2)
    for _ in range(2):
        machine.exchange(template=OperationTemplate("upsert", ADA), retry_strategy="asks")
    asked = [consulted.token for consulted in machine.simulation.consulted]
    machine.decide(answer=answer)
    machine.run(0.1)

    assert asked[1:] == [consulted.token for consulted in machine.simulation.consulted]
    if error is None:
        assert asked[0] in machine.simulation.results
    else:
        assert isinstance(machine.simulation.errors[asked[0]], error)
        assert (answer == "raise") == isinstance(machine.simulation.errors[asked[0]].__cause__, ZeroDivisionError)


def test_moving() -> None:
    """A connect comes to its end, bytes go there and come back, as many as are said."""
    machine = KVStateMachine()
    machine.begin(is_connected=False, strike=None)
    machine.move(position=0, size=None)
    (link,) = machine.simulation.links.values()
    sizes = [(link.is_open, link.handed_over, len(link.incoming))]
    machine.move(position=2, size=10)
    sizes.append((link.is_open, link.handed_over, len(link.incoming)))
    machine.move(position=0, size=None)
    replies = len(link.incoming)
    machine.move(position=3, size=7)

    assert [(True, 0, 0), (True, 10, 0)] == sizes
    assert not link.outgoing
    assert 7 == replies - len(link.incoming)


@pytest.mark.parametrize(
    ("begun", "error"), [(0, None), (1, RequestCanceledException), (100, RequestCanceledException)]
)
def test_losing_a_stream(begun: int, error: type[Exception] | None) -> None:
    """What the driver had begun to hand over may have been applied; the rest is sent again."""
    machine = connected()
    stream = newest(machine)
    machine.operate(template=OperationTemplate("upsert", ADA), retry_strategy="default")
    machine.lose_stream(position=sorted(machine.simulation.links).index(stream), cause=LossCause.RESET, begun=begun)
    machine.run(1.0)

    assert stream not in machine.simulation.links
    assert (error is None) == (machine.document(ADA) is not None)
    assert {error} - {None} == {type(found) for found in machine.simulation.errors.values()} - {
        DocumentNotFoundException
    }


@pytest.mark.parametrize(
    ("strike", "is_standing", "refusals"),
    [
        (Strike(None, refuse_connection(), 2), False, [True, True, False]),
        (Strike(None, refuse_connection(), 2), True, [True, True, True]),
        (Strike(None, garble()), True, [False, False, False]),
    ],
    ids=repr,
)
def test_striking(strike: Strike, is_standing: bool, refusals: list[bool]) -> None:
    """A fault waits; only a refusal may stand."""
    machine = connected()
    machine.strike(strike=strike, is_standing=is_standing)

    assert strike.times == machine.node.faults.pending
    assert refusals == [machine.node.faults.take_refusal() for _ in range(3)]
    assert machine.node.faults.take(Opcode.GET) == (None if refusals[0] else strike.fault)
    assert machine.node.faults.take(Opcode.GET) is None


def test_stalling_and_running() -> None:
    """Time passes for both, and bytes move for one."""
    machine = connected()
    machine.operate(template=OperationTemplate("get", ADA), retry_strategy="default")
    machine.stall(seconds=0.6)

    assert 0.6 == machine.now
    assert 1 == len(machine.model.open)

    machine.run(seconds=0.6)

    assert 1.2 == machine.now
    assert [] == machine.model.open
