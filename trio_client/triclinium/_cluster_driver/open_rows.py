"""Request whose rows a task reads, with the newest rows and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triclinium_core.contract.neutral import Token
from triclinium_core.kv.operation.results import Result
from triclinium_core.services.service_request import ServiceRequest, ServiceResult


@dataclass(slots=True, eq=False)
class OpenRows:
    """Rows that ``ClusterDriver.open_rows`` returns and ``more_rows`` refills."""

    token: Token
    request: ServiceRequest
    rows: Sequence[bytes] = ()
    """Rows of the newest piece, each as its JSON text; empty once ``result`` is set."""
    result: Result | ServiceResult | None = None
    """Result of the request, which follows the last row; None before."""
    is_over: bool = True
    """Whether ``close_rows`` has nothing to do: the request has ended, or a task that waits for its rows ends it."""
