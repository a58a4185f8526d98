"""Rows as a block gets them: in their order, decoded when they are taken, and none after the block."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import assert_checkpoints, assert_no_checkpoints, wait_all_tasks_blocked

from tests.rows import rows
from tests.trio_client._services.pieces import METADATA, Pieces
from tests.trio_client.doubles import open_scripted
from triclinium import QueryResult, errors
from triclinium_core.contract.couchbase import Action, Event, OperationAbandoned, RowsWanted
from triclinium_core.services.answer import decoded_limits

STATEMENT = "SELECT p.* FROM people p"


class Person(msgspec.Struct):
    """What a row is decoded into."""

    name: str


@rows(
    "pieces",
    [
        ([b'{"a":1}', b"2", b'"three"'], METADATA),
        ([b'{"a":1}'], [b"2"], [b'"three"'], METADATA),
    ],
)
async def test_rows(pieces: Any) -> None:
    """All of them, in whatever pieces they come; then the loop ends, and ends again."""
    async with open_scripted(Pieces(*pieces).machine) as cluster, cluster.query(STATEMENT) as result:
        assert [{"a": 1}, 2, "three"] == [row async for row in result]
        assert [] == [row async for row in result] == await result.rows()
        assert METADATA == await result.metadata()


async def test_all_at_once() -> None:
    """``rows`` returns those that were not taken yet."""
    pieces = Pieces([b"1", b"2"], [b"3"], [b"4"], METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query(STATEMENT) as result:
        assert 1 == await anext(result)
        assert [2, 3, 4] == await result.rows()


async def test_row_type() -> None:
    """Rows become objects of a type, or stay the JSON text for ``bytes``."""
    row = b'{"name":"ada"}'
    async with open_scripted(Pieces([row], METADATA, [row], METADATA).machine) as cluster:
        async with cluster.query(STATEMENT, row_type=Person) as people:
            assert [Person("ada")] == await people.rows()
        async with cluster.query(STATEMENT, row_type=bytes) as texts:
            assert [row] == await texts.rows()


async def test_a_row_with_a_lone_surrogate() -> None:
    """It raises by its index and says what is wrong; those around it can be taken, and all of them as text."""
    pieces = [b"1", rb'["\ud83d\ude00","\ud800"]', b"3"], METADATA
    async with open_scripted(Pieces(*pieces, *pieces).machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            assert 1 == await anext(result)
            with pytest.raises(errors.DecodingFailureException, match=r"row 1 .*\\ud800.*byte 17"):
                await anext(result)
            assert [3] == await result.rows()
        async with cluster.query(STATEMENT, row_type=bytes) as texts:
            assert [b"1", rb'["\ud83d\ude00","\ud800"]', b"3"] == await texts.rows()


async def test_a_row_of_another_type() -> None:
    """It raises by its index, counted from 0 among all rows; those after it can be taken."""
    pieces = Pieces([b'{"name":"ada"}', b'{"name":5}'], [b"[" * 100_000, b'{"name":"eve"}'], METADATA)
    async with (
        open_scripted(pieces.machine) as cluster,
        cluster.query(STATEMENT, row_type=Person, client_context_id="c1") as result,
    ):
        assert Person("ada") == await anext(result)
        with pytest.raises(errors.DecodingFailureException, match="row 1 ") as caught:
            await anext(result)
        with pytest.raises(errors.DecodingFailureException, match="row 2 "):
            await result.rows()
        assert [Person("eve")] == await result.rows()
        assert METADATA == await result.metadata()
    assert ("c1", STATEMENT) == (caught.value.context.client_context_id, caught.value.context.statement)


class Picky(msgspec.Struct):
    """A row whose type raises what decoders do not."""

    name: str

    def __post_init__(self) -> None:
        """Refuse one name."""
        if self.name == "bob":
            raise KeyError(self.name)


async def test_a_type_that_raises_errors_of_its_own() -> None:
    """They come as they are, and the rows go on behind, however they are taken."""
    people = [b'{"name":"ada"}', b'{"name":"bob"}', b'{"name":"eve"}'], METADATA
    async with open_scripted(Pieces(*people, *people).machine) as cluster:
        for takes_all in (False, True):
            async with cluster.query(STATEMENT, row_type=Picky) as result:
                if not takes_all:
                    assert Picky("ada") == await anext(result)
                with pytest.raises(KeyError, match="bob"):
                    await (result.rows() if takes_all else anext(result))
                assert [Picky("eve")] == await result.rows()


@rows("row_type", [5, 10**5000, "Person", list["Nowhere"], lambda: 1])  # type: ignore[name-defined]  # noqa: F821
async def test_a_type_that_rows_cannot_have(row_type: Any) -> None:
    """It is refused before anything is sent."""
    pieces = Pieces()
    async with open_scripted(pieces.machine) as cluster:
        with pytest.raises(errors.InvalidArgumentException, match="row_type"):
            cluster.query(STATEMENT, row_type=row_type)
    assert [] == pieces.requests


async def test_rows_without_their_block() -> None:
    """Whoever awaits, loops over or asks what has to be entered first is told how, and nothing is sent."""
    pieces = Pieces()
    async with open_scripted(pieces.machine) as cluster:
        opening: Any = cluster.query(STATEMENT)
        with pytest.raises(TypeError, match="async with"):
            await opening
        with pytest.raises(TypeError, match="async with"):
            async for _ in opening:
                pass
        with pytest.raises(AttributeError, match=r"'rows'.*async with") as caught:
            await opening.rows()
    assert "rows" == caught.value.name
    assert [] == pieces.requests


async def test_rows_in_two_blocks() -> None:
    """What was left cannot be entered again."""
    async with open_scripted(Pieces([b"1"], METADATA).machine) as cluster:
        opening = cluster.query(STATEMENT)
        async with opening as result:
            assert [1] == await result.rows()
        with pytest.raises(RuntimeError, match="had their block"):
            await opening.__aenter__()


async def test_metadata_too_early() -> None:
    """It comes after the rows, and says so; no row is lost by asking."""
    async with (
        open_scripted(Pieces([b"1"], [b"2"], METADATA).machine) as cluster,
        cluster.query(STATEMENT) as result,
    ):
        with pytest.raises(errors.RowsNotReadError):
            await result.metadata()
        assert 1 == await anext(result)
        # Whether this was the last one has to be waited for.
        with pytest.raises(errors.RowsNotReadError):
            await result.metadata()
        assert 2 == await anext(result)
        assert METADATA == await result.metadata()


async def test_no_rows() -> None:
    """A statement that returns nothing has its metadata at once."""
    pieces = Pieces(METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query("UPDATE people SET a = 1") as result:
        assert METADATA == await result.metadata()
        assert [] == await result.rows()
    assert 0 == pieces.heard(RowsWanted)


async def test_failure_after_rows() -> None:
    """It is raised behind the last row, once; then nothing more comes."""
    error = errors.TemporaryFailureException("too busy")
    async with open_scripted(Pieces([b"1"], error).machine) as cluster, cluster.query(STATEMENT) as result:
        assert 1 == await anext(result)
        with pytest.raises(errors.TemporaryFailureException) as caught:
            await anext(result)
        assert error is caught.value
        for call in (result.__anext__, result.rows, result.metadata):
            with pytest.raises(trio.ClosedResourceError, match="failed or was cancelled"):
                await call()


async def test_failure_before_rows() -> None:
    """It is raised on entering the block."""
    error = errors.TemporaryFailureException("too busy")
    async with open_scripted(Pieces(error).machine) as cluster:
        with pytest.raises(errors.TemporaryFailureException) as caught:
            async with cluster.query(STATEMENT):
                pytest.fail("the block was entered")
    assert error is caught.value


@rows("taken", [0, 1, 2, 3])
async def test_leaving_early(taken: int) -> None:
    """What is left is abandoned; a request that is over is not."""
    pieces = Pieces([b"1"], [b"2"], METADATA)
    async with open_scripted(pieces.machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            for _ in range(taken):
                await anext(result, None)
        assert (0 if taken == 3 else 1) == pieces.heard(OperationAbandoned)


async def test_leaving_with_an_error() -> None:
    """The error leaves as it is, and the request is abandoned."""
    pieces, error = Pieces([b"1"]), ValueError("the body's own")
    async with open_scripted(pieces.machine) as cluster:
        with pytest.raises(ValueError, match="own") as caught:
            async with cluster.query(STATEMENT):
                raise error
        assert (error, 1) == (caught.value, pieces.heard(OperationAbandoned))


async def test_after_the_block() -> None:
    """Nothing can be had any more, not even rows that had come."""
    async with open_scripted(Pieces([b"1", b"2"]).machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            await anext(result)
        for call in (result.__anext__, result.rows, result.metadata):
            with pytest.raises(trio.ClosedResourceError, match="block"):
                await call()


async def test_checkpoints() -> None:
    """The loop is one whenever it waits, and not between rows of one piece; ``rows`` and ``metadata`` always are."""
    pieces = Pieces([b"1", b"2"], [b"3", b"4"], [], METADATA)
    async with open_scripted(pieces.machine) as cluster:
        block = cluster.query(STATEMENT)
        with assert_checkpoints():
            result = await block.__aenter__()
        for expected in (assert_no_checkpoints, assert_no_checkpoints, assert_checkpoints, assert_no_checkpoints):
            with expected():
                await anext(result)
        with assert_checkpoints():
            assert [] == await result.rows()
        with assert_checkpoints():
            await result.metadata()
        with assert_checkpoints():
            assert await anext(result, None) is None
        await block.__aexit__(None, None, None)


async def test_cancelled_while_it_waits() -> None:
    """The request is abandoned once, and whoever asks again learns why nothing comes."""
    pieces = Pieces([b"1"], None)
    async with open_scripted(pieces.machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            await anext(result)
            with trio.CancelScope() as scope:
                scope.cancel()
                await anext(result)
            assert scope.cancelled_caught
            with pytest.raises(trio.ClosedResourceError, match="cancelled"):
                await anext(result)
        assert 1 == pieces.heard(OperationAbandoned)


async def test_cancelled_on_entering() -> None:
    """A block that is not entered asks for nothing, or abandons what it has asked for."""
    pieces = Pieces(None)
    async with open_scripted(pieces.machine) as cluster:
        with trio.CancelScope() as scope:
            scope.cancel()
            async with cluster.query(STATEMENT):
                pytest.fail("the block was entered")
        assert [] == pieces.requests
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.query(STATEMENT).__aenter__)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert (1, 1) == (len(pieces.requests), pieces.heard(OperationAbandoned))


async def test_two_tasks() -> None:
    """Only one may wait; another one is told so."""
    async with (
        open_scripted(Pieces([b"1"], None).machine) as cluster,
        cluster.query(STATEMENT) as result,
        trio.open_nursery() as nursery,
    ):
        await anext(result)
        nursery.start_soon(result.__anext__)
        await wait_all_tasks_blocked()
        for call in (result.__anext__, result.rows, result.metadata):
            with pytest.raises(trio.BusyResourceError):
                await call()
        nursery.cancel_scope.cancel()


async def test_left_while_a_task_waits() -> None:
    """A task that outlives the block is woken, and told."""
    failures: list[BaseException] = []

    async def take(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except trio.ClosedResourceError as error:
            failures.append(error)

    pieces = Pieces([b"1"], None)
    with trio.fail_after(5):
        async with open_scripted(pieces.machine) as cluster, trio.open_nursery() as nursery:
            async with cluster.query(STATEMENT) as result:
                await anext(result)
                nursery.start_soon(take, result.__anext__)
                await wait_all_tasks_blocked()
            await wait_all_tasks_blocked()
            woken = len(failures)
            nursery.cancel_scope.cancel()

    assert (1, 1) == (woken, pieces.heard(OperationAbandoned))


async def test_left_while_rows_are_handed_over() -> None:
    """Rows that a task was given already, and has not taken, are nobody's; what comes after them is abandoned."""

    class Leaving(Pieces):
        """Rows that come just when their block is left."""

        def _answer(self, event: Event) -> Sequence[Action]:
            if isinstance(event, RowsWanted):
                with pytest.raises(StopIteration):
                    block.__aexit__(None, None, None).send(None)
            return super()._answer(event)

    pieces = Leaving([b"1"], [b"2"])
    async with open_scripted(pieces.machine) as cluster:
        block = cluster.query(STATEMENT)
        result = await block.__aenter__()
        await anext(result)
        with pytest.raises(trio.ClosedResourceError, match="block"):
            await anext(result)
        assert 1 == pieces.heard(OperationAbandoned)


