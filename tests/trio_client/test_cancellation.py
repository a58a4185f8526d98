"""Cancellation of operations and of whole clients at every moment, which affects no other call and no later one.

The summary of a test run gives the number of moments at which each call was cancelled.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from types import NoneType
from typing import TypeVar

import pytest
import trio

import triclinium
from tests.trio_client import test_cancellation_health as of_health, test_cancellation_services as of_services
from tests.trio_client.cancelling import SETTLING_SECONDS, Ending, Moments, Runs, at_every_moment, end_of
from tests.trio_client.pair import Thinks
from tests.trio_client.recorded_telemetry import RecordingTracer
from triclinium import (
    BinaryCollection,
    Bucket,
    Cas,
    Cluster,
    Collection,
    CounterResult,
    ExistsResult,
    GetResult,
    MutationResult,
    Scope,
    errors,
    open_cluster,
)
from triclinium.management import CollectionManager
from triclinium.subdocument import LookupInResult, LookupInSpec, MutateInResult, MutateInSpec
from triclinium.testing import ClientArguments, FakeCluster, open_fake_cluster
from triclinium_core import testing
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import delay

BUCKET, SCOPE, COLLECTION, COLLECTION_ID = "default", "inventory", "people", 8
NODE = testing.FakeNodeOptions(
    buckets=(BUCKET,),
    vbuckets=128,
    error_map=testing.ErrorMapDocument(revision=1, rows=()),
    collections={"_default": {"_default": 0}, SCOPE: {COLLECTION: COLLECTION_ID}},
)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)

T = TypeVar("T")
Call = Callable[[Collection, Cas], Awaitable[object]]
Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """Public coroutine: its call, the type of its result, and the key of its document."""

    name: str
    call: Call
    returns: type = MutationResult
    key: str = "ada"

    @property
    def opcode(self) -> Opcode:
        """Opcode of the request."""
        return next(kind.opcode for kind in OPERATIONS if kind.name == self.name.removesuffix("_or_none"))

    @property
    def is_read(self) -> bool:
        """Whether the operation is a read, which may always be sent again."""
        return self.opcode in (Opcode.GET, Opcode.GET_META, Opcode.SUBDOC_MULTI_LOOKUP)


COLLECTION_OPERATIONS = (
    Operation("get", lambda c, cas: c.get("ada"), GetResult),
    Operation("get_or_none", lambda c, cas: c.get_or_none("nobody"), NoneType, "nobody"),
    Operation("exists", lambda c, cas: c.exists("ada"), ExistsResult),
    Operation("get_and_touch", lambda c, cas: c.get_and_touch("ada", MINUTE), GetResult),
    Operation("touch", lambda c, cas: c.touch("ada", MINUTE)),
    Operation("get_and_lock", lambda c, cas: c.get_and_lock("ada", SECOND), GetResult),
    Operation("unlock", lambda c, cas: c.unlock("locked", cas), NoneType, "locked"),
    Operation("insert", lambda c, cas: c.insert("bob", 1), key="bob"),
    Operation("upsert", lambda c, cas: c.upsert("ada", 1)),
    Operation("replace", lambda c, cas: c.replace("ada", 1)),
    Operation("remove", lambda c, cas: c.remove("ada")),
    Operation("lookup_in", lambda c, cas: c.lookup_in("ada", [LookupInSpec.get("")]), LookupInResult),
    Operation("mutate_in", lambda c, cas: c.mutate_in("ada", [MutateInSpec.replace("", 1)]), MutateInResult),
)
BINARY_OPERATIONS = (
    Operation("append", lambda c, cas: c.binary.append("ada", b" ")),
    Operation("prepend", lambda c, cas: c.binary.prepend("ada", b" ")),
    Operation("increment", lambda c, cas: c.binary.increment("hits"), CounterResult, "hits"),
    Operation("decrement", lambda c, cas: c.binary.decrement("hits"), CounterResult, "hits"),
)
EVERY_OPERATION = (*COLLECTION_OPERATIONS, *BINARY_OPERATIONS)
SOME_OPERATIONS = tuple(operation for operation in EVERY_OPERATION if operation.name in ("get", "upsert", "increment"))


@dataclass(frozen=True, slots=True)
class Situation:
    """Conditions under which the test performs an operation."""

    name: str
    faults: Sequence[testing.Fault] = ()
    refusals: int = 0
    is_connected: bool = True
    in_named_collection: bool = False
    piece_sizes: Sequence[int] | None = None
    arguments: ClientArguments = field(default_factory=ClientArguments)
    leaves_requests: int = 0
    """Number of requests to which the node never responds."""
    read_raises: type[errors.CouchbaseException] | None = None
    write_raises: type[errors.CouchbaseException] | None = None
    """Exception that a write raises in this situation if it is not cancelled."""
    operations: Sequence[Operation] = SOME_OPERATIONS

    async def prepare(self, fake: FakeCluster, cluster: Cluster) -> None:
        """Establish the situation."""
        if self.is_connected:
            await cluster.bucket(BUCKET).default_collection().exists("anybody")

    def strike(self, fake: FakeCluster, operation: Operation) -> None:
        """Inject the faults for the operation."""
        for fault in self.faults:
            fake.node.faults.next(operation.opcode, fault)
        if self.refusals:
            fake.node.faults.next(None, testing.refuse_connection(), times=self.refusals)

    def outcome_of(self, operation: Operation) -> str:
        """Return the type name of the operation's result or exception without a cancellation."""
        error = self.read_raises if operation.is_read else self.write_raises
        return (error or operation.returns).__name__

    def collection(self, cluster: Cluster) -> Collection:
        """Return the collection of the operation's document."""
        bucket = cluster.bucket(BUCKET)
        return bucket.scope(SCOPE).collection(COLLECTION) if self.in_named_collection else bucket.default_collection()


