"""Number of calls and resumptions during a single call that pass from one triclinium module to another."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable
from types import FrameType

from tests.bench.own_calls import NOT_THE_CLIENT, PACKAGES, STATEMENT, profiled
from triclinium.testing import FakeAnswer, Opcode, open_fake_cluster, temporary_failure

RUNS = 7


class Changes:
    """Number of calls of a function in a different module from the function that was called before."""

    def __init__(self) -> None:
        self.count: int = 0
        self._path = ""

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Handle an event of ``sys.setprofile``. Ignore functions that a fake node calls."""
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(PACKAGES) or path.startswith(NOT_THE_CLIENT):
            return
        above = frame.f_back
        while above is not None:
            if above.f_code.co_filename.startswith(NOT_THE_CLIENT):
                return
            above = above.f_back
        self.count += bool(self._path) and path != self._path
        self._path = path


async def changes_of(call: Callable[[], Awaitable[object]]) -> int:
    """Return the number of changes during one call."""
    changes = Changes()
    with profiled(changes.note):
        await call()
    return changes.count


async def module_changes() -> dict[str, float]:
    """Return the medians for a get, an upsert with one retry, and a query with one row, on open connections."""
    counts: dict[str, list[int]] = {"get": [], "upsert with one retry": [], "query": []}
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        documents = cluster.bucket("default").default_collection()
        fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{"a": 1}]))

        async def get() -> None:
            await documents.get("ada")

        async def upsert() -> None:
            await documents.upsert("ada", {"a": 1})

        async def query() -> None:
            async with cluster.query(STATEMENT) as rows:
                async for _ in rows:
                    pass

        await upsert()
        for number in range(1 + RUNS):
            found = {"get": await changes_of(get)}
            fake.node.faults.next(Opcode.SET, temporary_failure())
            found["upsert with one retry"] = await changes_of(upsert)
            found["query"] = await changes_of(query)
            if number:  # Count only later rounds, because the first calls open connections.
                for name, count in found.items():
                    counts[name].append(count)
    return {name: statistics.median(found) for name, found in counts.items()}
