"""The half of a client's driver that needs no event loop, with a scripted machine."""

from __future__ import annotations

from typing import NoReturn

import pytest

from tests.core.contract.neutral.test_driver import MemoryLog
from triclinium_core import PasswordAuthenticator
from triclinium_core.contract import couchbase, neutral
from triclinium_core.contract.neutral.driver import DEBUG, INFO, WARNING
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    InvalidArgumentException,
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.operation.inquiries import Ping
from triclinium_core.kv.operation.results import Cas, MutationResult
from triclinium_core.kv.topology.topology import Topology, TopologyChange
from triclinium_core.options import Authenticator
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.driver_laws import ScriptedClusterMachine, on

GET = Get(Keyspace("travel"), "ada")
ONE, TWO = neutral.Token(1), neutral.Token(2)
APP = PasswordAuthenticator("app", "secret")


class MemoryDriver(couchbase.ClientDriver[list[object], neutral.DrivenStream]):
    """Driver without streams, in which a list stands for a waiting caller."""

    def __init__(self, machine: couchbase.DrivenClient) -> None:
        self.report = MemoryLog()
        super().__init__(machine, now=lambda: 7.0, open_stream=refuse, make_nonce=lambda: "nonce", log=self.report)

    def wake(self, waiter: list[object], outcome: object) -> None:
        waiter.append(outcome)


def refuse(order: neutral.OpenStream) -> neutral.DrivenStream:
    """Refuse to open a stream."""
    raise AssertionError(order)


def test_submissions_have_their_tokens() -> None:
    """Submissions of operations, requests and inquiries have tokens; other events have none."""
    driver = MemoryDriver(ScriptedClusterMachine())
    request = couchbase.RequestSubmitted(ONE, QueryRequest(statement="SELECT 1"))
    both = couchbase.OperationsSubmitted([couchbase.OperationSubmitted(token, GET) for token in (ONE, TWO)])

    assert couchbase.OperationSubmitted(ONE, GET) == driver.submission(ONE, GET)
    assert request == driver.submission(ONE, request.request)
    assert isinstance(driver.submission(ONE, Ping(None, "a report")), couchbase.InquirySubmitted)
    for event in (driver.submission(ONE, GET), driver.submission(ONE, Ping(None, "a report")), request):
        assert {ONE} == driver.submitted(event)
    assert {ONE, TWO} == driver.submitted(both)
    assert set() == driver.submitted(couchbase.RowsWanted(ONE))


def test_outcomes_reach_their_callers() -> None:
    """Results, errors and rows reach the caller of their token; only rows can be followed by more."""
    machine = ScriptedClusterMachine()
    driver, error, result = MemoryDriver(machine), RequestCanceledException("get: cancelled"), MutationResult(Cas(1))
    rows = couchbase.RowsReceived(ONE, [b"1"])
    request = couchbase.RequestSubmitted(ONE, QueryRequest(statement="SELECT 1"))
    machine.answer = on(couchbase.RequestSubmitted, rows, rows, couchbase.FailOperation(ONE, error), rows)
    reader, caller = list[object](), list[object]()
    driver.wait({ONE: reader}, request)
    machine.answer = on(couchbase.OperationSubmitted, couchbase.CompleteOperation(TWO, result))
    driver.wait({TWO: caller}, driver.submission(TWO, GET))

    assert [rows, rows, error] == reader
    assert [result] == caller