FAILURES = (testing.temporary_failure(), testing.temporary_failure())
SITUATIONS = (
    Situation("connected", operations=EVERY_OPERATION),
    Situation("connecting", is_connected=False),
    Situation("refused", is_connected=False, refusals=3),
    Situation("retrying", FAILURES, operations=EVERY_OPERATION),
    Situation("asking a strategy", FAILURES, arguments={"retry_strategy": Thinks(0.05, 0.01)}),
    Situation(
        "asking a strategy that never answers",
        FAILURES,
        arguments={"retry_strategy": Thinks(math.inf)},
        read_raises=errors.UnambiguousTimeoutException,
        write_raises=errors.UnambiguousTimeoutException,
    ),
    Situation("answered late", (delay(0.3),)),
    Situation(
        "never answered",
        (testing.drop_response(),),
        leaves_requests=1,
        read_raises=errors.UnambiguousTimeoutException,
        write_raises=errors.AmbiguousTimeoutException,
    ),
    Situation(
        "hung up on",
        (testing.hang_up_after_applying(),),
        refusals=2,
        operations=EVERY_OPERATION,
        write_raises=errors.RequestCanceledException,
    ),
    Situation(
        "hung up on in the middle of a reply",
        (testing.hang_up_mid_reply(),),
        write_raises=errors.RequestCanceledException,
    ),
    Situation("in a collection whose id is unknown", in_named_collection=True),
    Situation("in a collection, connecting", in_named_collection=True, is_connected=False),
    Situation("in small pieces", piece_sizes=(24, 7, 400)),
)
CASES = [(situation, operation) for situation in SITUATIONS for operation in situation.operations]

