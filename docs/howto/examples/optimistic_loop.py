"""Two safe updates of a shared document: optimistic, and under a lock."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import trio
import trio.testing

from triclinium import Collection
from triclinium.errors import CasMismatchException
from triclinium.testing import open_fake_cluster


class Account(msgspec.Struct):
    """Content of the documents."""

    balance: int
    changes: int = 0


async def deposit(accounts: Collection, name: str, amount: int) -> None:
    """Add to an account: read, change, and write only if the document has not changed."""
    while True:
        found = await accounts.get(name)
        account = found.content_as(Account)
        account.balance += amount
        account.changes += 1
        try:
            await accounts.replace(name, account, cas=found.cas)
            return
        except CasMismatchException:
            continue


async def close_account(accounts: Collection, name: str) -> int:
    """Empty an account under a lock, and return the old balance."""
    locked = await accounts.get_and_lock(name, timedelta(seconds=15))
    balance = locked.content_as(Account).balance
    # A write with the CAS of the lock also releases the lock.
    await accounts.replace(name, Account(balance=0), cas=locked.cas)
    return balance


async def main() -> None:
    """Run ten tasks that deposit at the same time, then close the account."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        accounts = cluster.bucket("default").default_collection()
        await accounts.insert("ada", Account(balance=0))

        async with trio.open_nursery() as nursery:
            for amount in range(1, 11):
                nursery.start_soon(deposit, accounts, "ada", amount)

        print((await accounts.get("ada")).content)
        print("paid out:", await close_account(accounts, "ada"))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
