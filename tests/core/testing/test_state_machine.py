"""State machine for Hypothesis: complete runs with and without a defect, and its single steps."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.core.testing.distorted import (
    Distort,
    connected,
    distorted,
    is_never_ambiguous,
    loses_answers,
    never_opens,
    newest,
    sends_twice,
)
from triclinium_core.contract.neutral import LossCause, Token
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    DocumentNotFoundException,
    RequestCanceledException,
    TemporaryFailureException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.operation.document_operations import Append, Decrement, Increment, Insert, Touch, Upsert
from triclinium_core.kv.operation.results import GetResult
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import Fault, drop_response, garble, refuse_connection, temporary_failure
from triclinium_core.testing.hypothesis_strategies import Strike, token_strategies
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle.loans import LoanBook, TokenEnd
from triclinium_core.testing.oracle.submissions import Place, Violation
from triclinium_core.testing.oracle.unique_values import COUNTERS_MAX
from triclinium_core.testing.state_machine import KVStateMachine, TokenStateMachine

DEFAULT, OTHER = KVStateMachine.keyspaces
ADA = Place(DEFAULT, "ada")
FAR_ADA = Place(OTHER, "ada")
HITS = Place(DEFAULT, "hits")
FEW = settings(max_examples=5, stateful_step_count=10, deadline=None, derandomize=True, database=None)
MANY = settings(FEW, max_examples=100, stateful_step_count=20, phases=[Phase.generate])


def test_run_without_a_defect() -> None:
    """The real client obeys the laws, even if its own strategy is a token strategy."""
    run_state_machine_as_test(KVStateMachine, settings=FEW)
    run_state_machine_as_test(TokenStateMachine, settings=FEW)


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        (sends_twice, "was applied more often than submitted: 2 > 1|closed stream"),
        (is_never_ambiguous, "was applied, "),
        (loses_answers, "is open after its deadline|its error rules that out"),
    ],
)
def test_run_with_a_defect(defect: Distort, message: str) -> None:
    """A run finds a client that breaks a law, whether of safety or of liveness."""
    with pytest.raises(Violation, match=message):
        run_state_machine_as_test(distorted(defect), settings=MANY)


class Touching(KVStateMachine):
    """A state machine with an additional rule and law."""

    seen: int = 0

    @rule(key=KVStateMachine.keys)
    def touch(self, key: str) -> None:
        """Give a document a new expiry."""
        self.submit(Touch(self.keyspace, key, 3600))

    @invariant()
    def time_never_goes_back(self) -> None:
        """Check that the simulation and the model have the same time."""
        assert self.now == self.model.now
        type(self).seen += 1


def test_run_with_an_additional_rule_and_law() -> None:
    """A subclass's rules and laws take part in the run."""
    Touching.seen = 0
    run_state_machine_as_test(Touching, settings=FEW)

    assert Touching.seen > 0


def test_documents_on_the_node() -> None:
    """The machine returns each document of the node in its current state, until it expires."""
    machine = connected()
    for keyspace, expiry in ((DEFAULT, 0), (OTHER, 5)):
        machine.submit(Upsert(keyspace, "ada", machine.model.unique_values.fragment(), 0, expiry))
    machine.run(0.0)
    found = [machine.document(place) for place in (ADA, FAR_ADA, HITS)]

    assert [b"<1>", b"<2>", None] == [document and document.value for document in found]

    machine.run(5.0)

    assert machine.document(ADA) is not None
    assert machine.document(FAR_ADA) is None
    assert 5 == machine.now == machine.model.now

    machine.simulation.now += 1

    assert 6 == machine.now == machine.model.now


