"""Which way an error goes, held against a second copy of the driver's rules."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.retry.cassandra import Route, errors, routes_of

# The driver's request handlers, by what they do with an error of a statement.
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
# Of a PREPARE: what cannot be, what is raised, bootstrapping; the policy is asked about the rest.
IMPOSSIBLE_FOR_PREPARE = {0x2500, 0x2400, 0x1200, 0x1300, 0x1100, 0x1500, 0x1000, 0x1003}
RECOVERABLE_PREPARE = {0x0000, 0x1001, 0x1600, 0x1700}


def plain(kind: type[errors.CoordinatorError]) -> errors.CoordinatorError:
    """Return an error of a class, whatever its arguments."""
    return kind.__new__(kind)


@rows("code", sorted(errors.CODES))
def test_of_a_statement(code: int) -> None:
    """Every code goes the way that the driver sends it."""
    assert OF_STATEMENT[code] is routes_of(plain(errors.CODES[code])).of_statement


@rows("code", sorted(errors.CODES))
def test_of_a_prepare(code: int) -> None:
    """The same for a PREPARE that the caller asked for."""
    expected = (
        Route.RAISE_AS_UNEXPECTED
        if code in IMPOSSIBLE_FOR_PREPARE
        else Route.ASK
        if code in RECOVERABLE_PREPARE
        else OF_STATEMENT[code]
    )

    assert expected is routes_of(plain(errors.CODES[code])).of_prepare


@rows("code", sorted(errors.CODES))
def test_of_a_repreparation(code: int) -> None:
    """What is wrong with the statement is raised; anything else is the node's, and the next one is tried."""
    final = {Route.RAISE, Route.RAISE_AS_PROTOCOL_ERROR}
    expected = OF_STATEMENT[code] if OF_STATEMENT[code] in final else Route.NEXT

    assert expected is routes_of(plain(errors.CODES[code])).of_repreparation


def test_without_an_answer() -> None:
    """An aborted request is the policy's where it is idempotent; what is too long or throttled is nobody's."""
    aborted = routes_of(errors.HeartbeatFailure())

    assert (Route.ASK_IF_IDEMPOTENT, Route.ASK, Route.NEXT) == tuple(aborted)
    assert (Route.RAISE, Route.RAISE, Route.NEXT) == tuple(routes_of(errors.FrameTooLong()))
    assert (Route.RAISE, Route.RAISE, Route.RAISE) == tuple(routes_of(errors.RequestThrottled()))


def test_a_class_of_ones_own() -> None:
    """An embedder's subclass goes the way of its base; an error whose code is not known is one of the protocol."""

    class Overwhelmed(errors.Overloaded):
        pass

    class Newer(errors.CoordinatorError):
        code = 0x7777

    assert routes_of(errors.Overloaded()) == routes_of(Overwhelmed())
    assert {Route.RAISE_AS_PROTOCOL_ERROR} == set(routes_of(Newer()))


def test_what_no_attempt_meets() -> None:
    """The machine's own errors have no way: they are made where the ways end."""
    with pytest.raises(KeyError):
        routes_of(errors.AllNodesFailed(()))
