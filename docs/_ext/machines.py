"""The state machines of the core, as the documentation draws them: their tables, and where each state stands."""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet
from enum import Enum
from typing import NamedTuple, TypeVar

from docs._ext.state_diagram import Choice, Frame, Layout, Table
from triclinium_core.kv.connection.states import CONNECTION_TRANSITIONS
from triclinium_core.retry.cassandra.requests.states import (
    EXECUTION_TRANSITIONS as CASSANDRA_EXECUTION_TRANSITIONS,
    REQUEST_TRANSITIONS as CASSANDRA_REQUEST_TRANSITIONS,
)
from triclinium_core.retry.couchbase.circuit_breaker import BREAKER_TRANSITIONS
from triclinium_core.retry.couchbase.states import REQUEST_TRANSITIONS

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event")


class Machine(NamedTuple):
    """One machine: its table, its drawing, and the file that the table stands in."""

    table: Table
    layout: Layout
    source: str


def by_name(table: Mapping[State, Mapping[Event, AbstractSet[State] | State]]) -> Table:
    """Return a table of members and classes by their names, states and events in their order."""
    return {
        state.name: {
            event.name if isinstance(event, Enum) else getattr(event, "__name__", repr(event)): frozenset(
                target.name for target in ({targets} if isinstance(targets, Enum) else targets)
            )
            for event, targets in row.items()
        }
        for state, row in table.items()
    }


_REQUEST = Layout(
    title="One request",
    size=(800, 450),
    states={
        "PENDING": (165, 80),
        "CONSULTING": (165, 225),
        "IN_FLIGHT": (165, 370),
        "WAITING": (510, 80),
        "EXPIRING": (510, 320),
        "ABANDONED": (735, 80),
        "FAILED": (735, 225),
        "COMPLETED": (735, 395),
    },
    final=frozenset({"COMPLETED", "FAILED", "ABANDONED"}),
    frames={
        "unsettled": Frame(frozenset({"PENDING", "IN_FLIGHT", "CONSULTING", "WAITING", "EXPIRING"}), (10, 20, 590, 430))
    },
    choices={"verdict": Choice(frozenset({"WAITING", "EXPIRING", "FAILED"}), (390, 225))},
    bends={("PENDING", "IN_FLIGHT"): -95},
    labels={("PENDING", "verdict"): 0.45, ("IN_FLIGHT", "verdict"): 0.62, ("IN_FLIGHT", "CONSULTING"): 0.4},
    starts={("unsettled", "ABANDONED"): (590, 130), ("unsettled", "FAILED"): (590, 290)},
)

_BREAKER = Layout(
    title="The circuit breaker of one connection",
    size=(640, 290),
    states={"CLOSED": (90, 50), "OPEN": (550, 50), "HALF_OPEN": (320, 230)},
    bends={
        ("CLOSED", "OPEN"): -14,
        ("OPEN", "CLOSED"): -14,
        ("OPEN", "HALF_OPEN"): -22,
        ("HALF_OPEN", "OPEN"): -22,
    },
)

_NODE = Layout(
    title="One connection",
    size=(770, 560),
    states={
        "CONNECTING": (470, 60),
        "NEGOTIATING": (470, 185),
        "AUTHENTICATING": (470, 290),
        "JOINING": (470, 395),
        "READY": (470, 500),
        "LOST": (60, 290),
    },
    frames={
        "alive": Frame(
            frozenset({"CONNECTING", "NEGOTIATING", "AUTHENTICATING", "JOINING", "READY"}), (225, 15, 760, 550)
        ),
    },
    bends={
        ("CONNECTING", "AUTHENTICATING"): 100,
        ("CONNECTING", "READY"): 200,
        ("NEGOTIATING", "JOINING"): -150,
        ("AUTHENTICATING", "READY"): -135,
        ("READY", "AUTHENTICATING"): -105,
    },
    labels={
        ("CONNECTING", "AUTHENTICATING"): 0.72,
        ("CONNECTING", "READY"): 0.55,
        ("READY", "AUTHENTICATING"): 0.3,
        ("LOST", "CONNECTING"): 0.3,
    },
    starts={("alive", "LOST"): (225, 260)},
)

_CASSANDRA_REQUEST = Layout(
    title="One Cassandra request",
    size=(800, 470),
    states={
        "NEW": (70, 240),
        "RUNNING": (330, 240),
        "COMPLETED": (730, 50),
        "FAILED": (730, 240),
        "ABANDONED": (730, 430),
    },
    final=frozenset({"COMPLETED", "FAILED", "ABANDONED"}),
    frames={"unsettled": Frame(frozenset({"NEW", "RUNNING"}), (10, 130, 420, 350))},
    starts={("unsettled", "ABANDONED"): (420, 310)},
)

_CASSANDRA_EXECUTION = Layout(
    title="One execution of a Cassandra request",
    size=(800, 430),
    states={"SENDING": (160, 60), "WAITING": (160, 370), "PREPARING": (450, 215), "ENDED": (740, 215)},
    final=frozenset({"ENDED"}),
    bends={
        ("SENDING", "WAITING"): -60,
        ("WAITING", "SENDING"): -60,
        ("SENDING", "PREPARING"): -40,
        ("PREPARING", "SENDING"): -30,
        ("SENDING", "ENDED"): 70,
        ("WAITING", "ENDED"): -70,
    },
)

MACHINES: Mapping[str, Machine] = {
    "request": Machine(by_name(REQUEST_TRANSITIONS), _REQUEST, "triclinium_core/retry/couchbase/states.py"),
    "breaker": Machine(by_name(BREAKER_TRANSITIONS), _BREAKER, "triclinium_core/retry/couchbase/circuit_breaker.py"),
    "cassandra_request": Machine(
        by_name(CASSANDRA_REQUEST_TRANSITIONS), _CASSANDRA_REQUEST, "triclinium_core/retry/cassandra/requests/states.py"
    ),
    "cassandra_execution": Machine(
        by_name(CASSANDRA_EXECUTION_TRANSITIONS),
        _CASSANDRA_EXECUTION,
        "triclinium_core/retry/cassandra/requests/states.py",
    ),
    "connection": Machine(by_name(CONNECTION_TRANSITIONS), _NODE, "triclinium_core/kv/connection/states.py"),
}
