"""Routes: the request machine's reactions to each error, compared with a second copy of the driver's rules."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.retry.cassandra import Route, errors, routes_of

# Error codes of a statement, grouped by what the driver's request handlers do with them.
RAISED = {0x2000, 0x2100, 0x2200, 0x2300, 0x2400, 0x1400, 0x000A}
ASKED_FOR_ANY_STATEMENT = {0x1200, 0x1000}
ASKED_IF_IDEMPOTENT = {0x1100, 0x0000, 0x1001, 0x1003, 0x1300, 0x1500, 0x1600, 0x1700}
OF_STATEMENT = {
    **dict.fromkeys(RAISED, Route.RAISE),
    **dict.fromkeys(ASKED_FOR_ANY_STATEMENT, Route.ASK),
    **dict.fromkeys(ASKED_IF_IDEMPOTENT, Route.ASK_IF_IDEMPOTENT),
    0x2500: Route.REPREPARE,
    0x1002: Route.NEXT,
    0x0100: Route.RAISE_AS_PROTOCOL_ERROR,
}
# Error codes of a PREPARE: those that no PREPARE can cause, and those about which the policy decides.
IMPOSSIBLE_FOR_PREPARE = {0x2500, 0x2400, 0x1200, 0x1300, 0x1100, 0x1500, 0x1000, 0x1003}
RECOVERABLE_PREPARE = {0x0000, 0x1001, 0x1600, 0x1700}


def plain(kind: type[errors.CoordinatorError]) -> errors.CoordinatorError:
    """Return an error of the class without calling its ``__init__``."""
    return kind.__new__(kind)


@rows("code", sorted(errors.CODES))
def test_routes_of_a_statement(code: int) -> None:
    """For every error code of a statement, the machine takes the driver's route."""
    assert OF_STATEMENT[code] is routes_of(plain(errors.CODES[code])).of_statement


@rows("code", sorted(errors.CODES))
def test_routes_of_a_prepare(code: int) -> None:
    """If the caller sends a PREPARE, the machine takes the driver's route for every error code."""
    expected = (
        Route.RAISE_AS_UNEXPECTED
        if code in IMPOSSIBLE_FOR_PREPARE
        else Route.ASK
        if code in RECOVERABLE_PREPARE
        else OF_STATEMENT[code]
    )

    assert expected is routes_of(plain(errors.CODES[code])).of_prepare


@rows("code", sorted(errors.CODES))
def test_routes_of_a_repreparation(code: int) -> None:
    """A repreparation's error is raised if it is final for a statement; after other errors the next node is tried."""
    final = {Route.RAISE, Route.RAISE_AS_PROTOCOL_ERROR}
    expected = OF_STATEMENT[code] if OF_STATEMENT[code] in final else Route.NEXT

    assert expected is routes_of(plain(errors.CODES[code])).of_repreparation


def test_routes_without_a_response() -> None:
    """The policy decides about an aborted request if it is idempotent; the error of a throttled request is raised."""
    aborted = routes_of(errors.HeartbeatFailure())

    assert (Route.ASK_IF_IDEMPOTENT, Route.ASK, Route.NEXT) == tuple(aborted)
    assert (Route.RAISE, Route.RAISE, Route.NEXT) == tuple(routes_of(errors.FrameTooLong()))
    assert (Route.RAISE, Route.RAISE, Route.RAISE) == tuple(routes_of(errors.RequestThrottled()))


def test_routes_of_a_subclass() -> None:
    """An error of a subclass has the route of its base class; an unknown error code is raised as a protocol error."""

    class Overwhelmed(errors.Overloaded):
        pass

    class Newer(errors.CoordinatorError):
        code = 0x7777

    assert routes_of(errors.Overloaded()) == routes_of(Overwhelmed())
    assert {Route.RAISE_AS_PROTOCOL_ERROR} == set(routes_of(Newer()))


def test_errors_of_the_machine_have_no_route() -> None:
    """``routes_of`` raises KeyError for an error that the machine raises itself."""
    with pytest.raises(KeyError):
        routes_of(errors.AllNodesFailed(()))
