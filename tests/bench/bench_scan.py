"""The header decoder in C against the one in Python: the figures of docs/internals/performance.md.

``uv run pytest tests/bench/bench_scan.py -s`` prints them.

The two are measured in turn, in many short rounds, so that whatever else the machine does strikes both. Costs are the
median of the rounds. What counts is the ratio, taken within each round: its median, and the quartiles.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from triclinium_core._speedups import CScanner, Implementation, PythonScanner, implementation, use_implementation
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer

pytestmark = [pytest.mark.bench, pytest.mark.native]

BURSTS = (1, 4, 16, 256)
"""Frames that arrive in one piece."""
ROUNDS = 101
FRAMES_PER_ROUND = 2048
"""Whatever the burst, so that a round takes about a millisecond."""

VALUE = b'{"born":1815,"name":"Ada Lovelace","tags":["poet","engine"]}'

Work = Callable[[], object]
Prepare = Callable[[Implementation, bytes], Work]


class Figures(NamedTuple):
    """What decoding one frame costs, in nanoseconds, and how many times as much in Python as in C."""

    python: float
    c: float
    ratio_low: float
    ratio: float
    ratio_high: float


def responses(count: int) -> bytes:
    """Return ``count`` answers to a get."""
    return b"".join(
        encode_response(0x00, opaque=opaque, cas=2**63 + opaque, extras=bytes(4), value=VALUE)
        for opaque in range(1, count + 1)
    )


def headers(name: Implementation, wire: bytes) -> Work:
    """Return the work of one scanner: the headers, and nothing else."""
    scanner = CScanner(bytearray(wire)) if name == "c" else PythonScanner(bytearray(wire))
    size = len(wire)
    return lambda: scanner.scan(0, size)


def frames(name: Implementation, wire: bytes) -> Work:
    """Return the work of one frame buffer: from the bytes of a socket to frames, as the client does it."""
    use_implementation(name)
    buffer = FrameBuffer(CLIENT_ACCEPTS)
    return lambda: buffer.receive(wire)


def seconds_of(work: Work, calls: int) -> float:
    """Return how long ``calls`` calls keep the processor busy; what others do on it in the meantime does not count."""
    began = time.thread_time()
    for _ in range(calls):
        work()
    return time.thread_time() - began


def measure(prepare: Prepare, burst: int) -> Figures:
    """Return the figures for pieces of ``burst`` frames."""
    wire, calls = responses(burst), FRAMES_PER_ROUND // burst
    in_python, in_c = [], []
    for _ in range(ROUNDS):
        # Prepared anew for each, for a buffer that changes its size asks again which implementation to take.
        in_python.append(seconds_of(prepare("python", wire), calls))
        in_c.append(seconds_of(prepare("c", wire), calls))
    per_frame = 1e9 / (calls * burst)
    ratios = [python / c for python, c in zip(in_python, in_c, strict=True)]
    return Figures(
        statistics.median(in_python) * per_frame,
        statistics.median(in_c) * per_frame,
        *statistics.quantiles(ratios, n=4),
    )


@pytest.mark.parametrize("prepare", [headers, frames])
def test_c_is_faster_in_bursts(prepare: Prepare) -> None:
    """From 16 frames a piece on, C is faster in three rounds of four and more."""
    chosen = implementation()
    try:
        found = {burst: measure(prepare, burst) for burst in BURSTS}
    finally:
        use_implementation(chosen)
    lines = [f"\n{prepare.__name__}: ns per frame, medians of {ROUNDS} rounds; ratio: median (quartiles)"]
    lines += ["| frames in one piece | Python | C | Python / C |", "| --- | --- | --- | --- |"]
    for burst, (python, c, low, ratio, high) in found.items():
        lines.append(f"| {burst} | {python:.0f} | {c:.0f} | {ratio:.2f} ({low:.2f} to {high:.2f}) |")
    sys.stdout.write("\n".join(lines) + "\n")

    assert all(found[burst].ratio_low > 1 for burst in (16, 256))
