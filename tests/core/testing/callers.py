"""Callers of one client, whose requests, results and cancellations the model records."""

from __future__ import annotations

from tests.core.testing.asked import append, get, upsert
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Operation
from triclinium_core.kv.operation.results import Cas, CounterResult, GetResult, MutationResult, Result
from triclinium_core.testing.oracle.model import Model

OLD_CAS, NEW_CAS = Cas(5), Cas(6)


def found(data: bytes, cas: int = 0) -> GetResult:
    """Return the result of a read. By default, its CAS is derived from the content."""
    return GetResult(Cas(cas or 1000 + sum(data)), 0, data, JSON_TRANSCODER)


class Callers:
    """Callers that submit operations and get the results that the test chooses. A second passes before each event."""

    def __init__(self) -> None:
        self.model = Model()
        self.token = 0
        self.cas = 100

    def ask(self, operation: Operation) -> int:
        """Submit an operation and return its token."""
        self.model.now += 1
        self.token += 1
        self.model.submitted(self.token, operation)
        return self.token

    def hear(self, token: int, result: Result) -> None:
        """Complete an operation."""
        self.model.now += 1
        self.model.completed(token, result)

    def miss(self, token: int, error: errors.CouchbaseException) -> None:
        """Fail an operation."""
        self.model.now += 1
        self.model.failed(token, error)

    def leave(self, token: int, *, ambiguous: bool) -> None:
        """Abandon an operation."""
        self.model.now += 1
        self.model.abandoned(token, ambiguous=ambiguous)

    def new_cas(self) -> Cas:
        """Return a CAS that no result has had."""
        self.cas += 1
        return Cas(self.cas)

    def change(self, operation: Operation, cas: int = 0) -> None:
        """Perform a change to a document, which succeeds."""
        self.hear(self.ask(operation), MutationResult(Cas(cas) if cas else self.new_cas()))

    def upsert(self) -> bytes:
        """Perform a write, which succeeds, and return the content."""
        value = self.model.unique_values.fragment()
        self.change(upsert(value))
        return value

    def append(self) -> bytes:
        """Perform an append, which succeeds, and return the appended part."""
        value = self.model.unique_values.fragment()
        self.change(append(value))
        return value

    def find(self, data: bytes, cas: int = 0) -> None:
        """Read a document and find this content."""
        self.hear(self.ask(get()), found(data, cas))

    def count(self, operation: Operation, content: int) -> None:
        """Perform a change to a counter, whose result is this number."""
        self.hear(self.ask(operation), CounterResult(content, self.new_cas()))


def two_versions() -> Model:
    """Return a model in which callers have received two versions of a document."""
    callers = Callers()
    for cas in (OLD_CAS, NEW_CAS):
        callers.change(upsert(callers.model.unique_values.fragment()), cas)
    return callers.model
