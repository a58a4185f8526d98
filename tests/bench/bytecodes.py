"""Number of bytecodes that one get executes in each layer of the code. The count does not depend on the machine's load.

It does not include C code: system calls, structs, dicts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import trio

import triclinium
import triclinium_core
from tests.bench.clients import KEYS, Job, Kind, Open, bare_trio_loop

GETS_OF_A_TASK = 10

_CLIENT, _CORE = (str(Path(package.__file__ or "").parent) for package in (triclinium, triclinium_core))
LAYERS: Mapping[str, str] = {
    f"{_CLIENT}/_cluster_driver/": "the driver",
    f"{_CLIENT}/_driver/": "the driver",
    f"{_CLIENT}/": "the call and its checks",
    f"{_CORE}/transcoding/": "the call and its checks",
    f"{_CORE}/kv/operation/document_operations": "the call and its checks",
    f"{_CORE}/kv/operation/validation": "the call and its checks",
    f"{_CORE}/kv/operation/": "frames: encoded, split, decoded",
    f"{_CORE}/kv/wire/": "frames: encoded, split, decoded",
    f"{_CORE}/": "the machine: route, in flight, deadline, response",
    str(Path(__file__).parent): "the calling program",
}
"""Layers by prefix of the path of a file; the first match counts."""
LOOP = "Trio's loop"
"""Layer of all other files."""


def bytecodes_of_a_get(open_client: Open, job: Job, tasks: int) -> Mapping[str, float]:
    """Return the number of bytecodes of a get by ``tasks`` tasks, for each layer."""
    found: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            found[frame.f_code.co_filename] += 1
        return trace

    async def main() -> None:
        async with bare_trio_loop(job._replace(kind=Kind.SET)) as put:
            for key in KEYS:
                await put(key)
        async with open_client(job) as operate:

            async def get() -> None:
                for number in range(GETS_OF_A_TASK):
                    await operate(KEYS[number])

            async def get_in_all_tasks() -> None:
                async with trio.open_nursery() as nursery:
                    for _ in range(tasks):
                        nursery.start_soon(get)

            await get_in_all_tasks()
            sys.settrace(trace)
            try:
                await get_in_all_tasks()
            finally:
                sys.settrace(None)

    trio.run(main)
    layers: Counter[str] = Counter(dict.fromkeys((*LAYERS.values(), LOOP), 0))
    for path, count in found.items():
        layers[next((name for start, name in LAYERS.items() if path.startswith(start)), LOOP)] += count
    return {name: count / (tasks * GETS_OF_A_TASK) for name, count in layers.items()}
