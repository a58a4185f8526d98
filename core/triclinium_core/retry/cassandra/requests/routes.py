"""Which way an error goes: to the policy, on to the next node, or to the caller, as a table.

Source: the retry page of the Cassandra Java driver, "Hard-coded rules", and its request handlers; decisions A2 and A7.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import NamedTuple

from triclinium_core.retry.cassandra import errors as e
from triclinium_core.retry.tables import table_of


@unique
class Route(Enum):
    """What happens to a request that met an error."""

    ASK = "ask"
    """The policy decides, whatever the statement."""
    ASK_IF_IDEMPOTENT = "ask if idempotent"
    """The policy decides where the request is idempotent; else the error is raised."""
    NEXT = "next"
    """The next node gets it, whatever the statement, and nothing is counted: it was certainly not executed."""
    REPREPARE = "reprepare"
    """The node gets the statement's text, and then the request again; nothing is counted."""
    RAISE = "raise"
    """The caller gets the error."""
    RAISE_AS_PROTOCOL_ERROR = "raise as protocol error"
    """The caller gets a ProtocolError, with the error as its cause."""
    RAISE_AS_UNEXPECTED = "raise as unexpected"
    """The caller gets an UnexpectedAnswer, with the error as its cause: no PREPARE can meet it."""


class Routes(NamedTuple):
    """The ways of one class of errors, by what was sent."""

    of_statement: Route
    of_prepare: Route
    """A PREPARE that the caller asked for."""
    of_repreparation: Route
    """A PREPARE that comes in between, for a node that has forgotten a statement."""


_ASK, _IF, _NEXT = Route.ASK, Route.ASK_IF_IDEMPOTENT, Route.NEXT
_PREPARE, _RAISE = Route.REPREPARE, Route.RAISE
_PROTOCOL, _WRONG = Route.RAISE_AS_PROTOCOL_ERROR, Route.RAISE_AS_UNEXPECTED

ROUTES: Mapping[type[e.CassandraError], Routes] = table_of(
    (
        (e.ReadTimeout, Routes(_ASK, _WRONG, _NEXT)),
        (e.Unavailable, Routes(_ASK, _WRONG, _NEXT)),
        (e.WriteTimeout, Routes(_IF, _WRONG, _NEXT)),
        (e.ReadFailure, Routes(_IF, _WRONG, _NEXT)),
        (e.WriteFailure, Routes(_IF, _WRONG, _NEXT)),
        (e.TruncateError, Routes(_IF, _WRONG, _NEXT)),
        (e.ServerError, Routes(_IF, _ASK, _NEXT)),
        (e.Overloaded, Routes(_IF, _ASK, _NEXT)),
        (e.CdcWriteFailure, Routes(_IF, _ASK, _NEXT)),
        (e.CasWriteUnknown, Routes(_IF, _ASK, _NEXT)),
        (e.RequestAborted, Routes(_IF, _ASK, _NEXT)),
        (e.Bootstrapping, Routes(_NEXT, _NEXT, _NEXT)),
        (e.Unprepared, Routes(_PREPARE, _WRONG, _NEXT)),
        (e.AlreadyExists, Routes(_RAISE, _WRONG, _RAISE)),
        (e.QueryValidationError, Routes(_RAISE, _RAISE, _RAISE)),
        (e.FunctionFailure, Routes(_RAISE, _RAISE, _RAISE)),
        (e.ProtocolError, Routes(_RAISE, _RAISE, _RAISE)),
        (e.AuthenticationError, Routes(_PROTOCOL, _PROTOCOL, _PROTOCOL)),
        (e.FrameTooLong, Routes(_RAISE, _RAISE, _NEXT)),
        (e.RequestThrottled, Routes(_RAISE, _RAISE, _RAISE)),
        # What has no class of its own: a code that is not known.
        (e.CoordinatorError, Routes(_PROTOCOL, _PROTOCOL, _PROTOCOL)),
    )
)
"""The ways of each class of errors; a class without a row goes the way of the nearest base that has one."""


def routes_of(error: e.CassandraError) -> Routes:
    """Return the ways of an error that an attempt can meet.

    Raises:
        KeyError: no attempt can meet it.
    """
    for kind in type(error).__mro__:
        if kind in ROUTES:
            return ROUTES[kind]
    raise KeyError(type(error))