def test_a_caller_limits_its_time() -> None:
    """A caller whose time is over gets the timeout that fits its operation, which is abandoned once."""
    machine = ScriptedClusterMachine()
    machine.ambiguous = {TWO}
    machine.contexts = {TWO: ErrorContext(operation="upsert", key="ada", timeout=2.5)}
    driver = MemoryDriver(machine)
    read, write = list[object](), list[object]()
    driver.wait({ONE: read}, driver.submission(ONE, GET))
    driver.wait({TWO: write}, driver.submission(TWO, GET))
    for token in (ONE, TWO, TWO):
        driver.expire(token, 0.25)
    (late,) = write

    assert [UnambiguousTimeoutException] == [type(outcome) for outcome in read]
    assert isinstance(late, AmbiguousTimeoutException)
    assert ErrorContext(operation="upsert", key="ada", timeout=0.25) == late.context
    assert "upsert 'ada': no response within 0.25 s" in str(late)
    assert [
        couchbase.OperationAbandoned(token, reason=couchbase.AbandonReason.TIMEOUT) for token in (ONE, TWO)
    ] == machine.events[2:]


def test_a_defect_does_not_hide_a_timeout() -> None:
    """If the machine fails at the abandonment, the caller whose time is over still gets its timeout."""
    machine, late = ScriptedClusterMachine(), list[object]()
    driver = MemoryDriver(machine)
    driver.wait({ONE: late}, driver.submission(ONE, GET))

    def fail(event: object) -> NoReturn:
        raise ZeroDivisionError(event)

    machine.answer = fail
    with pytest.raises(ZeroDivisionError):
        driver.expire(ONE, 0.25)

    assert [UnambiguousTimeoutException] == [type(outcome) for outcome in late]


def test_services_are_not_looked_up() -> None:
    """A lookup is answered without targets, so that the machine uses the name as a host."""
    machine = ScriptedClusterMachine(on(neutral.TimePassed, couchbase.LookUpService("_couchbase._tcp.example")))
    MemoryDriver(machine).feed(neutral.TimePassed())

    assert couchbase.ServiceLookedUp("_couchbase._tcp.example") == machine.events[-1]


def test_a_new_authenticator_is_checked() -> None:
    """A new authenticator reaches the machine with a nonce, unless the machine refuses it or the driver is closed."""

    class Picky(ScriptedClusterMachine):
        def check_authenticator(self, authenticator: Authenticator) -> None:
            if authenticator is not APP:
                raise InvalidArgumentException("not this one", parameter="authenticator")

    machine = Picky()
    driver = MemoryDriver(machine)
    driver.set_authenticator(APP)
    with pytest.raises(InvalidArgumentException):
        driver.set_authenticator(PasswordAuthenticator("app", "another"))
    driver.close()
    with pytest.raises(neutral.ClosedError):
        driver.set_authenticator(APP)

    assert [couchbase.AuthenticatorChanged(APP, "nonce")] == machine.events


def test_reports_have_their_levels() -> None:
    """Topologies are logged at DEBUG, durations at INFO and orphans at WARNING."""
    machine = ScriptedClusterMachine()
    kinds = couchbase.TelemetryKind
    machine.answer = on(
        neutral.TimePassed,
        couchbase.PublishTopology(TopologyChange(None, Topology("travel", (1, 1), ()))),
        couchbase.ReportTelemetry(kinds.DURATIONS, "{1}"),
        couchbase.ReportTelemetry(kinds.ORPHANS, "{2}"),
    )
    driver = MemoryDriver(machine)
    driver.feed(neutral.TimePassed())

    assert [DEBUG, INFO, WARNING] == [level for level, _, _ in driver.report.lines]
    assert ["{1}", "{2}"] == [text for _, text, _ in driver.report.lines[1:]]


def test_the_last_reports_are_logged_once() -> None:
    """Closing abandons open operations, and logs what the machine has gathered since its last reports."""
    machine = ScriptedClusterMachine()
    machine.reports = [couchbase.ReportTelemetry(couchbase.TelemetryKind.SLOW_OPERATIONS, "{3}")]
    driver = MemoryDriver(machine)
    driver.wait({ONE: []}, driver.submission(ONE, GET))
    driver.close()
    driver.close()

    assert couchbase.OperationAbandoned(ONE) == machine.events[-1]
    assert [(WARNING, "{3}", None)] == driver.report.lines
