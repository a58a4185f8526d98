"""Checked simulation that records one line for each step, to show how a law was broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set as AbstractSet

from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract import couchbase
from triclinium_core.contract.neutral import ReportConnection, StreamId, Token
from triclinium_core.kv.operation.document_operations import Concatenate, Count, Keyspace, Operation, Store
from triclinium_core.kv.operation.results import CounterResult, ExistsResult, GetResult, Result
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.oracle.excuses import ANSWERS, Revision
from triclinium_core.testing.oracle.loans import LoanBook
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.simulation.figures import Figures
from triclinium_core.testing.tapes import MakeMachine


class LoggedSimulation(CheckedSimulation):
    """``CheckedSimulation`` that records its steps in ``timeline`` and counts them in ``figures``."""

    def __init__(
        self,
        nodes: FakeNodes,
        options: ClientOptions,
        collection_ids: Mapping[Keyspace, int],
        *,
        rng: Random,
        clients: int,
        loans: LoanBook | None = None,
        make_machine: MakeMachine = ClientMachine,
    ) -> None:
        super().__init__(
            nodes, options, collection_ids, rng=rng, clients=clients, loans=loans, make_machine=make_machine
        )
        self.timeline: list[str] = []
        self.figures: Figures = Figures()

    def note(self, what: str) -> None:
        """Add a line about the current step."""
        self.timeline.append(f"{self.now:10.3f}  {what}")

    def close_client(self, index: int) -> None:
        """Close a client, count the closed client, and note its number of open operations."""
        self.figures.changes["clients closed"] += 1
        self.note(
            f"-- client {index} is closed with {self.clients[index].statistics().open_operations} open operations"
        )
        super().close_client(index)
        self.note(f"-- client {index} is replaced")

    def open(self, stream: StreamId) -> None:
        """Open a connection, and count the refusal if a live node refuses it."""
        node = self.links[stream].node
        super().open(stream)
        is_refused = stream not in self.links and node is not None and node.is_alive
        self.figures.faults["refused connections"] += is_refused

    def _handle(self, event: couchbase.Event) -> Sequence[couchbase.Action]:
        if isinstance(event, couchbase.RequestSubmitted):
            self.figures.requests += 1
            self.note(f"{self._who(event.token)} submits {event.token}: {_request_named(event.request)}")
        elif isinstance(event, couchbase.OperationAbandoned):
            self._outcomes(event.token)["abandoned by their callers"] += 1
            self.note(f"{self._who(event.token)} abandons {event.token}")
        return super()._handle(event)

    def _submitted(self, event: couchbase.OperationSubmitted, ill: AbstractSet[int], known: Revision | None) -> None:
        self.figures.operations += 1
        self.note(f"{self._who(event.token)} submits {event.token}: {_named(event.operation)}")
        super()._submitted(event, ill, known)

    def _carry_out(self, action: couchbase.Action) -> None:
        match action:
            case couchbase.CompleteOperation(token, result):
                self.figures.outcomes["done"] += 1
                self.note(f"{self._who(token)} gets the result of {token}: {_content(result)}")
            case couchbase.RowsReceived(token, rows):
                self.figures.rows += len(rows)
                self.note(f"{self._who(token)} reads {len(rows)} rows of {token}")
            case couchbase.CompleteRequest(token):
                self.figures.request_outcomes["done"] += 1
                self.note(f"{self._who(token)} gets the result of {token}: done")
            case couchbase.FailOperation(token, error) if token in self.requests:
                self.figures.request_outcomes[_kind_of_request_failure(error)] += 1
                self.note(f"{self._who(token)} gets the error of {token}: {type(error).__name__}: {error}")
            case couchbase.FailOperation(token, error):
                self.figures.outcomes[_kind_of_failure(error)] += 1
                self.note(f"{self._who(token)} gets the error of {token}: {type(error).__name__}: {error}")
            case ReportConnection(stream, node, text):
                self.note(f"{self._who(stream)}, stream {stream} to {node}: {text}")
            case _:
                pass
        super()._carry_out(action)

    def _outcomes(self, token: Token) -> Counter[str]:
        return self.figures.request_outcomes if token in self.requests else self.figures.outcomes

    def _who(self, number: Token | StreamId) -> str:
        return f"client {number % len(self.clients)}"


def _named(operation: Operation) -> str:
    keyspace, key = operation.keyspace, getattr(operation, "key", "")
    path = key if keyspace.is_default_collection else f"{keyspace.collection}/{key}"
    match operation:
        case Store(value=value) | Concatenate(value=value):
            return f"{operation.name} {path} {value.decode(errors='backslashreplace')}"
        case Count(delta=delta):
            return f"{operation.name} {path} by {delta:#x}"
        case _:
            return f"{operation.name} {path}"


def _content(result: Result) -> str:
    match result:
        case GetResult(data=data):
            return data.decode(errors="backslashreplace")
        case CounterResult(content):
            return f"{content:#x}"
        case ExistsResult(exists):
            return "it exists" if exists else "it does not exist"
        case _:
            return "done"


def _request_named(request: ServiceRequest) -> str:
    if isinstance(request, QueryRequest):
        return f"query {request.statement!r}{'' if request.adhoc else ', prepared'}"
    return f"{request.name} {request.error_context().http_path}"


def _kind_of_request_failure(error: errors.CouchbaseException) -> str:
    if error.context.http_status is not None and not isinstance(error, errors.TimeoutException):
        return "refused by the service"
    return _kind_of_failure(error)


def _kind_of_failure(error: errors.CouchbaseException) -> str:
    if isinstance(error, ANSWERS):
        return "refused by the document"
    if isinstance(error, errors.AmbiguousTimeoutException):
        return "timed out, ambiguous"
    if isinstance(error, errors.TimeoutException):
        return "timed out, not applied"
    return "failed in trouble"
