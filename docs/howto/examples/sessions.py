"""Sessions of a web application: sliding expiry, changes by concurrent requests, and an end."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta

import msgspec
import trio
import trio.testing

import triclinium
from triclinium import Collection
from triclinium.errors import (
    CasMismatchException,
    CouchbaseException,
    DocumentNotFoundException,
)
from triclinium.testing import Opcode, delay, open_fake_cluster

IDLE = timedelta(minutes=30)
"""Time without a request after which a session ends."""


class Session(msgspec.Struct):
    """Content of the documents."""

    user: str
    basket: list[str] = []


def key_of(token: str) -> str:
    """Return the key of a session. Logs and error messages contain keys, so a key must not be a valid token."""
    return "session::" + hashlib.sha256(token.encode()).hexdigest()


async def begin(sessions: Collection, user: str) -> str:
    """Create a session, and return its token for the cookie. The token of an earlier session is never used again."""
    token = secrets.token_urlsafe(32)
    await sessions.insert(key_of(token), Session(user), expiry=IDLE)
    return token


async def load(sessions: Collection, token: str) -> Session | None:
    """Return a session and prolong it, in one operation; None if it has ended."""
    try:
        return (await sessions.get_and_touch(key_of(token), IDLE)).content_as(Session)
    except DocumentNotFoundException:
        return None


async def change(sessions: Collection, token: str, edit: Callable[[Session], None]) -> Session | None:
    """Change a session without losing a concurrent change, and prolong it; return None if it has ended.

    ``edit`` runs again for each concurrent change.
    """
    while True:
        try:
            found = await sessions.get(key_of(token))
            session = found.content_as(Session)
            edit(session)
            # Without an expiry, the write would remove that of the document.
            await sessions.replace(key_of(token), session, cas=found.cas, expiry=IDLE)
        except CasMismatchException:
            continue
        except DocumentNotFoundException:
            return None
        return session


async def end(sessions: Collection, token: str) -> None:
    """End a session. A concurrent ``change`` does not bring it back."""
    try:
        await sessions.remove(key_of(token))
    except DocumentNotFoundException:
        return


async def answer(sessions: Collection, token: str) -> str:
    """Respond to a request. A cluster that fails does not end a session."""
    try:
        with triclinium.fail_after(0.5):
            session = await load(sessions, token)
    except CouchbaseException:
        return "503 try again"
    return "401 log in" if session is None else f"200 {session.user} {session.basket}"


async def use(sessions: Collection) -> str:
    """Use a session for an hour, with two requests at the same time, and return its token."""
    token = await begin(sessions, "ada")
    for _ in range(3):
        await trio.sleep(20 * 60)
        print("20 minutes later:", await answer(sessions, token))
    async with trio.open_nursery() as nursery:
        for item in ("pen", "ink"):
            nursery.start_soon(change, sessions, token, lambda session, item=item: session.basket.append(item))
    session = await load(sessions, token)
    print("two requests at once:", sorted(session.basket) if session else None)
    return token


async def main() -> None:
    """Use a session until it expires, and end another one."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        sessions = cluster.bucket("default").default_collection()
        token = await use(sessions)
        fake.node.faults.next(Opcode.GET_AND_TOUCH, delay(1))
        print("while the node is slow:", await answer(sessions, token))
        await trio.sleep(31 * 60)
        print("31 minutes later:", await answer(sessions, token))

        token = await begin(sessions, "grace")
        await end(sessions, token)
        print("after the end:", await answer(sessions, token), await change(sessions, token, lambda session: None))


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
