"""Queries to a cluster of fake nodes: requests, rows, and the requests that a client leaves early."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.rows import rows
from tests.trio_client.pair import PATIENCE, Never
from triclinium import Cluster, MutationState, errors
from triclinium.query import QueryMetrics, QueryProfile, QueryScanConsistency, QueryStatus, QueryWarning
from triclinium.testing import FakeAnswer, FakeCluster, open_fake_cluster

STATEMENT = "SELECT p.* FROM people p"


class Queried(NamedTuple):
    """Nodes with a query service, and a client."""

    fake: FakeCluster
    cluster: Cluster

    def answers(self, *answers: FakeAnswer, statement: str = STATEMENT) -> None:
        """Script the nodes' responses to a statement."""
        self.fake.nodes.script.answer(statement, *answers)

    @property
    def log(self) -> Sequence[Any]:
        """Requests that the services received, in order."""
        return sorted((each for node in self.fake.nodes for each in node.request_log), key=lambda each: each.now)

    @property
    def sent(self) -> Sequence[Mapping[str, Any]]:
        """JSON bodies of the requests that the services received."""
        return [json.loads(each.body) for each in self.log]


@asynccontextmanager
async def open_queried(nodes: int = 1, **arguments: Any) -> AsyncIterator[Queried]:
    """Yield nodes and a client."""
    with trio.fail_after(PATIENCE):
        async with open_fake_cluster(nodes=nodes) as fake, fake.open_client(**arguments) as cluster:
            yield Queried(fake, cluster)


async def found(cluster: Cluster, statement: str = STATEMENT, /, *positional: object, **options: Any) -> list[object]:
    """Return the rows of a statement."""
    async with cluster.query(statement, *positional, **options) as result:
        return [row async for row in result]


async def test_rows_and_metadata(autojump_clock: MockClock) -> None:
    """Rows arrive in order, and after them the metadata with everything that was requested."""
    answer = FakeAnswer(
        rows=[{"name": "ada"}, {"name": "eve"}],
        metadata={"warnings": [{"code": 5503, "msg": "odd"}], "profile": {"phaseTimes": {}}},
    )
    async with open_queried() as queried:
        queried.answers(answer)
        async with queried.cluster.query(
            STATEMENT, metrics=True, profile=QueryProfile.PHASES, client_context_id="c1"
        ) as result:
            assert [{"name": "ada"}, {"name": "eve"}] == [row async for row in result]
            metadata = await result.metadata()

    assert ("c1", QueryStatus.SUCCESS, {"*": "*"}) == (metadata.client_context_id, metadata.status, metadata.signature)
    assert ((QueryWarning(5503, "odd"),), {"phaseTimes": {}}, 2) == (
        metadata.warnings,
        metadata.profile,
        metadata.metrics.result_count,
    )
    assert (str(UUID(metadata.request_id)), QueryMetrics()) != ("", metadata.metrics)


async def test_parameters(autojump_clock: MockClock) -> None:
    """Positional parameters follow the statement; named ones are keywords, or in ``named_parameters`` for any name."""
    async with open_queried() as queried:
        cluster = queried.cluster

        assert [{"a": 1, "b": "é"}] == await found(cluster, "SELECT $1 AS a, $2 AS b", 1, "é")
        assert [{"a": [30]}] == await found(cluster, "SELECT $age AS a", age=[30])
        assert [{"a": 5, "b": 6}] == await found(
            cluster, "SELECT $readonly AS a, $b AS b", named_parameters={"readonly": 5}, b=6
        )
        assert [{"a": 7}] == await found(cluster, "SELECT $statement AS a", statement=7)


async def test_options(autojump_clock: MockClock) -> None:
    """Every option is sent, and so is the remaining time as the timeout of the service."""
    async with open_queried() as queried:
        token = (await queried.cluster.bucket("default").default_collection().upsert("ada", 1)).mutation_token
        assert token is not None
        options: dict[str, Any] = {
            "readonly": True,
            "consistent_with": MutationState(token),
            "client_context_id": "c1",
            "metrics": True,
            "profile": QueryProfile.TIMINGS,
            "flex_index": True,
            "preserve_expiry": True,
            "max_parallelism": 1,
            "pipeline_batch": 2,
            "pipeline_cap": 3,
            "scan_cap": 4,
            "scan_wait": timedelta(seconds=5),
            "raw": {"controls": True},
        }
        await found(queried.cluster, "SELECT $age AS a", age=30, **options)
        await found(queried.cluster, "SELECT 1", scan_consistency=QueryScanConsistency.REQUEST_PLUS)

        whole, consistent = queried.sent
    assert {
        "statement": "SELECT $age AS a",
        "client_context_id": "c1",
        "timeout": "75000ms",
        "metrics": True,
        "readonly": True,
        "scan_consistency": "at_plus",
        "scan_vectors": {"default": {str(token.vbucket): [token.sequence_number, str(token.vbucket_uuid)]}},
        "profile": "timings",
        "use_fts": True,
        "preserve_expiry": True,
        "max_parallelism": "1",
        "pipeline_batch": "2",
        "pipeline_cap": "3",
        "scan_cap": "4",
        "scan_wait": "5000ms",
        "$age": 30,
        "controls": True,
    } == whole
    assert "request_plus" == consistent["scan_consistency"]