def test_submissions_of_rules() -> None:
    """One call each writes a document, counts, extends a list and queries, with values that the model accepts."""
    machine = connected()
    writes = [
        machine.submit_document(Upsert, "ada", keyspace=OTHER, expiry=5),
        machine.submit_document(Append, "ada", keyspace=OTHER),
        machine.submit_count(Increment, "hits"),
        machine.submit_count(Decrement, "hits", creates=False),
        machine.submit_list(Insert, "basket"),
        machine.submit_list(MutateIn, "basket", retry_strategy="best effort"),
    ]
    query = machine.submit_query("SELECT RAW x", ["a", {"b": 1}])
    machine.run(0.0)
    stored = [machine.document(place) for place in (FAR_ADA, HITS, Place(DEFAULT, "basket"))]

    assert set(writes) <= set(machine.simulation.results)
    assert [b"<1><2>", b"%d" % ((1 << 48) - 4), b'{"parts":["<3>","<4>"]}'] == [each and each.value for each in stored]
    assert [b'"a"', b'{"b":1}'] == machine.simulation.rows[query]
    assert query in machine.simulation.answers


def test_counts_beyond_the_last_read() -> None:
    """After the last distinguishable count, a submission reads the counter."""
    machine = connected()
    tokens = [machine.submit_count(Increment, "hits") for _ in range(COUNTERS_MAX + 2)]
    names = [machine.model.submissions[token].operation.name for token in tokens]

    assert ["increment"] * COUNTERS_MAX + ["get"] * 2 == names


def test_query_is_abandoned() -> None:
    """``abandon`` also reaches the reader of a query."""
    machine = connected()
    query = machine.submit_query("SELECT RAW x")
    machine.abandon(position=0)
    machine.flow()

    assert [] == machine.simulation.requests.open
    assert query not in machine.simulation.answers


@pytest.mark.parametrize("is_busy", [True, False])
def test_recovery(is_busy: bool) -> None:
    """After the last fault the client recovers and serves requests; a busy recovery submits more operations."""
    machine = connected()
    machine.node.faults.always(None, refuse_connection())
    machine.simulation.lose(newest(machine))
    machine.run(seconds=2.5)
    machine.recover(is_busy=is_busy)
    reads = [result for result in machine.simulation.results.values() if isinstance(result, GetResult)]

    assert machine.simulation.is_healthy
    assert [b"<1>", b"<2>"] == [result.data for result in reads]
    assert is_busy == (len(machine.model.submissions) > 5)


def test_missing_recovery() -> None:
    """A client that does not serve 60 s after the last fault violates the liveness law."""
    machine = distorted(never_opens)()
    machine.begin(is_connected=False, strike=None)

    with pytest.raises(Violation, match="60 s after the last fault: None: CONNECTING"):
        machine.recover(is_busy=False)
    assert 60 == machine.now


def test_recovery_with_one_frame_too_many() -> None:
    """Recovery finds a number of sent frames that does not match the results and retries."""
    machine = connected()
    for _ in range(2):
        machine.simulation.ledger.completed(machine.model.submissions[1])

    with pytest.raises(
        Violation, match="the number of frames of GET b'ada' is 1; its results and retries imply 3 to 1"
    ):
        machine.recover(is_busy=False)


def test_end_of_a_run() -> None:
    """A run ends with a recovery, unless it has already failed."""
    machine = connected()
    machine.teardown()

    assert 5 == len(machine.model.submissions)

    failed = connected()
    try:
        raise Violation("found")
    except Violation:
        failed.teardown()

    assert 1 == len(failed.model.submissions)


def commands(machine: KVStateMachine, opcode: Opcode) -> list[Fault | None]:
    """Return the fault of each command with this opcode; None for a command without one."""
    return [command.fault for command in machine.node.command_log if command.opcode == opcode]


def test_operate_and_exchange() -> None:
    """``operate`` only submits an operation; ``exchange`` also moves all bytes."""
    machine = connected()
    machine.operate(template=OperationTemplate("upsert", FAR_ADA), retry_strategy="default")
    waiting = [submission.operation.name for submission in machine.model.open], commands(machine, Opcode.SET)
    machine.exchange(template=OperationTemplate("upsert", FAR_ADA), retry_strategy="default")

    assert (["upsert"], []) == waiting
    assert [] == machine.model.open
    assert [None, None] == commands(machine, Opcode.SET)
    assert machine.document(FAR_ADA) is not None


