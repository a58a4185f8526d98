"""A cluster whose operations share one budget of retries, during an overload of its node."""

from __future__ import annotations

import random

import trio
import trio.testing

from triclinium import BestEffortRetryStrategy, Collection, StandardRetryStrategy, retrying
from triclinium.errors import CouchbaseException
from triclinium.retries import AnyRetryStrategy, TokenScope
from triclinium.testing import Opcode, open_fake_cluster, temporary_failure

CALLERS = 100


async def write(people: Collection) -> None:
    """Write, and ignore a failure."""
    try:
        await people.upsert("ada", {"born": 1815})
    except CouchbaseException:
        pass


async def overloaded(strategy: AnyRetryStrategy) -> int:
    """Return the number of requests that an overloaded node refuses for a hundred writes."""
    async with open_fake_cluster() as fake, fake.open_client(retry_strategy=strategy) as cluster:
        people = cluster.bucket("default").default_collection()
        fake.node.faults.always(Opcode.SET, temporary_failure())
        async with trio.open_nursery() as nursery:
            for _ in range(CALLERS):
                nursery.start_soon(write, people)
        return sum(command.opcode == Opcode.SET for command in fake.node.command_log)


async def emptied_and_filled() -> None:
    """Print the budget after failures, the error of a write without a budget, and the budget after successes.

    Then print the budget of another scope.
    """
    budget = StandardRetryStrategy(rng=random.Random(1), quota_capacity=30)
    async with open_fake_cluster() as fake, fake.open_client(retry_strategy=budget) as cluster:
        people = cluster.bucket("default").default_collection()
        fake.node.faults.next(Opcode.SET, temporary_failure(), times=9)
        for _ in range(4):
            await write(people)
        print("left after four failures:", budget.available_quota())

        fake.node.faults.next(Opcode.SET, temporary_failure(), times=1)
        try:
            await people.upsert("ada", {"born": 1815})
        except CouchbaseException as error:
            print(error)

        for _ in range(20):
            await write(people)
        print("left after twenty successes:", budget.available_quota())

        with retrying(TokenScope(budget, "reports")):
            fake.node.faults.next(Opcode.SET, temporary_failure(), times=1)
            await people.upsert("report", {})
        print("a scope of its own:", budget.available_quota("reports"), "of", budget.quota_capacity)


async def main() -> None:
    """Compare best effort with a budget, then show how a budget empties and refills."""
    print("best effort:", await overloaded(BestEffortRetryStrategy()), "requests")
    budget = StandardRetryStrategy(rng=random.Random(1), quota_capacity=100)
    print("a budget of 100:", await overloaded(budget), "requests")
    await emptied_and_filled()


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
