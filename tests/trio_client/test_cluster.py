"""Opening and leaving: what the caller gets, and that the nursery inside is never seen."""

from __future__ import annotations

import inspect
import random
import ssl
from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.rows import rows
from tests.trio_client.doubles import (
    DONE,
    OPEN_STREAM,
    HalfDeafStream,
    connector_that_raises,
    connector_to,
    driver_of,
    open_driver,
    open_scripted,
    perform,
    settle,
)
from triclinium import (
    CertificateAuthenticator,
    Cluster,
    JwtAuthenticator,
    PasswordAuthenticator,
    open_cluster,
    run_cluster,
)
from triclinium._cluster import running
from triclinium._doors import make_driver
from triclinium._driver import Driver
from triclinium._log import Log
from triclinium.errors import InternalError, InvalidArgumentException
from triclinium_core.kv.events import OperationSubmitted, TimePassed
from triclinium_core.kv.operation.requests import Keyspace, Noop
from triclinium_core.options import ClientOptions
from triclinium_core.testing.driver_laws import ScriptedMachine, on

AUTHENTICATOR = PasswordAuthenticator("app", "secret")
UNREACHABLE = connector_that_raises(ConnectionRefusedError())
DEFECT = KeyError("a defect")
TLS = "couchbases://10.0.0.5"


# -- What leaves the block.


@pytest.mark.parametrize(
    "error",
    [
        ValueError("mine"),
        ExceptionGroup("mine", [ValueError(), ExceptionGroup("inner", [KeyError()])]),
        BaseExceptionGroup("mine", [KeyboardInterrupt()]),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        StopAsyncIteration(),
        trio.ClosedResourceError(),
    ],
    ids=repr,
)
async def test_an_exception_leaves_the_block_as_the_very_same_object(error: BaseException) -> None:
    """Neither wrapped nor copied, without a cause and without a context that it did not have."""
    caught: BaseException | None = None
    try:
        async with open_scripted(ScriptedMachine()):
            raise error
    except BaseException as raised:
        caught = raised

    assert error is caught
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not hasattr(error, "__notes__")


async def test_a_cancellation_leaves_the_block_as_the_very_same_object() -> None:
    """Cancelled is on its way to its scope, and nobody stops it."""
    seen: list[BaseException] = []
    with trio.CancelScope() as scope:
        try:
            async with open_scripted(ScriptedMachine()):
                try:
                    scope.cancel()
                    await trio.sleep_forever()
                except trio.Cancelled as cancelled:
                    seen.append(cancelled)
                    raise
        except trio.Cancelled as cancelled:
            seen.append(cancelled)
            raise

    assert seen[0] is seen[1]
    assert scope.cancelled_caught


async def test_a_cancellation_while_the_block_is_left_is_not_lost() -> None:
    """Leaving is no place to be cancelled at, as with Trio's nurseries; the next checkpoint is."""
    with trio.CancelScope() as scope:
        async with open_scripted(ScriptedMachine()):
            scope.cancel()
        await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught


async def test_a_cancellation_while_the_block_is_entered_is_not_lost() -> None:
    """A caller whose time is up does not enter, and nothing is left running."""
    entered: list[Cluster] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_scripted(ScriptedMachine()) as cluster:
            entered.append(cluster)

    assert [] == entered
    assert scope.cancelled_caught


async def test_entering_and_leaving_are_checkpoints() -> None:
    """Both let other tasks run."""
    block = open_scripted(ScriptedMachine())
    with trio.testing.assert_checkpoints():
        await block.__aenter__()
    with trio.testing.assert_checkpoints():
        await block.__aexit__(None, None, None)


async def test_leaving_closes_connections_at_once() -> None:
    """There is nothing to drain: whoever asked for an operation has awaited it."""
    stream = HalfDeafStream()
    async with open_driver(ScriptedMachine(on(TimePassed, OPEN_STREAM)), connector_to(stream)):
        await trio.testing.wait_all_tasks_blocked()
        before = stream.is_closed

    assert not before
    assert stream.is_closed


