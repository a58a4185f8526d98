"""Gets and sets on a real memcached, beside the least that trio can do and beside clients that others have written."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping

from tests.bench.clients import OF_ONE_TASK, ON_ASYNCIO, ON_TRIO, Kind, on_asyncio, on_trio
from tests.bench.turns import Row, Turn, row
from tests.live.memcached import Memcached

PART = "end to end"
SIZES: Mapping[int, str] = {100: "100 B", 10_240: "10 KiB"}
TASKS: Mapping[int, int] = {1: 500, 16: 2_000, 64: 4_000, 256: 4_096, 1024: 4_096}
"""How many work at once, with as many operations as take each of them some tenths of a second."""


def is_installed(name: str) -> bool:
    """Tell whether a client can be measured: ours always can, and those of others where they are installed."""
    return name not in {*ON_ASYNCIO, "pymemcache", "pylibmc"} or importlib.util.find_spec(name) is not None


def rows(rounds: int) -> Iterator[Row]:
    """Measure."""
    program = shutil.which("memcached")
    if program is None:
        raise SystemExit("memcached is not installed; install it, or leave this part out with --only")
    with Memcached(program) as server:
        for size, name in SIZES.items():
            for kind in (Kind.SET, Kind.GET):
                for tasks in TASKS:
                    contenders = turns(server.port, kind, bytes(size), tasks)
                    yield row(
                        PART, f"{kind.value} {name}, {tasks} {'task' if tasks == 1 else 'tasks'}", contenders, rounds
                    )


def turns(port: int, kind: Kind, value: bytes, tasks: int) -> Mapping[str, Turn]:
    """Return all who can do this, ours first."""
    operations, found = TASKS[tasks], dict[str, Turn]()
    on_trio_here = {**ON_TRIO, **(OF_ONE_TASK if tasks == 1 else {})}
    for name, client in on_trio_here.items():
        if is_installed(name):
            found[name] = on_trio(client, port, kind, value, tasks=tasks, operations=operations)
    for name, client in ON_ASYNCIO.items():
        if is_installed(name):
            found[name] = on_asyncio(client, port, kind, value, tasks=tasks, operations=operations)
    return found
