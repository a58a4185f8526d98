"""Exceptions that leave a client's block, and the state of the client after the block."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import MockClock

from tests.rows import rows
from tests.trio_client.pair import OPTIONS, open_pair
from tests.trio_client.test_wrong_arguments import NAMES, method_of, right_arguments
from triclinium import Cluster, run_cluster
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing import drop_response


@rows(
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
        trio.TooSlowError(),
    ],
)
async def test_the_blocks_exception_is_raised_unchanged(autojump_clock: MockClock, error: BaseException) -> None:
    """An exception of the block leaves it as the same object, unchanged, even with open connections."""
    caught: BaseException | None = None
    async with open_fake_cluster(options=OPTIONS) as fake:
        try:
            async with fake.open_client() as cluster:
                fake.node.faults.next(Opcode.GET, drop_response())
                with trio.move_on_after(0.1):
                    await cluster.bucket("travel").default_collection().get("ada")
                raise error
        except BaseException as raised:
            caught = raised

    assert error is caught
    assert (None, None) == (error.__cause__, error.__context__)
    assert not hasattr(error, "__notes__")


async def test_a_cancellation_is_raised_unchanged(autojump_clock: MockClock) -> None:
    """Cancelled reaches its scope from within a call as the same object."""
    seen: list[BaseException] = []
    async with open_fake_cluster(options=OPTIONS) as fake:
        fake.node.faults.next(Opcode.GET, drop_response())
        with trio.move_on_after(0.1) as scope:
            try:
                async with fake.open_client() as cluster:
                    try:
                        await cluster.bucket("travel").default_collection().get("ada")
                    except trio.Cancelled as cancelled:
                        seen.append(cancelled)
                        raise
            except trio.Cancelled as cancelled:
                seen.append(cancelled)
                raise

    assert scope.cancelled_caught
    assert seen[0] is seen[1]


async def test_an_inner_nurserys_group_is_raised_unchanged(autojump_clock: MockClock) -> None:
    """An exception of a child task arrives only in the group of the nursery that started the task."""

    async def fail() -> None:
        await trio.sleep(0.1)
        raise ValueError("mine")

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")):
        async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
            fake.node.faults.next(Opcode.GET, drop_response())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cluster.bucket("travel").default_collection().get, "ada")
                nursery.start_soon(fail)


async def test_calls_after_the_block_are_refused(autojump_clock: MockClock) -> None:
    """After the block, a collection's calls immediately raise ClosedResourceError, and the node receives nothing."""
    async with open_fake_cluster(options=OPTIONS) as fake:
        async with fake.open_client() as cluster:
            people = cluster.bucket("travel").default_collection()
            await people.exists("ada")
        before = len(fake.node.command_log)
        for name in NAMES:
            method = method_of(people, name)
            with trio.testing.assert_checkpoints(), pytest.raises(trio.ClosedResourceError, match="inside its block"):
                await method(**right_arguments(method))
        await trio.sleep(10)

        assert before == len(fake.node.command_log)


async def test_a_cancelled_block_can_still_write(autojump_clock: MockClock) -> None:
    """A write succeeds in a shielded scope of a cancelled block."""
    async with open_pair() as (fake, _, _):
        with trio.move_on_after(0.1):
            async with fake.open_client() as cluster:
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.CancelScope(shield=True):
                        await cluster.bucket("travel").default_collection().upsert("last words", 1)

        assert fake.node.documents.get("travel", "last words") is not None


async def test_a_cluster_in_the_callers_nursery(autojump_clock: MockClock) -> None:
    """The cluster of ``run_cluster`` works until its nursery is cancelled, and is then closed."""
    async with open_fake_cluster(options=OPTIONS) as fake:
        async with trio.open_nursery() as nursery:
            run = partial(run_cluster, connector=fake.connector)
            cluster: Cluster = await nursery.start(run, fake.connection_string, fake.authenticator)
            people = cluster.bucket("travel").default_collection()
            await people.upsert("ada", 1)
            nursery.cancel_scope.cancel()
        with pytest.raises(trio.ClosedResourceError):
            await people.get("ada")

        assert fake.node.documents.get("travel", "ada") is not None
