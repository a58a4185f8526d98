"""Run a SQL++ statement, and read its rows as they arrive."""

from __future__ import annotations

from dataclasses import dataclass

import trio
import trio.testing

from triclinium import Cluster, MutationState
from triclinium.errors import DecodingFailureException, ParsingFailureException
from triclinium.testing import FakeAnswer, FakeNodes, open_fake_cluster

OLDER_THAN = "SELECT p.name, p.age FROM people AS p WHERE p.age > $age ORDER BY p.age"


@dataclass
class Person:
    """Type of a row."""

    name: str
    age: int


async def first_older_than(cluster: Cluster, age: int) -> Person | None:
    """Return the youngest person above an age, or None, and abandon the other rows."""
    async with cluster.query(OLDER_THAN, age=age, row_type=Person, readonly=True) as result:
        async for person in result:
            return person
    return None


async def all_older_than(cluster: Cluster, age: int) -> list[Person]:
    """Return all persons above an age, and skip rows that cannot be decoded."""
    people = []
    async with cluster.query(OLDER_THAN, age=age, row_type=Person, readonly=True) as result:
        while True:
            try:
                people.append(await anext(result))
            except DecodingFailureException as error:
                print("passed over:", error.message.partition(":")[0])
            except StopAsyncIteration:
                return people


def script(nodes: FakeNodes) -> None:
    """Script the fake cluster, which evaluates constants only."""
    rows = [{"name": "ada", "age": 36}, {"name": "n. n.", "age": None}, {"name": "eve", "age": 41}]
    nodes.script.answer(OLDER_THAN, FakeAnswer(rows=rows))
    nodes.script.answer("SELECT RAW COUNT(*) FROM people", FakeAnswer(rows=[3]))


async def main() -> None:
    """Run several queries."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        script(fake.nodes)
        print("first:", await first_older_than(cluster, 30))
        print("all:", await all_older_than(cluster, 30))

        people = cluster.bucket("default").default_collection()
        written = await people.upsert("ada", {"name": "ada", "age": 36})
        scope = cluster.bucket("default").default_scope()
        async with scope.query(
            "SELECT RAW COUNT(*) FROM people", consistent_with=MutationState(written), metrics=True
        ) as result:
            print("counted:", await result.rows())
            metadata = await result.metadata()
            print(metadata.status, "with", metadata.metrics.result_count, "row")

        try:
            async with cluster.query("SELEC 1"):
                pass
        except ParsingFailureException as error:
            print("error", error.context.error_code, "for", error.context.statement)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
