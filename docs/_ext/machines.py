"""State machines that the documentation draws: their tables from the core, and the position of each state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

from docs._ext.state_diagram import Choice, Layout, StateFrame, Table
from triclinium_core.retry.cassandra.requests.states import (
    EXECUTION_TRANSITIONS as CASSANDRA_EXECUTION_TRANSITIONS,
    REQUEST_TRANSITIONS as CASSANDRA_REQUEST_TRANSITIONS,
)
from triclinium_core.retry.couchbase.circuit_breaker import BREAKER_TRANSITIONS
from triclinium_core.retry.couchbase.events import StrategyAnswered
from triclinium_core.retry.couchbase.states import REQUEST_TRANSITIONS, RetryState, Ruling, permitted_events
from triclinium_core.runtime.kv.connection.states import CONNECTION_TRANSITIONS

State = TypeVar("State", bound=Enum)
Input = TypeVar("Input")


class DrawnMachine(NamedTuple):
    """Table and drawing of a machine, and the file that defines the table."""

    transitions: Mapping[str, Mapping[tuple[str, ...], str]]
    """Next state, by the name of the current state and the input. An input is an event, followed by the strategy's
    decision if the next state depends on that decision."""
    layout: Layout
    source: str

    @property
    def table(self) -> Table:
        """Possible next states, by current state and event."""
        table: dict[str, dict[str, frozenset[str]]] = {}
        for state, row in self.transitions.items():
            events = table.setdefault(state, {})
            for (event, *_), following in row.items():
                events[event] = events.get(event, frozenset()) | {following}
        return table


def by_name(table: Mapping[State, Mapping[Input, State]]) -> Mapping[str, Mapping[tuple[str, ...], str]]:
    """Return the table with names instead of members and classes, in the same order."""
    return {
        state.name: {_input(symbol): following.name for symbol, following in row.items()}
        for state, row in table.items()
    }


def _input(symbol: object) -> tuple[str, ...]:
    parts = symbol if isinstance(symbol, tuple) else (symbol,)
    return tuple(
        part.name if isinstance(part, Enum) else getattr(part, "__name__", repr(part))
        for part in parts
        if part is not Ruling.NONE
    )


_VERDICTS = {
    following.name: ruling.name
    for ruling, following in permitted_events(RetryState.CONSULTING)[StrategyAnswered].items()
}
"""Decision of the strategy after which the machine enters each state."""

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
        "unsettled": StateFrame(
            frozenset({"PENDING", "IN_FLIGHT", "CONSULTING", "WAITING", "EXPIRING"}), (10, 20, 590, 430)
        )
    },
    choices={"verdict": Choice(_VERDICTS, (390, 225))},
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
        "alive": StateFrame(
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
    frames={"unsettled": StateFrame(frozenset({"NEW", "RUNNING"}), (10, 130, 420, 350))},
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

MACHINES: Mapping[str, DrawnMachine] = {
    "request": DrawnMachine(by_name(REQUEST_TRANSITIONS), _REQUEST, "triclinium_core/retry/couchbase/states.py"),
    "breaker": DrawnMachine(
        by_name(BREAKER_TRANSITIONS), _BREAKER, "triclinium_core/retry/couchbase/circuit_breaker.py"
    ),
    "cassandra_request": DrawnMachine(
        by_name(CASSANDRA_REQUEST_TRANSITIONS), _CASSANDRA_REQUEST, "triclinium_core/retry/cassandra/requests/states.py"
    ),
    "cassandra_execution": DrawnMachine(
        by_name(CASSANDRA_EXECUTION_TRANSITIONS),
        _CASSANDRA_EXECUTION,
        "triclinium_core/retry/cassandra/requests/states.py",
    ),
    "connection": DrawnMachine(
        by_name(CONNECTION_TRANSITIONS), _NODE, "triclinium_core/runtime/kv/connection/states.py"
    ),
}
