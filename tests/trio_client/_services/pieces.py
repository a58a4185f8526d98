"""Client machine whose service sends rows in pieces that a test specifies."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium_core import errors
from triclinium_core.contract import couchbase
from triclinium_core.services.query.result import QueryMetaData, QueryStatus
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.testing.driver_laws import ScriptedClusterMachine

Piece = Sequence[bytes] | ServiceResult | errors.CouchbaseException | None
"""Rows, the result or the error that ends a request, or None for no response."""

METADATA = QueryMetaData(request_id="r1", client_context_id="c1", status=QueryStatus.SUCCESS)


class Pieces:
    """Service that responds to each request, and each demand for rows, with the next piece."""

    def __init__(self, *pieces: Piece) -> None:
        self._pieces = list(pieces)
        self.machine: ScriptedClusterMachine = ScriptedClusterMachine(self._answer)

    @property
    def requests(self) -> Sequence[ServiceRequest]:
        """Requests that the machine received, oldest first."""
        return [event.request for event in self.machine.events if isinstance(event, couchbase.RequestSubmitted)]

    def received(self, kind: type[couchbase.Event]) -> int:
        """Return the number of events of this type that the machine received."""
        return sum(isinstance(event, kind) for event in self.machine.events)

    def _answer(self, event: couchbase.Event) -> Sequence[couchbase.Action]:
        if not isinstance(event, couchbase.RequestSubmitted | couchbase.RowsWanted):
            return ()
        match self._pieces.pop(0):
            case None:
                return ()
            case errors.CouchbaseException() as error:
                return [couchbase.FailOperation(event.token, error)]
            case ServiceResult() as result:
                return [couchbase.CompleteRequest(event.token, result)]
            case rows:
                return [couchbase.RowsReceived(event.token, rows)]
