"""Cost of telemetry for a get: turned off, with the defaults, and with a tracer and a meter that do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from tests.bench.clients import Job, Kind, fill, on_trio, triclinium
from tests.bench.own_calls import of_memcached
from tests.bench.parts.calls import calls
from tests.bench.servers import memcached
from tests.bench.turns import Effort, Row, measure
from triclinium import ClusterArguments
from triclinium.telemetry import RequestSpan, StatusCode, ValueRecorder

TABLE = "telemetry: a get"
TASKS, OPERATIONS = 64, 4_096


class Nothing:
    """Tracer, span, meter and recorder that do nothing."""

    def request_span(self, name: str, parent: RequestSpan | None = None) -> RequestSpan:
        """Return itself."""
        return self

    def value_recorder(self, name: str, tags: Mapping[str, str]) -> ValueRecorder:
        """Return itself."""
        return self

    def set_attribute(self, key: str, value: object) -> None:
        """Do nothing."""

    def add_event(
        self, name: str, attributes: Mapping[str, object] | None = None, timestamp: float | None = None
    ) -> None:
        """Do nothing."""

    def set_status(self, code: StatusCode) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def record_value(self, microseconds: int) -> None:
        """Do nothing."""


CONTENDERS: Mapping[str, ClusterArguments] = {
    "all off": {"tracer": None, "meter": None, "orphans": None},
    "all on": {},
    "a tracer and a meter that do nothing": {"tracer": Nothing(), "meter": Nothing()},
}


def rows(effort: Effort) -> Iterator[Row]:
    """Count, and measure."""
    with memcached() as server:
        if server is None:
            yield from measure(TABLE, "own calls", dict.fromkeys(CONTENDERS), effort)
            return
        counted = {
            name: partial(calls, partial(of_memcached, server.connection_string, **arguments))
            for name, arguments in CONTENDERS.items()
        }
        yield from measure(TABLE, "own calls", counted, Effort(rounds=1))
        fill(job := Job(server, Kind.GET, bytes(100)))
        timed = {
            name: on_trio(partial(triclinium, **arguments))(job, TASKS, effort.of(OPERATIONS))
            for name, arguments in CONTENDERS.items()
        }
        yield from measure(TABLE, f"{TASKS} tasks", timed, effort.short)