async def test_closing_is_protected_from_ctrl_c() -> None:
    """Struck between the end of the block and the closing, the background would never end."""
    protected: list[bool] = []

    class Noting(Driver):
        def close(self) -> None:
            protected.append(trio.lowlevel.currently_ki_protected())
            super().close()

    driver = Noting(ScriptedMachine(), connector=UNREACHABLE, log=Log())
    async with running(driver, "couchbase://a"):
        unprotected = trio.lowlevel.currently_ki_protected()

    assert not unprotected
    assert protected
    assert all(protected)


# -- When a background task crashes.


async def crash(body: Callable[[], object] | None = None, error: BaseException = DEFECT) -> BaseException:
    """Return what leaves a block whose background crashes; ``body`` runs when the crash has cancelled it."""
    machine = ScriptedMachine(on(TimePassed, OPEN_STREAM))
    try:
        async with open_driver(machine, connector_that_raises(error)):
            try:
                await trio.sleep_forever()
            finally:
                if body is not None:
                    body()
    except BaseException as raised:
        return raised
    pytest.fail("nothing left the block")


async def test_a_crash_in_the_background_is_an_internal_error() -> None:
    """It cancels the block, and leaves with the group of what crashed as its cause."""
    left = await crash()

    assert isinstance(left, InternalError)
    assert isinstance(left.__cause__, ExceptionGroup)
    assert "please report this" in str(left)


@pytest.mark.parametrize("error", [ValueError("mine"), ExceptionGroup("mine", [ValueError(), KeyError()])], ids=repr)
async def test_a_crash_does_not_hide_an_exception_of_the_block(error: Exception) -> None:
    """The caller's own exception wins, the very same object, and carries the crash as a note."""

    def body() -> None:
        raise error

    left = await crash(body)

    assert error is left
    assert "a background task of triclinium crashed: ExceptionGroup" in left.__notes__[0]
    assert "a defect" in left.__notes__[0]


async def test_a_crash_that_cancels_a_nursery_of_the_block_is_an_internal_error() -> None:
    """A group of nothing but Cancelled is the crash's doing; it must not get past the scope that it was for."""
    machine = ScriptedMachine(on(TimePassed, OPEN_STREAM))
    with pytest.raises(InternalError):
        async with open_driver(machine, connector_that_raises(DEFECT)), trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)


async def test_of_a_group_only_what_is_the_callers_own_survives_a_crash() -> None:
    """Cancelled was for the nursery that has ended, and would end the whole program if it got any further."""

    async def fail() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("mine")

    machine = ScriptedMachine(on(TimePassed, OPEN_STREAM))
    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")) as caught:
        async with open_driver(machine, connector_that_raises(DEFECT)), trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    assert "crashed" in caught.value.__notes__[0]


async def test_what_ends_the_program_is_no_crash() -> None:
    """SystemExit in the background leaves as it is, whatever the block says."""

    def body() -> None:
        raise ValueError("mine")

    ending = SystemExit(3)
    left = await crash(body, ending)

    assert left is ending
    assert isinstance(left.__context__, ValueError)


# -- The cluster.


async def test_a_noop_needs_no_bucket() -> None:
    """It travels over the connection of a bucket, or over the one that belongs to none."""
    machine = ScriptedMachine(settle)
    async with open_scripted(machine) as cluster:
        await cluster._noop()
        await cluster._noop("travel")

    assert [Noop(Keyspace(None)), Noop(Keyspace("travel"))] == [event.operation for event in machine.submitted]


async def test_statistics_outlive_the_cluster() -> None:
    """The last snapshot can still be looked at after the block."""
    async with open_scripted(ScriptedMachine()) as cluster:
        pass

    assert 42 == cluster.statistics().open_operations


async def test_a_plain_memcached_has_one_collection() -> None:
    """Its documents have no bucket."""
    async with open_scripted(ScriptedMachine()) as cluster:
        collection = cluster.default_collection()

    assert collection.bucket_name is None


# -- The public doors.


async def test_opening_waits_for_nothing() -> None:
    """Whatever is wrong with the network shows in the first operation."""
    async with open_cluster("couchbase://10.0.0.5", AUTHENTICATOR, connector=UNREACHABLE) as cluster:
        bucket = cluster.bucket("travel")

    assert "travel" == bucket.name