SHORT = {
    *(("connected", name) for name in ("get", "upsert", "increment")),
    *((situation, "get") for situation in ("asking a strategy that never answers", "never answered", "hung up on")),
    *(
        (situation, "upsert")
        for situation in (
            *("connecting", "retrying", "asking a strategy", "answered late", "never answered", "hung up on"),
            *("hung up on in the middle of a reply", "in a collection whose id is unknown", "in small pieces"),
        )
    ),
}
"""Cases of a short run: each kind of checkpoint. Other operations differ in the core, not in checkpoints."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """State of client and node after a call, when the client has settled and later calls have succeeded."""

    tasks: Mapping[str, int]
    connections: int
    open_operations: int
    in_flight: int
    broken_rules: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Life:
    """One cancelled or complete call, its ending, and the state afterwards."""

    ending: Ending
    times_sent: int
    times_applied: int
    aftermath: Aftermath


async def live(situation: Situation, operation: Operation, moments: Moments) -> Life:
    """Return the ending of an operation that ``moments`` may cancel, and the state afterwards."""
    tracer = RecordingTracer()
    arguments: ClientArguments = {**situation.arguments, "tracer": tracer}
    async with (
        open_fake_cluster(options=NODE, piece_sizes=situation.piece_sizes) as fake,
        fake.open_client(**arguments) as cluster,
    ):
        cas = furnish(fake)
        await situation.prepare(fake, cluster)
        situation.strike(fake, operation)
        collection = situation.collection(cluster)
        begin = len(fake.node.command_log)
        ending = await end_of(lambda: operation.call(collection, cas), moments)
        await trio.sleep(SETTLING_SECONDS)
        mine = [
            command
            for command in fake.node.command_log[begin:]
            if (command.opcode, command.key) == (operation.opcode, operation.key.encode())
        ]
        fake.node.faults.clear()
        await use(collection)
        left = replace(aftermath(fake, cluster, moments), broken_rules=tracer.broken_rules)
        return Life(ending, len(mine), sum(command.applied for command in mine), left)


def furnish(fake: FakeCluster) -> Cas:
    """Store the documents of the operations, and return the CAS of a locked document."""
    documents = fake.node.documents
    for collection_id in (0, COLLECTION_ID):
        documents.put(BUCKET, "ada", b'{"born":1815}', collection_id=collection_id)
        documents.put(BUCKET, "hits", b"7", collection_id=collection_id)
    documents.put(BUCKET, "locked", b"1")
    return Cas(documents.lock(BUCKET, "locked", seconds=30))


async def use(collection: Collection) -> None:
    """Write and read a document, which must succeed without a delay."""
    began = trio.current_time()
    await collection.upsert("later", {"works": True})
    found = await collection.get("later")

    assert {"works": True} == found.content
    assert began == trio.current_time()


def aftermath(fake: FakeCluster, cluster: Cluster, moments: Moments) -> Aftermath:
    """Return the state of client and node."""
    statistics = cluster.statistics()
    return Aftermath(
        tasks=moments.tasks,
        connections=len({command.connection for command in fake.node.command_log}),
        open_operations=statistics.open_operations,
        in_flight=statistics.in_flight,
    )


@pytest.mark.parametrize(
    ("seed", "situation", "operation"),
    [
        pytest.param(
            *(seed, situation, operation),
            id=f"{operation.name}, {situation.name}",
            marks=() if (situation.name, operation.name) in SHORT else pytest.mark.long,
        )
        for seed, (situation, operation) in enumerate(CASES)
    ],
)
def test_an_operation_cancelled_at_every_moment(
    seed: int, situation: Situation, operation: Operation, record_property: Record
) -> None:
    """A cancelled operation completes or is abandoned; if abandoned, it is applied at most once, and then ambiguous."""
    runs = at_every_moment(partial(live, situation, operation), seed=seed)
    report(record_property, situation.name, operation.name, runs)
    undisturbed, first, second = runs.undisturbed, *runs.cancelled[:2]

    assert Ending(situation.outcome_of(operation), was_caught=False) == undisturbed.ending
    assert (0, situation.leaves_requests) == (undisturbed.aftermath.open_operations, undisturbed.aftermath.in_flight)
    assert (0, 0) == (first.aftermath.open_operations, first.aftermath.in_flight)
    assert [] == undisturbed.aftermath.broken_rules
    for life in runs.cancelled:
        assert_harmless(life, undisturbed, operation)
        # Faults strike once the request is sent, so compare a run that sent none with the first one.
        assert (undisturbed if life.times_sent else first).aftermath == life.aftermath
    assert (Ending(None, was_caught=True, is_ambiguous=False), 0) == (first.ending, first.times_sent)
    assert 1 == len(second.ending.abandoned)
    assert undisturbed == runs.cancelled[-1]


def assert_harmless(life: Life, undisturbed: Life, operation: Operation) -> None:
    """Check a cancelled call against the one that was not cancelled."""
    ending = life.ending
    if ending.outcome is not None:
        assert undisturbed.ending == ending
    else:
        assert ending.was_caught
        assert ending.is_ambiguous is not None
        # ``fail_after`` must report an applied operation as ambiguous, and one that was not sent as unambiguous.
        assert bool(life.times_applied) <= ending.is_ambiguous <= bool(life.times_sent)
        assert all(abandoned.ambiguous == ending.is_ambiguous for abandoned in ending.abandoned)
        assert all(abandoned.key == operation.key for abandoned in ending.abandoned)
    assert life.times_applied <= 1
    assert life.times_sent <= undisturbed.times_sent


def report(record_property: Record, situation: str, what: str, runs: Runs[T]) -> None:
    """Record the number of moments for the summary, and check that the call was cancelled at each."""
    record_property("cancelled", (situation, what, runs.moments, runs.checkpoints))

    assert runs.moments + 1 == len(runs.cancelled)
    assert runs.checkpoints


def test_no_operation_is_left_out() -> None:
    """Every public coroutine of these classes is in a table of this module, or tested in another module."""
    found = {
        f"{kind.__name__}.{name}"
        for kind in (Cluster, Bucket, Scope, Collection, BinaryCollection, CollectionManager)
        for name, member in inspect.getmembers(kind, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    tested = {f"Collection.{operation.name}" for operation in COLLECTION_OPERATIONS}
    tested |= {f"BinaryCollection.{operation.name}" for operation in BINARY_OPERATIONS}
    # These calls perform several operations each; test_replicas.py tests them.
    tested |= {"Collection.get_any_replica", "Collection.lookup_in_any_replica"}
    tested |= {"Cluster.save_tape"}  # test_decision_tape.py tests it.
    tested |= {*of_health.CALLS, *(of_services.CALLS.keys() - {"Cluster.query"})}

    assert found == tested


# -- Concurrent calls.


async def share(moments: Moments) -> tuple[Ending, Sequence[object], Aftermath]:
    """Cancel one of several calls on a connection. Return its ending, the others' results, and the final state."""
    found: list[object] = []

    async def count(collection: Collection) -> None:
        for _ in range(3):
            counter = await collection.binary.increment("hits")
            found.append(counter.content)

    async with open_fake_cluster(options=NODE) as fake, fake.open_client() as cluster:
        furnish(fake)
        collection = cluster.bucket(BUCKET).default_collection()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count, collection)
            nursery.start_soon(count, collection)
            ending = await end_of(lambda: collection.upsert("ada", 1), moments)
        await trio.sleep(SETTLING_SECONDS)
        await use(collection)
        return ending, found, aftermath(fake, cluster, moments)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_calls_on_the_same_connection_are_unaffected(seed: int, record_property: Record) -> None:
    """If a task is cancelled at any moment, two other tasks on its connection count correctly."""
    runs = at_every_moment(share, seed=seed)
    report(record_property, "among others", f"upsert ({seed})", runs)

    assert 0 < sum(ending.outcome is None for ending, _, _ in runs.cancelled) < len(runs.cancelled)
    for _, found, left in runs.cancelled:
        assert [8, 9, 10, 11, 12, 13] == sorted(found)  # type: ignore[type-var]
        assert runs.undisturbed[2] == left


