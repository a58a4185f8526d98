"""Requests to a fake Couchbase cluster: the client machine and three nodes, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from docs._static.playground.story import CALLER, CLIENT, NETWORK, NODE, Html, Step, picture
from triclinium_core.argument_error import ArgumentError
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.neutral import Token
from triclinium_core.decision_tape import encoding, lines, reading
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.kv.operation import document_operations as documents
from triclinium_core.retry import couchbase, smithy
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, require_strategy
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing import FakeNodeOptions, FakeNodes, apply_command
from triclinium_core.testing.simulation.simulation import Simulation, client_options
from triclinium_core.timeline import Row, Selection, Source, timelines

BUCKET, STATEMENT, DOCUMENT = "travel", "SELECT 1815 AS born", (b'{"born":1815}', 0x2000006)
KEYSPACE = documents.Keyspace(BUCKET)
LANES = {Source.CALLER: (CLIENT, CALLER), Source.CLIENT: (CLIENT, CLIENT), Source.NODE: (NODE, CLIENT)}
"""Lanes of an event by its source; an arrow has two."""
OPERATIONS: Mapping[str, documents.Operation] = {
    "upsert": documents.Upsert(KEYSPACE, "ada", *DOCUMENT),
    "get": documents.Get(KEYSPACE, "ada"),
    "insert": documents.Insert(KEYSPACE, "new", *DOCUMENT),
    "replace": documents.Replace(KEYSPACE, "ada", *DOCUMENT),
    "remove": documents.Remove(KEYSPACE, "ada"),
    "increment": documents.Increment(KEYSPACE, "visits", initial=1),
}
QUERIES: Mapping[str, QueryRequest] = {
    "query": QueryRequest(statement=STATEMENT),
    "readonly query": QueryRequest(statement=STATEMENT, readonly=True),
}
STRATEGIES: Mapping[str, Callable[[Simulation], AnyRetryStrategy]] = {
    "FastFailOnTerminalErrorRetryStrategy": lambda run: couchbase.FastFailOnTerminalErrorRetryStrategy(),
    "BestEffortRetryStrategy": lambda run: couchbase.BestEffortRetryStrategy(),
    "ErrorMapRetryStrategy": lambda run: couchbase.ErrorMapRetryStrategy(),
    "SimpleRetryStrategy": lambda run: smithy.SimpleRetryStrategy(rng=random.Random(1)),
    "StandardRetryStrategy": lambda run: smithy.StandardRetryStrategy(rng=random.Random(1)),
    "AdaptiveRetryStrategy": lambda run: smithy.AdaptiveRetryStrategy(rng=random.Random(1), clock=lambda: run.now),
    "BudgetRetryStrategy": lambda run: smithy.BudgetRetryStrategy(rng=random.Random(1)),
}
"""Strategies by name, the default first."""


def play(operation: str, faults: Sequence[str], make_strategy: Callable[[Simulation], AnyRetryStrategy]) -> Html:
    """Return the story of a request whose faults begin when it is submitted. Raise ValueError for an invalid fault."""
    recorder = DecisionRecorder(10_000)
    nodes = FakeNodes(FakeNodeOptions(buckets=(BUCKET,), replicas=1, vbuckets=128), rng=random.Random(1))
    # Compressed responses would need a further package in the browser.
    options = replace(client_options(nodes), compression=False)
    run = Simulation(nodes, options, make_machine=lambda own, *, rng: ClientMachine(own, rng=rng, recorder=recorder))
    # Earlier requests open the connections, and store the documents that the request may need.
    for name in ("upsert", "increment", "query"):
        _perform(run, name, None)
    run.advance(0.1)
    nodes.start_clock()
    for fault in faults:
        apply_command(nodes, fault)
    require_strategy(strategy := make_strategy(run), "strategy")
    token = _perform(run, operation, strategy)
    if run.consulted:
        raise ArgumentError("the strategy is asynchronous; write its methods without async", parameter="strategy")
    encoder = encoding.TapeEncoder(recorder)
    tape = encoder.header() + encoder.facts(recorder.take())
    (line,) = timelines((fact for _, fact in reading.TapeReader([tape])), Selection(token=token))
    error, rows = run.errors.get(token), b", ".join(run.rows.get(token, [])).decode()
    outcome = str(error if error is not None else rows or run.results.get(token))
    return picture([*_steps(line.rows)], outcome, "" if error is None else type(error).__name__)


def _perform(run: Simulation, name: str, by: AnyRetryStrategy | None) -> Token:
    document = OPERATIONS.get(name)
    token = run.submit(document, retry_strategy=by) if document else run.request(QUERIES[name], retry_strategy=by)
    run.run()
    return token


def _steps(rows: Sequence[Row]) -> Iterator[Step]:
    for number, row in enumerate(rows):
        start, end = (CALLER, CLIENT) if number == 0 else LANES.get(row.source, (NETWORK, NETWORK))
        clause = (row.decision is not None and row.decision.clause) or ""
        # Leave out the end of a delay: the next row shows the attempt that follows.
        if row.decided or not isinstance(row.fact, lines.Woken):
            end = NODE if isinstance(row.fact, lines.Sent) else end
            yield Step(row.at - rows[0].at, start, end, row.text, row.decided, clause)