async def test_a_scope_sends_its_query_context(autojump_clock: MockClock) -> None:
    """A query of a scope sends its query context, so that its statement can name collections alone."""
    async with open_queried() as queried:
        scope = queried.cluster.bucket("travel").scope("inventory")
        async with scope.query("SELECT 1") as result:
            await result.rows()

        assert ["default:`travel`.`inventory`"] == [sent["query_context"] for sent in queried.sent]


async def test_a_missing_scope(autojump_clock: MockClock) -> None:
    """A query in a missing scope raises ScopeNotFoundException with the scope, and the client continues."""
    async with open_queried() as queried:
        said = {"code": 12021, "msg": "Scope not found in CB datastore default:travel.nowhere"}
        queried.answers(FakeAnswer(errors=[said]))
        scope = queried.cluster.bucket("travel").scope("nowhere")
        with pytest.raises(errors.ScopeNotFoundException, match=r"travel\.nowhere") as caught:
            async with scope.query(STATEMENT):
                pass

        assert ("travel", "nowhere", 12021) == (
            caught.value.context.bucket,
            caught.value.context.scope,
            caught.value.context.error_code,
        )
        assert [{"one": 1}] == await found(queried.cluster, "SELECT 1 AS one")


@rows("rows_before", [0, 2])
@rows(("readonly", "expected"), [(True, errors.UnambiguousTimeoutException), (False, errors.AmbiguousTimeoutException)])
async def test_a_status_of_timeout(
    autojump_clock: MockClock, readonly: bool, expected: type[errors.TimeoutException], rows_before: int
) -> None:
    """A status ``timeout`` without an error raises a timeout after the rows, ambiguous unless read-only."""
    async with open_queried() as queried:
        queried.answers(FakeAnswer(rows=[1] * rows_before, metadata={"status": "timeout"}))
        taken = list[object]()

        async def take() -> None:
            async with queried.cluster.query(STATEMENT, readonly=readonly) as result:
                async for row in result:
                    taken.append(row)

        with pytest.raises(errors.TimeoutException) as caught:
            await take()

        assert (expected, 200, 0) == (
            type(caught.value),
            caught.value.context.http_status,
            caught.value.context.retry_attempts,
        )
        assert [1] * rows_before == taken
        assert 1 == len(queried.sent)


@rows(
    ("options", "parameter"),
    [
        ({"read_only": True}, "read_only"),
        ({"metric": True}, "metric"),
        ({"agee": 1}, "agee"),
        ({"ag": 1}, "ag"),
        ({"age": 1, "named_parameters": {"$age": 2}}, "named_parameters"),
        ({"named_parameters": ["age"]}, "named_parameters"),
        ({"readonly": "yes"}, "readonly"),
        ({"consistent_with": []}, "consistent_with"),
        ({"scan_wait": "1s"}, "scan_wait"),
        ({"raw": {"timeout": "1s"}}, "raw"),
        ({"client_context_id": 5}, "client_context_id"),
    ],
)
async def test_wrong_arguments(options: dict[str, Any], parameter: str) -> None:
    """A wrong argument raises at the call with the parameter, or its correct spelling, and nothing is sent."""
    async with open_queried() as queried:
        with pytest.raises(errors.InvalidArgumentException) as caught:
            queried.cluster.query("SELECT $age AS a", **options)
        assert parameter == caught.value.parameter
        assert parameter != "read_only" or "readonly" in str(caught.value)
        with pytest.raises(errors.InvalidArgumentException):
            queried.cluster.bucket("travel").scope("inventory").query("SELECT $age AS a", **options)
        assert [] == queried.log


async def test_unencodable_parameters() -> None:
    """A parameter that cannot be encoded raises with its name and not its value, and nothing is sent."""
    async with open_queried() as queried:
        with pytest.raises(errors.EncodingFailureException, match=r"\$password") as caught:
            queried.cluster.query("SELECT $password", password={"s3cret": object()})
        assert "s3cret" not in str(caught.value)
        assert [] == queried.log