async def leave_together(moments: Moments) -> tuple[Ending, set[str], set[str], Aftermath]:
    """Return the ending of a block of calls, the calls that returned, those that were applied, and the final state."""
    keys = {"ada", "bob", "eve"}
    returned: set[str] = set()

    async def store(collection: Collection, key: str) -> None:
        await collection.upsert(key, 1)
        returned.add(key)

    async def store_all(collection: Collection) -> None:
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(store, collection, key)

    async with open_fake_cluster(options=NODE) as fake, fake.open_client() as cluster:
        collection = cluster.bucket(BUCKET).default_collection()
        ending = await end_of(partial(store_all, collection), moments)
        await trio.sleep(SETTLING_SECONDS)
        applied = {key for key in keys if fake.node.documents.get(BUCKET, key) is not None}
        await use(collection)
        return ending, returned, applied, aftermath(fake, cluster, moments)


def test_a_block_lists_each_of_its_calls(record_property: Record) -> None:
    """If one scope cancels several calls, each applied call has returned or is in the timeout's list as ambiguous."""
    runs = at_every_moment(leave_together)
    report(record_property, "together", "three upserts", runs)

    for ending, returned, applied, left in runs.cancelled:
        ambiguous = {abandoned.key for abandoned in ending.abandoned if abandoned.ambiguous}
        assert returned <= applied <= returned | ambiguous
        assert bool(ambiguous) == bool(ending.is_ambiguous)
        assert runs.undisturbed[3] == left


