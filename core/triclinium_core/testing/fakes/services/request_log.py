"""Request log of the services of a fake node. It also records how much of each response was sent."""

from __future__ import annotations

import msgspec

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.faults import ServiceFault
from triclinium_core.testing.fakes.log_limit import LogLimit

REQUEST_LOG_MAX = 100_000
"""Maximum number of requests in the log; a full log drops the older half."""


class LoggedRequest(msgspec.Struct, kw_only=True):
    """One request. The log is in the order of processing; the node updates an entry while it sends the response.

    ``statement`` is the key in the script, see ``FakeScript``. For a query that executes a prepared statement, by name
    or in the request that prepares it, this is its text as the client sent it. ``now`` is the time of processing.
    ``status`` is the HTTP status in a readable head, even if the head is still pending; None without such a head.
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
    """Whether the request was carried out; False if it was refused, or if a fault struck before that."""
    bytes_sent: int = 0
    """Bytes of the response sent, including the head."""
    is_answered: bool = False
    """Whether the response has ended; stays False after a fault that leaves the client waiting."""
    client_hung_up: bool = False
    """Whether the client closed or lost the connection during the response."""


def request_log_limit() -> LogLimit[LoggedRequest]:
    """Return the limits of a request log, in requests and in the bytes of bodies, statements and targets."""
    return LogLimit(REQUEST_LOG_MAX, _size)


def _size(request: LoggedRequest) -> int:
    return len(request.body) + len(request.statement or "") + len(request.target)
