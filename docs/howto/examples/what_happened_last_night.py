"""Find out why a write failed last night: a service keeps a ring of decisions, and saves it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import trio
import trio.testing

from triclinium import Collection
from triclinium.errors import CouchbaseException
from triclinium.tapes import DecisionTape
from triclinium.testing import Opcode, delay, open_fake_cluster

TAPE = "last-night.tape"


async def serve(orders: Collection) -> None:
    """Store an order every 10 milliseconds. Log those that cannot be stored."""
    for number in range(30):
        try:
            await orders.upsert(f"order{number}", {"lines": number})
        except CouchbaseException as error:
            print(f"order{number}: {type(error).__name__}")
        await trio.sleep(0.01)


async def night(folder: Path) -> None:
    """Serve while a node restarts. One write is in flight at that moment."""
    async with open_fake_cluster(nodes=2) as fake, fake.open_client(tape=DecisionTape.ring(10_000)) as cluster:
        orders = cluster.bucket("default").default_collection()
        fake.nodes[1].faults.always(Opcode.SET, delay(0.05))
        fake.nodes.restart(1, keep_data=True, at_seconds=0.53, for_seconds=0.2)
        await serve(orders)
        await cluster.save_tape(folder / TAPE)


def morning(folder: Path, *arguments: str) -> None:
    """Run a command on the tape, and print its output."""
    print(f"\n$ triclinium {' '.join(arguments)}")
    command = [sys.executable, "-m", "triclinium", *arguments]
    print(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        trio.run(night, Path(place), clock=trio.testing.MockClock(autojump_threshold=0))
        morning(Path(place), "timeline", TAPE)
        morning(Path(place), "replay", TAPE)
