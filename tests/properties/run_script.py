"""Runner of scripts: the real client runs in virtual time, and a checker follows each step of its node."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count

import trio

from tests.properties import scripts
from tests.properties.calls import BINARY, strategy_named, submit
from tests.properties.checker import BREAKER, CheckedNode, Checker
from tests.properties.fragile import FragileConnector
from tests.trio_client.cancelling import Moments, run_in_virtual_time
from triclinium import AbandonedOperation, Cluster, Collection, TimeoutOptions, errors, fail_after
from triclinium.retries import AnyRetryStrategy
from triclinium.testing import FakeConnector
from triclinium.testing._fake_cluster import fake_cluster
from triclinium.testing._node_server import serving
from triclinium_core.kv.operation.document_operations import DocumentOperation, Get, Keyspace
from triclinium_core.kv.operation.results import Done, Result
from triclinium_core.testing import ErrorMapDocument, FakeNodeOptions, LoggedCommand, delay
from triclinium_core.testing.hypothesis_strategies import Strike
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle.submissions import Place, Submission, Violation

KV_SECONDS = TimeoutOptions().kv
ROUNDING = 1e-6
"""Largest rounding error of a sum of many short times, in seconds."""
RECOVERY_SECONDS = 60.0
"""Longest recovery after the last fault: connect, silence, keep-alive, backoff, breaker, canary, and a margin."""
RECOVERY_STEP = 0.5
DRAINING_SECONDS = 5.0
"""Time after which all delayed responses have arrived."""

NODE = FakeNodeOptions(
    buckets=(scripts.BUCKET,),
    vbuckets=128,
    error_map=ErrorMapDocument(revision=1, rows=()),
    collections={"_default": {"_default": 0}, scripts.SCOPE: {scripts.COLLECTION: scripts.COLLECTION_ID}},
)


class MineError(Exception):
    """Exception that the user's code raises."""


@dataclass(frozen=True, slots=True)
class Run:
    """Result of one run of a script."""

    transcript: Sequence[str]
    """Result of each call, with the time of the result."""
    seconds: float
    """Duration of the run in virtual time."""
    commands: Sequence[LoggedCommand]
    """Commands that the node has received."""


def run_script(script: scripts.Script) -> Run:
    """Run ``script`` to its end.

    Raises:
        Violation: the client broke a rule of the model.
        Exception: the client raised an unexpected exception.
    """
    moments = Moments()
    return run_in_virtual_time(ScriptRunner(script, moments).run, instruments=[moments], seed=script.seed)