async def test_a_cluster_may_live_in_a_nursery_of_ones_own() -> None:
    """The start protocol hands out the cluster, and cancelling closes it."""
    async with trio.open_nursery() as nursery:
        cluster = await nursery.start(lambda task_status: run_unreachable(task_status=task_status))
        collection = cluster.bucket("travel").default_collection()
        nursery.cancel_scope.cancel()

    with pytest.raises(trio.ClosedResourceError):
        await collection.get("ada")


async def run_unreachable(*, task_status: trio.TaskStatus[Cluster]) -> None:
    """Run a cluster that reaches nobody."""
    await run_cluster("couchbase://10.0.0.5", AUTHENTICATOR, connector=UNREACHABLE, task_status=task_status)


def test_both_doors_take_the_same_arguments() -> None:
    """``run_cluster`` adds the task status, and nothing else differs, defaults included."""
    opened = dict(inspect.signature(open_cluster).parameters)
    run = dict(inspect.signature(run_cluster).parameters)
    run.pop("task_status")

    assert opened == run


class ByeConnector:
    """No connector, for want of a method."""


@rows(
    ("parameter", "arguments"),
    [
        ("connection_string", {"connection_string": "10.0.0.5"}),
        ("connection_string", {"connection_string": 5}),
        ("authenticator", {"authenticator": None}),
        ("authenticator", {"authenticator": ("app", "secret")}),
        ("timeouts", {"timeouts": 2.5}),
        ("retry_strategy", {"retry_strategy": "best effort"}),
        ("circuit_breaker", {"circuit_breaker": False}),
        ("ssl_context", {"ssl_context": "system"}),
        ("ssl_context", {"ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "connector": UNREACHABLE}),
        ("ssl_context", {"ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}),
        ("authenticator", {"authenticator": "app:secret"}),
        ("authenticator", {"authenticator": PasswordAuthenticator}),
        ("authenticator", {"authenticator": JwtAuthenticator("a.b.c")}),
        ("authenticator", {"authenticator": CertificateAuthenticator("ada.pem")}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator()}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator("nowhere.pem")}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator(__file__)}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator(__file__, __file__)}),
        (
            "authenticator",
            {"connection_string": TLS, "authenticator": CertificateAuthenticator("a.pem"), "connector": UNREACHABLE},
        ),
        ("connector", {"connector": ByeConnector()}),
        ("connector", {"connector": type(UNREACHABLE)}),
        ("hello_after_auth", {"hello_after_auth": "yes"}),
        ("renegotiate_on_corrupt_error_map", {"renegotiate_on_corrupt_error_map": 1}),
        ("compression", {"compression": None}),
        ("network", {"network": None}),
        ("enable_dns_srv", {"enable_dns_srv": 1}),
        ("resolver", {"resolver": ByeConnector()}),
        ("resolver", {"resolver": type(UNREACHABLE)}),
        ("network", {"network": ""}),
        ("redact_logs", {"redact_logs": "no"}),
    ],
)
def test_a_wrong_argument_is_refused_at_once(parameter: str, arguments: dict[str, object]) -> None:
    """Every argument is checked when it is passed, and named when it is wrong."""
    given: dict[str, object] = {"connection_string": "couchbase://10.0.0.5", "authenticator": AUTHENTICATOR}
    with pytest.raises(InvalidArgumentException) as caught:
        open_cluster(**{**given, **arguments})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter
    assert "secret" not in str(caught.value)


def test_randomness_is_drawn_from_what_is_passed() -> None:
    """A test that passes a seed has the same client every time."""
    drawn: list[float] = []

    class Counting(random.Random):
        def random(self) -> float:
            drawn.append(super().random())
            return drawn[-1]

    make_driver(ClientOptions(connection_string="memcached://10.0.0.5"), connector=UNREACHABLE, rng=Counting(7))

    assert random.Random(7).random() == drawn[0]


async def test_one_cluster_serves_many_tasks() -> None:
    """Tasks that share a cluster do not wait for one another."""
    machine = ScriptedMachine(settle)
    results: list[object] = []
    driver = driver_of(machine)

    async def ask(key: str) -> None:
        results.append(await perform(driver, key))

    async with trio.open_nursery() as outer:
        outer.start_soon(driver.run)
        await driver.started.wait()
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(ask, f"key-{number}")
        driver.close()

    assert [DONE] * 10 == results
    assert 10 == sum(isinstance(event, OperationSubmitted) for event in machine.events)
