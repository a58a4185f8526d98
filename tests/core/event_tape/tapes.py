"""Recorded tapes for the tests of recording and replay."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triclinium_core.kv.operation.document_operations import Get, Increment, Keyspace, Upsert
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing import FakeAnswer, FakeNodes, temporary_failure
from triclinium_core.testing.simulation import simulation
from triclinium_core.testing.tapes import Tapes

KEYSPACE = Keyspace("default")
PLANTED = "planted-in-a-document"


class Fickle:
    """Strategy of a user: it draws from the random source of the request, raises, and refuses, in turn."""

    def __init__(self) -> None:
        self.asked: list[RetryRequest] = []

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a random delay, raise an exception, or return no retry, in turn."""
        self.asked.append(request)
        match len(self.asked) % 3:
            case 0:
                return RetryAction.no_retry(because="enough")
            case 1:
                return RetryAction.after(0.01 + 0.01 * request.rng.random())
        raise LookupError("no decision")


def growing(retry_attempts: int, rng: Random, /) -> float:
    """Return a delay, as a user's backoff does."""
    return 0.02 * (retry_attempts + rng.random())


def small_tape(strategy: AnyRetryStrategy | None = None) -> Sequence[bytes]:
    """Return the lines of a short tape: writes, reads, a query, user code, a lost stream, and an abandoned read."""
    tapes = Tapes()
    nodes = FakeNodes()
    nodes.script.answer("SELECT 1", FakeAnswer(rows=[{"value": PLANTED}, 2]))
    run = simulation.Simulation(nodes, rng=random.Random(1), is_traced=True, make_machine=tapes.make_machine)
    run.tick()
    for node in nodes:
        node.faults.next(None, temporary_failure(), times=8)
    strategies: list[AnyRetryStrategy | None] = [strategy or Fickle(), BestEffortRetryStrategy(growing), None]
    _submit(run, strategies)
    run.request(QueryRequest(statement="SELECT 1", readonly=True, client_context_id="id"))
    run.run()
    run.lose(next(iter(run.links)))
    _submit(run, strategies)
    run.abandon(run.submit(Get(KEYSPACE, "left")))
    run.run()
    return lines_of(tapes)[0]


def lines_of(tapes: Tapes) -> Sequence[Sequence[bytes]]:
    """Return the lines of each tape."""
    return [tape.splitlines(keepends=True) for tape in tapes.contents()]


def _submit(run: simulation.Simulation, strategies: Sequence[AnyRetryStrategy | None]) -> None:
    for number, strategy in enumerate(strategies):
        run.submit(Upsert(KEYSPACE, f"k{number}", PLANTED.encode(), 0x2000006), retry_strategy=strategy)
        run.submit(Get(KEYSPACE, f"k{number}"), retry_strategy=strategy, client_context={"of": "user"})
        run.submit(Increment(KEYSPACE, "hits", initial=1), retry_strategy=strategy)