def test_struck_exchange() -> None:
    """In a struck exchange, the fault strikes the operation and not the existence check that is sent with it."""
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


def test_struck_collection_lookup() -> None:
    """If the operation needs a collection id request, the fault strikes this request instead of the operation."""
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


def test_silent_node() -> None:
    """During silence all operations time out and the breaker opens; afterwards the node responds again."""
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
def test_abandon(position: int, left: list[str]) -> None:
    """The open operation at the position is abandoned; positions after the last start again at 0."""
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
def test_decide(answer: str, error: type[Exception] | None) -> None:
    """``decide`` feeds the decision on the oldest consulted operation."""
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


@pytest.mark.parametrize("name", sorted(token_strategies(LoanBook())))
def test_token_strategies_of_operations(name: str) -> None:
    """Each token strategy decides about its own operation; an awaited one does so when it may go on."""
    machine = connected()
    machine.exchange(template=OperationTemplate("upsert", ADA), retry_strategy=name)
    for _ in machine.simulation.consultations.open:
        machine.go_on(position=3)
    machine.run(0.1)
    token = machine.simulation.consultations.open

    assert [] == token
    assert (name == "raises first") == any(
        isinstance(error.__cause__, ZeroDivisionError) for error in machine.simulation.errors.values()
    )
    assert (name == "issues nothing") == machine.simulation.loans[2].is_first_refused


@pytest.mark.parametrize("finishes_late", [True, False])
def test_token_strategies_that_never_answer(finishes_late: bool) -> None:
    """A silent token strategy is cancelled at the deadline; a token that it issues late is abandoned."""
    machine = connected()
    machine.call_off(finishes_late=finishes_late)
    machine.exchange(template=OperationTemplate("upsert", ADA), retry_strategy="awaited tokens")
    machine.run(2.5)
    loan = machine.simulation.loans[2]

    assert [] == machine.simulation.consultations.open
    assert isinstance(machine.simulation.errors[Token(2)], UnambiguousTimeoutException)
    assert [TokenEnd.RETURNED] * finishes_late == [issued.end for issued in loan.issued]


def test_client_with_a_token_strategy() -> None:
    """The client's token strategy decides about operations without their own, and permits only a few retries."""
    machine = TokenStateMachine()
    machine.begin(is_connected=True, strike=None)
    machine.node.faults.next(Opcode.SET, temporary_failure(), times=9)
    for _ in range(9):
        machine.exchange(template=OperationTemplate("upsert", ADA), retry_strategy="default")
    machine.run(2.5)
    loans = [machine.simulation.loans[token] for token in range(1, 11)]

    assert 8 == sum(loan.position for loan in loans) == TokenStateMachine.quota_capacity // 5
    assert any(loan.refusals for loan in loans)


def test_move() -> None:
    """A connect completes, then bytes move in both directions, as many as requested."""
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
def test_lost_stream(begun: int, error: type[Exception] | None) -> None:
    """An operation whose frame the driver had started to write fails and is not applied; an unsent one is retried."""
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
def test_strike(strike: Strike, is_standing: bool, refusals: list[bool]) -> None:
    """A fault waits for its command; only a refused connect may last."""
    machine = connected()
    machine.strike(strike=strike, is_standing=is_standing)

    assert strike.times == machine.node.faults.pending
    assert refusals == [machine.node.faults.take_refusal() for _ in range(3)]
    assert machine.node.faults.take(Opcode.GET) == (None if refusals[0] else strike.fault)
    assert machine.node.faults.take(Opcode.GET) is None


def test_stall_and_run() -> None:
    """Time passes in ``stall`` and in ``run``, and bytes move only in ``run``."""
    machine = connected()
    machine.operate(template=OperationTemplate("get", ADA), retry_strategy="default")
    machine.stall(seconds=0.6)

    assert 0.6 == machine.now
    assert 1 == len(machine.model.open)

    machine.run(seconds=0.6)

    assert 1.2 == machine.now
    assert [] == machine.model.open