@rows("statement", ["SELEC $password", "SELECT $password FROM people"])
async def test_a_statement_with_a_syntax_error(autojump_clock: MockClock, statement: str) -> None:
    """A refused statement raises when the block is entered, with the service's text and the statement, without values."""
    async with open_queried() as queried:
        with pytest.raises(errors.ParsingFailureException) as caught:
            await found(queried.cluster, statement, password="s3cret", client_context_id="c1")

    context = caught.value.context
    assert (statement, ("$password",), "c1", 3000, 400) == (
        context.statement,
        context.parameters,
        context.client_context_id,
        context.error_code,
        context.http_status,
    )
    assert "s3cret" not in f"{caught.value}{context.to_json()}"


async def test_retries(autojump_clock: MockClock) -> None:
    """A temporary error is retried unless the call's strategy refuses, and each attempt sends the remaining time."""
    missing = FakeAnswer(errors=[{"code": 5000, "msg": "queryport.indexNotFound"}])
    async with open_queried() as queried:
        queried.answers(missing, missing, FakeAnswer(rows=[1]))
        assert [1] == await found(queried.cluster)
        assert ["75000ms", "74999ms", "74997ms"] == [sent["timeout"] for sent in queried.sent]

        queried.answers(missing, FakeAnswer(rows=[1]))
        with pytest.raises(errors.IndexNotFoundException):
            await found(queried.cluster, retry_strategy=Never())


class Row(msgspec.Struct):
    """Type into which rows are decoded."""

    number: int


async def test_a_slow_reader_gets_all_rows(autojump_clock: MockClock) -> None:
    """A slow reader gets all rows, in order and in its own type, even if they exceed the buffer."""
    async with open_queried() as queried:
        queried.answers(FakeAnswer(rows=[{"number": 1, "rest": "x" * 1000}, {"number": 2}], repeat=3000))
        taken = []
        async with queried.cluster.query(STATEMENT, row_type=Row) as result:
            async for row in result:
                taken.append(row.number)
                if len(taken) % 500 == 0:
                    await trio.sleep(5)

        assert [1, 2] * 3000 == taken


async def leave(cluster: Cluster) -> None:
    """Read one row and leave the block."""
    async with cluster.query(STATEMENT) as result:
        assert 1 == await anext(result)


async def fail(cluster: Cluster) -> None:
    """Read one row and raise."""
    with pytest.raises(ZeroDivisionError):
        async with cluster.query(STATEMENT) as result:
            1 // (await anext(result) - 1)  # type: ignore[operator]


async def give_up(cluster: Cluster) -> None:
    """Wait for the second row until a scope cancels the wait."""
    with trio.move_on_after(1) as scope:
        await found(cluster)
    assert scope.cancelled_caught


@rows("depart", [leave, fail, give_up])
async def test_leaving_early_closes_the_connection(depart: Callable[[Cluster], Any], autojump_clock: MockClock) -> None:
    """If a block is left before its last row, the client closes its connection, and its other queries continue."""
    async with open_queried() as queried, trio.open_nursery() as nursery:
        queried.answers(FakeAnswer(rows=[1], repeat=1000, seconds_between_rows=30.0))
        queried.answers(FakeAnswer(rows=[7], seconds=60.0), statement="slow")
        others: list[object] = []

        async def other() -> None:
            others.extend(await found(queried.cluster, "slow"))

        nursery.start_soon(other)
        await wait_all_tasks_blocked()
        await depart(queried.cluster)
        await wait_all_tasks_blocked()
        (left,) = [each for each in queried.log if each.statement == STATEMENT]

        assert (True, False) == (left.client_hung_up, left.is_answered)
        await trio.sleep(61)
        assert [7] == others
        assert [{"one": 1}] == await found(queried.cluster, "SELECT 1 AS one")


async def test_prepared_statements_are_reused(autojump_clock: MockClock) -> None:
    """The first query prepares its statement; later ones execute the plan with their own parameters."""
    async with open_queried() as queried:
        for number in range(3):
            assert [{"n": number}] == await found(queried.cluster, "SELECT $n AS n", adhoc=False, n=number)

        first, *others = queried.sent
        assert ("PREPARE SELECT $n AS n", True) == (first["statement"], first["auto_execute"])
        assert 1 == len({sent["prepared"] for sent in others})
        assert all("statement" not in sent for sent in others)


async def test_a_hundred_concurrent_queries(autojump_clock: MockClock) -> None:
    """Each of a hundred concurrent queries gets its own rows."""
    results: dict[int, list[object]] = {}

    async with open_queried(nodes=3) as queried, trio.open_nursery() as nursery:

        async def ask(number: int) -> None:
            results[number] = await found(queried.cluster, "SELECT $n AS n", n=number)

        for number in range(100):
            nursery.start_soon(ask, number)

    assert {number: [{"n": number}] for number in range(100)} == results
