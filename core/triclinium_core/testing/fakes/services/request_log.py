"""The log of the requests to the services of a fake node, with the fate of each answer."""

from __future__ import annotations

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.faults import ServiceFault
from triclinium_core.testing.fakes.log_limit import LogLimit

REQUEST_LOG_MAX = 100_000
"""Maximum number of requests in the log; a full log drops the older half."""


class LoggedRequest(msgspec.Struct, kw_only=True):
    """One request, in the order in which the node took them up; what becomes of its answer is written as it goes on.

    ``statement`` is the text that a script goes by, see ``FakeScript``; ``now`` is when the request had come.
    ``status`` is the one of HTTP in a readable head, sent or still on its way, and None where there is none.
    """

    connection: int
    service: Service
    method: str
    target: str
    statement: str | None
    body: bytes
    now: float
    fault: ServiceFault | None
    status: int | None
    applied: bool
    """Whether the request was carried out; not where it was refused, or where a fault came before."""
    bytes_sent: int = 0
    """Of the answer, head and all."""
    is_answered: bool = False
    """Whether all of the answer was sent that was to be sent."""
    client_hung_up: bool = False
    """Whether the client hung up, or was lost, while the answer was on its way."""


def request_log_limit() -> LogLimit[LoggedRequest]:
    """Return the limits of a request log, in requests and in the bytes of bodies, statements and targets."""
    return LogLimit(REQUEST_LOG_MAX, _size)


def _size(request: LoggedRequest) -> int:
    return len(request.body) + len(request.statement or "") + len(request.target)
