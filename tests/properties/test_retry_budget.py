"""Quota of a token strategy that many tasks share, while tasks are cancelled at random and their node fails at random.

Safety: the node receives one attempt for each token that was not abandoned, and one more for each attempt that is
always retried, so there are never more retries than the strategy permits. No token ends twice, because ``TokenBook``
refuses it. No token is lost: a token without an end belongs to an attempt that the node received. Liveness: after the
faults every operation succeeds, and successes fill the quota.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from tests.core.retry.combined.token_book import AwaitedBook, TokenBook
from triclinium import Collection, StandardRetryStrategy, errors, retrying, testing
from triclinium.retries import TokenScope
from triclinium.testing import delay
from triclinium_core.kv.wire.constants import Opcode as AnyOpcode
from triclinium_core.retry.couchbase import Status

TASKS = 8
FAULTS = (testing.temporary_failure(), testing.locked(), testing.not_my_vbucket(), delay(0.3), testing.drop_response())


async def operate(chance: random.Random, people: Collection, key: str, strategy: TokenBook | AwaitedBook) -> None:
    """Write or read a key once, and sometimes cancel the call at a random moment."""
    await trio.sleep(chance.random() * 0.5)
    with trio.move_on_after(chance.choice([chance.random(), 100.0])):
        with retrying(TokenScope(strategy, key)):
            try:
                await (people.upsert(key, {}) if chance.random() < 0.5 else people.get(key))
            except errors.CouchbaseException:
                pass


def attempts_seen(fake: testing.FakeCluster) -> tuple[Counter[str], Counter[str]]:
    """Return two counts of attempts by key: those without the status NOT_MY_VBUCKET, and those with it."""
    commands = [command for command in fake.node.command_log if command.opcode in (AnyOpcode.GET, AnyOpcode.SET)]
    misled = [command for command in commands if command.status == Status.NOT_MY_VBUCKET]
    keys, wrong = (Counter(command.key.decode() for command in each) for each in (commands, misled))
    return keys - wrong, wrong


@given(seed=st.integers(0, 2**32 - 1))
def test_every_attempt_has_a_token(seed: int) -> None:
    """Each attempt has a token and no token has two ends, for sync and async strategies and any cancellation."""
    chance = random.Random(seed)
    book = TokenBook(
        retries=chance.randrange(12), delay=chance.choice([0.0, 0.05, 1.0]), first_delay=chance.choice([0.0, 0.1, 3.0])
    )

    async def think() -> None:
        await trio.sleep(chance.random() * 0.2)

    strategy: TokenBook | AwaitedBook = book if chance.random() < 0.5 else AwaitedBook(book, think)

    async def main() -> None:
        async with testing.open_fake_cluster() as fake, fake.open_client() as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert("warm", {})
            for _ in range(chance.randrange(20)):
                opcode = chance.choice([testing.Opcode.GET, testing.Opcode.SET])
                fake.node.faults.next(opcode, chance.choice(FAULTS), times=chance.randrange(1, 4))
            async with trio.open_nursery() as nursery:
                for number in range(TASKS):
                    nursery.start_soon(operate, chance, people, f"key{number}", strategy)
            # Wait until the node has received all requests and no call still uses a token.
            await trio.sleep(10.0)
            seen, misled = attempts_seen(fake)

        kept = Counter(str(token.token_scope) for token in book.tokens if token.end != "abandoned")
        unended = Counter(str(token.token_scope) for token in book.tokens if token.end is None)

        # If the caller leaves before the resend, the attempt at the wrong node still has its token.
        assert all(seen[key] <= kept[key] <= seen[key] + misled[key] for key in {*kept, *seen, *misled} - {"warm"})
        assert all(count == 1 for count in unended.values())
        assert sum(token.retry_count > 0 for token in book.tokens if token.end != "abandoned") <= book.retries + sum(
            token.retry_count > 0 for token in book.tokens if token.end == "recorded"
        )

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("failures", [3, 9, 30])
async def test_successes_fill_the_quota(failures: int, autojump_clock: MockClock) -> None:
    """After the faults no operation fails, and the quota is full after as many successes as units were missing."""
    budget = StandardRetryStrategy(rng=random.Random(1), quota_capacity=40)
    async with testing.open_fake_cluster() as fake, fake.open_client(retry_strategy=budget) as cluster:
        people = cluster.bucket("default").default_collection()
        await people.upsert("ada", {})
        fake.node.faults.always(testing.Opcode.GET, testing.temporary_failure())
        for _ in range(failures):
            with pytest.raises(errors.TemporaryFailureException):
                await people.get("ada")
        missing = budget.quota_capacity - budget.available_quota()
        fake.node.faults.clear()

        assert missing

        for _ in range(missing):
            await people.get("ada")

        assert budget.quota_capacity == budget.available_quota()


async def test_a_slow_strategy_delays_its_operation_only(autojump_clock: MockClock) -> None:
    """A slow strategy delays only its own operation, and is cancelled if the caller is cancelled."""
    gate = trio.Event()
    book = TokenBook()
    async with testing.open_fake_cluster() as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()

        async def held() -> None:
            with retrying(AwaitedBook(book, gate.wait)):
                await people.upsert("held", {})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(held)
            await trio.sleep(0.1)
            await people.upsert("free", {})

            assert [] == book.tokens

            gate.set()
        with trio.move_on_after(0.1):
            with retrying(AwaitedBook(TokenBook(), trio.sleep_forever)):
                await people.upsert("late", {})
        await trio.sleep(1.0)

        assert ["recorded"] == book.ends
        assert {"held", "free"} == {command.key.decode() for command in fake.node.command_log if command.opcode == 1}