# -- Opening, running and closing a client.


async def open_and_leave(moments: Moments) -> tuple[Ending, bool, Mapping[str, int]]:
    """Return the ending of a client's entire life, whether its block completed, and the remaining tasks."""
    did_end = False

    async def whole_life() -> None:
        nonlocal did_end
        async with open_cluster(fake.connection_string, fake.authenticator, connector=fake.connector) as cluster:
            await cluster.bucket(BUCKET).default_collection().upsert("ada", 1)
            did_end = True

    async with open_fake_cluster(options=NODE) as fake:
        ending = await end_of(whole_life, moments)
        await trio.sleep(SETTLING_SECONDS)
        left = moments.tasks
        async with fake.open_client() as cluster:
            await use(cluster.bucket(BUCKET).default_collection())
        return ending, did_end, left


def test_a_client_cancelled_at_every_moment(record_property: Record) -> None:
    """A client that is cancelled while it is opened, used or closed leaves no task, and the next client works."""
    runs = at_every_moment(open_and_leave)
    report(record_property, "opened and left", "open_cluster", runs)

    for ending, did_end, left in runs.cancelled:
        assert (ending.outcome is None) == ending.was_caught
        assert did_end or ending.was_caught
        assert not any("triclinium._" in name for name in left)
        assert runs.undisturbed[2] == left
    # At some moments of leaving, a cancellation has no effect, as in trio's nurseries: the block has completed.
    assert any(did_end and not ending.was_caught for ending, did_end, _ in runs.cancelled[:-1])


async def start_in_nursery(moments: Moments) -> tuple[Ending, bool, Mapping[str, int]]:
    """Return the ending of ``nursery.start(run_cluster)``, whether the cluster worked, and the remaining tasks."""
    worked = False
    async with open_fake_cluster(options=NODE) as fake:
        async with trio.open_nursery() as nursery:
            started: list[Cluster] = []

            async def start() -> None:
                run = partial(triclinium.run_cluster, connector=fake.connector)
                started.append(await nursery.start(run, fake.connection_string, fake.authenticator))

            ending = await end_of(start, moments)
            for cluster in started:
                await use(cluster.bucket(BUCKET).default_collection())
                worked = True
            nursery.cancel_scope.cancel()
        await trio.sleep(SETTLING_SECONDS)
        return ending, worked, moments.tasks


def test_start_in_a_nursery_cancelled_at_every_moment(record_property: Record) -> None:
    """A cancelled start results either in a working cluster, or in no cluster and no task in the nursery."""
    runs = at_every_moment(start_in_nursery)
    report(record_property, "started", "run_cluster", runs)

    for ending, worked, left in runs.cancelled:
        assert worked == (ending.outcome is not None)
        assert worked != ending.was_caught
        assert runs.undisturbed[2] == left


async def run_until_cancelled(moments: Moments) -> tuple[Ending, Mapping[str, int]]:
    """Return the ending of ``run_cluster`` in use, and the remaining tasks."""
    async with open_fake_cluster(options=NODE) as fake:

        async def work() -> None:
            async with trio.open_nursery() as nursery:
                run = partial(triclinium.run_cluster, connector=fake.connector)
                cluster = await nursery.start(run, fake.connection_string, fake.authenticator)
                await use(cluster.bucket(BUCKET).default_collection())
                nursery.cancel_scope.cancel()

        ending = await end_of(work, moments)
        await trio.sleep(SETTLING_SECONDS)
        return ending, moments.tasks


def test_a_running_cluster_cancelled_at_every_moment(record_property: Record) -> None:
    """A nursery with a running cluster that is cancelled at any moment ends with all tasks of the cluster."""
    runs = at_every_moment(run_until_cancelled)
    report(record_property, "running", "run_cluster", runs)

    for ending, left in runs.cancelled:
        assert (ending.outcome is None) == ending.was_caught
        assert runs.undisturbed[1] == left
