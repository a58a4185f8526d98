"""Rows of a result, which a block reads: their order, their decoding on demand, and their end."""

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
from triclinium import errors
from triclinium.query import QueryResult
from triclinium_core.contract.couchbase import Action, Event, OperationAbandoned, RowsWanted
from triclinium_core.services.answer import decoded_limits

STATEMENT = "SELECT p.* FROM people p"


class Person(msgspec.Struct):
    """Type into which rows are decoded."""

    name: str


@rows(
    "pieces",
    [
        ([b'{"a":1}', b"2", b'"three"'], METADATA),
        ([b'{"a":1}'], [b"2"], [b'"three"'], METADATA),
    ],
)
async def test_rows(pieces: Any) -> None:
    """The iteration returns all rows, however they are divided into pieces; then it ends, and ends again."""
    async with open_scripted(Pieces(*pieces).machine) as cluster, cluster.query(STATEMENT) as result:
        assert [{"a": 1}, 2, "three"] == [row async for row in result]
        assert [] == [row async for row in result] == await result.rows()
        assert METADATA == await result.metadata()


async def test_rows_returns_the_remaining_rows() -> None:
    """``rows`` returns the rows that were not read yet."""
    pieces = Pieces([b"1", b"2"], [b"3"], [b"4"], METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query(STATEMENT) as result:
        assert 1 == await anext(result)
        assert [2, 3, 4] == await result.rows()


async def test_row_type() -> None:
    """Rows are decoded into ``row_type``, or stay JSON text for ``bytes``."""
    row = b'{"name":"ada"}'
    async with open_scripted(Pieces([row], METADATA, [row], METADATA).machine) as cluster:
        async with cluster.query(STATEMENT, row_type=Person) as people:
            assert [Person("ada")] == await people.rows()
        async with cluster.query(STATEMENT, row_type=bytes) as texts:
            assert [row] == await texts.rows()


async def test_a_row_of_another_type() -> None:
    """A row of another type raises with its index among all rows, from 0; the rows after it are readable."""
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
    """Row type whose constructor raises an exception that no decoder raises."""

    name: str

    def __post_init__(self) -> None:
        """Refuse one name."""
        if self.name == "bob":
            raise KeyError(self.name)


async def test_exceptions_of_a_row_type() -> None:
    """An exception of the row type is raised unchanged; iteration and ``rows`` still return the rows after it."""
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
async def test_an_invalid_row_type(row_type: Any) -> None:
    """An invalid row type raises before anything is sent."""
    pieces = Pieces()
    async with open_scripted(pieces.machine) as cluster:
        with pytest.raises(errors.InvalidArgumentException, match="row_type"):
            cluster.query(STATEMENT, row_type=row_type)
    assert [] == pieces.requests


async def test_rows_need_their_block() -> None:
    """Using a query without entering its block raises with the correct form, and nothing is sent."""
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


async def test_a_block_is_entered_once() -> None:
    """Entering the same block a second time raises RuntimeError."""
    async with open_scripted(Pieces([b"1"], METADATA).machine) as cluster:
        opening = cluster.query(STATEMENT)
        async with opening as result:
            assert [1] == await result.rows()
        with pytest.raises(RuntimeError, match="already entered"):
            await opening.__aenter__()


async def test_metadata_before_the_last_row() -> None:
    """``metadata`` before the end of the rows raises RowsNotReadError, and no row is lost."""
    async with (
        open_scripted(Pieces([b"1"], [b"2"], METADATA).machine) as cluster,
        cluster.query(STATEMENT) as result,
    ):
        with pytest.raises(errors.RowsNotReadError):
            await result.metadata()
        assert 1 == await anext(result)
        # The rows received so far were returned, but the second row is still unread.
        with pytest.raises(errors.RowsNotReadError):
            await result.metadata()
        assert 2 == await anext(result)
        assert METADATA == await result.metadata()


async def test_no_rows() -> None:
    """If a statement returns no rows, its metadata is available immediately."""
    pieces = Pieces(METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query("UPDATE people SET a = 1") as result:
        assert METADATA == await result.metadata()
        assert [] == await result.rows()
    assert 0 == pieces.received(RowsWanted)


async def test_failure_after_rows() -> None:
    """An error after some rows is raised once, after the last row; further calls raise ClosedResourceError."""
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
    """An error before the first row is raised when the block is entered."""
    error = errors.TemporaryFailureException("too busy")
    async with open_scripted(Pieces(error).machine) as cluster:
        with pytest.raises(errors.TemporaryFailureException) as caught:
            async with cluster.query(STATEMENT):
                pytest.fail("the block was entered")
    assert error is caught.value


@rows("taken", [0, 1, 2, 3])
async def test_leaving_early(taken: int) -> None:
    """A block that is left abandons its request if the request is unfinished, and otherwise does nothing."""
    pieces = Pieces([b"1"], [b"2"], METADATA)
    async with open_scripted(pieces.machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            for _ in range(taken):
                await anext(result, None)
        assert (0 if taken == 3 else 1) == pieces.received(OperationAbandoned)


async def test_leaving_with_an_error() -> None:
    """An exception of the block is raised unchanged, and the request is abandoned."""
    pieces, error = Pieces([b"1"]), ValueError("the body's own")
    async with open_scripted(pieces.machine) as cluster:
        with pytest.raises(ValueError, match="own") as caught:
            async with cluster.query(STATEMENT):
                raise error
        assert (error, 1) == (caught.value, pieces.received(OperationAbandoned))


async def test_after_the_block() -> None:
    """After the block, every call raises ClosedResourceError, even if rows had arrived."""
    async with open_scripted(Pieces([b"1", b"2"]).machine) as cluster:
        async with cluster.query(STATEMENT) as result:
            await anext(result)
        for call in (result.__anext__, result.rows, result.metadata):
            with pytest.raises(trio.ClosedResourceError, match="block"):
                await call()


async def test_checkpoints() -> None:
    """The iteration is a checkpoint if it waits, not between rows of a piece; ``rows`` and ``metadata`` always are."""
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


async def test_a_cancelled_read_abandons_the_request() -> None:
    """A cancelled read abandons the request once, and a later read raises ClosedResourceError."""
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
        assert 1 == pieces.received(OperationAbandoned)


async def test_cancelled_while_entering() -> None:
    """A block that is cancelled while it is entered sends no request, or abandons the request that it has sent."""
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
        assert (1, 1) == (len(pieces.requests), pieces.received(OperationAbandoned))


async def test_only_one_task_may_wait() -> None:
    """While one task waits, a call of another task raises BusyResourceError."""
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


async def test_leaving_the_block_wakes_a_waiting_task() -> None:
    """A task that still waits when the block ends raises ClosedResourceError."""
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

    assert (1, 1) == (woken, pieces.received(OperationAbandoned))


async def test_leaving_the_block_while_rows_arrive() -> None:
    """Rows that arrive when the block is left are dropped, and the rest of the request is abandoned."""

    class Leaving(Pieces):
        """Pieces whose rows arrive exactly when the block is left."""

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
        assert 1 == pieces.received(OperationAbandoned)


async def test_closing_the_cluster_ends_rows() -> None:
    """After the cluster is closed, reading rows raises an error with this reason."""
    async with open_scripted(Pieces([b"1"], None).machine) as cluster:
        block = cluster.query(STATEMENT)
        result = await block.__aenter__()
    assert 1 == await anext(result)
    with pytest.raises(trio.ClosedResourceError, match="cluster is closed"):
        await anext(result)
    await block.__aexit__(None, None, None)


async def test_repr_hides_parameter_values() -> None:
    """The repr shows the statement and no value of a parameter."""
    async with (
        open_scripted(Pieces(METADATA).machine) as cluster,
        cluster.query("SELECT $password", password="s3cret") as result,
    ):
        assert isinstance(result, QueryResult)
        assert "<QueryResult of QueryRequest('SELECT $password', parameters=<$password>)>" == repr(result)


MANY_KEYS = b"{" + b",".join(b'"%d":1' % number for number in range(decoded_limits.OBJECTS_PARTS_MAX)) + b"}"


TOO_LARGE = "row 1 has .*{}.*row_type=bytes"


@rows(
    ("row", "text"),
    [
        (rb'["\ud83d\ude00","\ud800"]', r"row 1 .*\\ud800.*byte 17"),
        (MANY_KEYS, TOO_LARGE.format("100000 parts")),
        (b'{"a":"' + rb"\n" * (decoded_limits.OBJECTS_ESCAPES_MAX + 1) + b'"}', TOO_LARGE.format("500001 escapes")),
        (b"[" + b"[[[[[[[[]]]]]]]]," * (decoded_limits.OBJECTS_PARTS_MAX // 4) + b"1]", TOO_LARGE.format("parts")),
        (b'{"a":"' + b"a" * decoded_limits.OBJECTS_SIZE_BYTES_MAX + b'"}', TOO_LARGE.format("bytes")),
    ],
)
async def test_a_row_that_cannot_be_decoded(row: bytes, text: str) -> None:
    """A row with a lone surrogate, or above the limits, raises with index and reason; all others, or all as text, are readable."""
    pieces = [b"1", row, b"3"], METADATA
    async with open_scripted(Pieces(*pieces, *pieces, *pieces).machine) as cluster:
        for query in (cluster.query(STATEMENT), cluster.analytics_query(STATEMENT, row_type=object)):
            async with query as result:
                assert 1 == await anext(result)
                with pytest.raises(errors.DecodingFailureException, match=text):
                    await anext(result)
                assert [3] == await result.rows()
        async with cluster.query(STATEMENT, row_type=bytes) as texts:
            assert [b"1", row, b"3"] == await texts.rows()


async def test_a_large_row_within_the_limits() -> None:
    """A row of megabytes with many keys is decoded."""
    row = {str(number): "a" * 100 for number in range(50_000)}
    pieces = Pieces([msgspec.json.encode(row)], METADATA)
    async with open_scripted(pieces.machine) as cluster, cluster.query(STATEMENT) as result:
        assert [row] == await result.rows()