class ScriptRunner:
    """One run of one script, with its own node and client."""

    def __init__(self, script: scripts.Script, moments: Moments) -> None:
        self._script = script
        self._moments = moments
        self._checker = Checker()
        self._node = CheckedNode(NODE, self._checker)
        self._tokens = count(1)
        self._transcript: list[str] = []
        self._cluster: Cluster
        self._connector: FragileConnector
        self._exit: Exception | None = None
        """Exception with which the user's code leaves the client's block."""
        self._left: list[Submission] = []
        """Operations without a result, because their callers were cancelled from outside."""

    async def run(self) -> Run:
        """Run the script to its end. Return its result."""
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(self._node))
            inner = FakeConnector(server, piece_sizes=self._script.piece_sizes)
            self._connector = FragileConnector(inner, self._checker.broke)
            self._checker.is_cut_off = lambda: any(stream.is_broken for stream in self._connector.open_streams)
            fake = fake_cluster(server, self._connector)
            outside = await stack.enter_async_context(trio.open_nursery())
            with trio.CancelScope() as scope:
                client = fake.open_client(
                    seed=self._script.seed,
                    circuit_breaker=BREAKER,
                    timeouts=TimeoutOptions(),
                )
                try:
                    async with client as self._cluster:
                        await self._live(outside)
                        await self._leave(scope)
                except (MineError, ExceptionGroup) as error:
                    if error is not self._exit:
                        raise
            self._left_at = trio.current_time()
        await self._check_closed(scope)
        return Run(self._transcript, trio.current_time(), list(self._node.command_log))

    async def _live(self, outside: trio.Nursery) -> None:
        self._checker.statistics = self._cluster.statistics
        if self._script.begins_connected:
            await self._call(scripts.ScriptedCall(OperationTemplate("upsert", Place(scripts.DEFAULT, "ada"))))
            await self._call(
                scripts.ScriptedCall(OperationTemplate("increment", Place(scripts.DEFAULT, "hits"), flag=True))
            )
        for step in self._script.steps:
            await self._take(step)
            self._checker.check()
        await self._recover()
        await self._serve()
        if self._script.outsiders:
            self._node.faults.always(None, delay(1.0))
            for call in self._script.outsiders:
                outside.start_soon(self._call_from_outside, call)
            await trio.sleep(0.5)

    # Exit from the client's block, and calls from outside.

    async def _leave(self, scope: trio.CancelScope) -> None:
        match self._script.leaves_by:
            case "an exception":
                self._exit = MineError()
            case "a group":
                self._exit = ExceptionGroup("mine", [MineError(), ExceptionGroup("inner", [MineError()])])
            case "a cancellation":
                scope.cancel()
                await trio.sleep_forever()
            case _:
                pass
        if self._exit is not None:
            raise self._exit

    async def _check_closed(self, scope: trio.CancelScope) -> None:
        assert scope.cancelled_caught == (self._script.leaves_by == "a cancellation")
        assert trio.current_time() == self._left_at, "closing the client delayed the exit"
        assert not self._connector.open_streams
        try:
            await self._collection(scripts.DEFAULT).get("ada")
        except trio.ClosedResourceError:
            return
        raise Violation("a closed client still performs operations")

    async def _call_from_outside(self, call: scripts.ScriptedCall) -> None:
        submissions: list[Submission] = []
        try:
            await self._call(call, submissions.append)
        except trio.ClosedResourceError:
            self._checker.abandoned(submissions[0], ambiguous=True)
            self._note("closed", submissions[0])

    # Execution of steps.

    async def _take(self, step: scripts.ScriptStep) -> None:
        match step:
            case scripts.ScriptedCall():
                await self._call(step)
            case scripts.CancelledCall(call, moment):
                self._moments.cancel_at = moment
                await self._call(call, is_counted=True)
            case scripts.StruckCall(call, strike):
                strike.arm(self._node.faults)
                await self._call(call)
            case scripts.Together():
                await self._call_together(step)
            case Strike():
                step.arm(self._node.faults)
            case scripts.Wait(seconds):
                await trio.sleep(seconds)
            case scripts.CutOff(after_bytes):
                for stream in self._connector.open_streams:
                    stream.cut_off(after_bytes)

    async def _call_together(self, step: scripts.Together) -> None:
        mine = MineError()

        async def fail(after: float) -> None:
            await trio.sleep(after)
            raise mine

        async def call_all() -> None:
            async with trio.open_nursery() as nursery:
                for call in step.calls:
                    nursery.start_soon(self._call, call)
                if step.fails_after is not None:
                    nursery.start_soon(fail, step.fails_after)

        for strike in step.strikes:
            strike.arm(self._node.faults)
        reported: Sequence[AbandonedOperation] | None = ()
        try:
            with fail_after(math.inf if step.within is None else step.within):
                await call_all()
        except (errors.AmbiguousTooSlowError, errors.UnambiguousTooSlowError) as error:
            reported = error.operations
        except ExceptionGroup as group:
            if group.exceptions != (mine,):
                raise
            reported = None
        for submission in self._left:
            self._checker.abandoned(submission, ambiguous=_was_ambiguous(submission, reported))
        self._left.clear()

    async def _call(
        self,
        call: scripts.ScriptedCall,
        begun: Callable[[Submission], None] = lambda submission: None,
        *,
        is_counted: bool = False,
    ) -> None:
        operation = call.template.make(self._checker.model)
        submission = self._checker.submitted(next(self._tokens), operation)
        begun(submission)
        began = trio.current_time()
        try:
            with fail_after(math.inf if call.within is None else call.within) as scope:
                perform = partial(self._perform, operation, call, strategy_named(call.strategy, scope))
                if is_counted:
                    with self._moments.of_call(scope):
                        reported = await _reported(perform)
                else:
                    reported = await _reported(perform)
        except (errors.AmbiguousTooSlowError, errors.UnambiguousTooSlowError) as error:
            assert [(operation.name, operation.key)] * len(error.operations) == [
                (abandoned.operation, abandoned.key) for abandoned in error.operations
            ]
            self._checker.abandoned(submission, ambiguous=isinstance(error, errors.AmbiguousTooSlowError))
            self._note(type(error).__name__, submission)
        except trio.Cancelled:
            self._left.append(submission)
            self._note("cancelled", submission)
            raise
        else:
            if trio.current_time() > began + KV_SECONDS + ROUNDING:
                raise Violation(f"{submission} took {trio.current_time() - began} s, more than the kv timeout")
            if isinstance(reported, errors.CouchbaseException):
                self._note(f"{type(reported).__name__} {reported.context.retry_attempts}", submission)
                self._checker.failed(submission, reported)
            else:
                self._note(repr(reported), submission)
                self._checker.completed(submission, reported)

    async def _perform(
        self, operation: DocumentOperation, call: scripts.ScriptedCall, strategy: AnyRetryStrategy | None
    ) -> Result:
        collection = self._collection(operation.keyspace)
        if call.template.flag and isinstance(operation, Get):
            found = await collection.get_or_none(operation.key, transcoder=BINARY, retry_strategy=strategy)
            if found is None:
                raise errors.DocumentNotFoundException("None was returned")
            return found
        result = await submit(collection, operation, strategy)
        return Done() if result is None else result

    def _collection(self, keyspace: Keyspace) -> Collection:
        return self._cluster.bucket(scripts.BUCKET).scope(keyspace.scope).collection(keyspace.collection)

    def _note(self, outcome: str, submission: Submission) -> None:
        self._transcript.append(f"{trio.current_time():.6f} {submission}: {outcome}")

    # Liveness: without faults, the client recovers and serves.

    async def _recover(self) -> None:
        """Clear all faults, then wait until the client has recovered and delayed responses have arrived."""
        self._node.faults.clear()
        for stream in self._connector.open_streams:
            if not stream.is_broken:
                stream.cut_off(None)
        give_up = trio.current_time() + RECOVERY_SECONDS
        await trio.sleep(RECOVERY_STEP)
        while not self._checker.is_healthy:
            if trio.current_time() >= give_up:
                raise Violation(f"unhealthy {RECOVERY_SECONDS:g} s after the last fault: {self._checker.describe()}")
            await trio.sleep(RECOVERY_STEP)
        await trio.sleep(DRAINING_SECONDS)
        statistics = self._cluster.statistics()
        assert 0 == statistics.open_operations
        assert self._checker.may_be_in_flight(statistics.in_flight)
        self._checker.model.quieted()

    async def _serve(self) -> None:
        """Read and write documents. A failure is a violation, because no fault excuses it."""
        began = trio.current_time()
        for place in _places():
            await self._call(scripts.ScriptedCall(OperationTemplate("get", place)))
        for keyspace in scripts.KEYSPACES:
            for kind in ("upsert", "append", "get", "remove"):
                await self._call(scripts.ScriptedCall(OperationTemplate(kind, Place(keyspace, "later"))))
        self._checker.check()
        assert began == trio.current_time()


def _places() -> Iterable[Place]:
    return (Place(keyspace, key) for keyspace in scripts.KEYSPACES for key in ("ada", "bob", "hits"))


async def _reported(perform: Callable[[], Awaitable[Result]]) -> Result | errors.CouchbaseException:
    """Return the result of a call, or the CouchbaseException that it raises."""
    try:
        return await perform()
    except errors.CouchbaseException as error:
        return error


def _was_ambiguous(submission: Submission, reported: Sequence[AbandonedOperation] | None) -> bool:
    """Return whether ``fail_after`` reported the operation as ambiguous. True if there was no report."""
    if reported is None:
        return True
    operation = submission.operation
    return any(
        abandoned.ambiguous
        for abandoned in reported
        if (abandoned.operation, abandoned.key) == (operation.name, operation.key)
    )