async def test_after_the_cluster() -> None:
    """A cluster that was closed under its rows says so."""
    async with open_scripted(Pieces([b"1"], None).machine) as cluster:
        block = cluster.query(STATEMENT)
        result = await block.__aenter__()
    assert 1 == await anext(result)
    with pytest.raises(trio.ClosedResourceError, match="cluster is closed"):
        await anext(result)
    await block.__aexit__(None, None, None)


async def test_what_is_shown() -> None:
    """The statement, and no value of a parameter."""
    async with (
        open_scripted(Pieces(METADATA).machine) as cluster,
        cluster.query("SELECT $password", password="s3cret") as result,
    ):
        assert isinstance(result, QueryResult)
        assert "<QueryResult of QueryRequest('SELECT $password', parameters=<$password>)>" == repr(result)


MANY_KEYS = b"{" + b",".join(b'"%d":1' % number for number in range(decoded_limits.OBJECTS_PARTS_MAX)) + b"}"


@rows(
    ("row", "counted"),
    [
        (MANY_KEYS, "100000 parts"),
        (b'{"a":"' + rb"\n" * (decoded_limits.OBJECTS_ESCAPES_MAX + 1) + b'"}', "500001 escapes"),
        (b"[" + b"[[[[[[[[]]]]]]]]," * (decoded_limits.OBJECTS_PARTS_MAX // 4) + b"1]", "parts"),
        (b'{"a":"' + b"a" * decoded_limits.OBJECTS_SIZE_BYTES_MAX + b'"}', "bytes"),
    ],
)
async def test_a_row_that_is_too_large_for_objects(row: bytes, counted: str) -> None:
    """It raises by its index with the count and the way out; those around it can be taken, and all of them as text."""
    pieces = [b"1", row, b"3"], METADATA
    async with open_scripted(Pieces(*pieces, *pieces, *pieces).machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            assert 1 == await anext(result)
            with pytest.raises(errors.DecodingFailureException, match=f"row 1 has .*{counted}.*row_type=bytes"):
                await anext(result)
            assert [3] == await result.rows()
        async with cluster.analytics_query(STATEMENT, row_type=object) as analysed:
            assert 1 == await anext(analysed)
            with pytest.raises(errors.DecodingFailureException, match=f"row 1 has .*{counted}.*row_type=bytes"):
                await anext(analysed)
            assert [3] == await analysed.rows()
        async with cluster.query(STATEMENT, row_type=bytes) as texts:
            assert [b"1", row, b"3"] == await texts.rows()


async def test_a_row_that_is_large_and_no_larger_than_its_limits() -> None:
    """A row of megabytes, with the keys of a large document, becomes objects."""
    row = {str(number): "a" * 100 for number in range(50_000)}
    pieces = Pieces([msgspec.json.encode(row)], METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query(STATEMENT) as result:
        assert [row] == await result.rows()
