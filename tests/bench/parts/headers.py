"""Header decoder in C, compared with the decoder in Python, and with minimal loops in Python and in C."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module

from tests.bench.turns import Effort, Row, Stopwatch, measure
from triclinium_core._speedups import CScanner, Implementation, PythonScanner, implementation, use_implementation
from triclinium_core.kv.wire.frame import encode_response
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer

BURSTS = (1, 4, 16, 256)
"""Number of frames that arrive in one piece."""
FRAMES = 4_096
"""Total number of frames in a turn, for bursts of any size."""
VALUE = b'{"born":1815,"name":"Ada Lovelace","tags":["poet","engine"]}'
HEADER = struct.Struct(">BBHBBHIIQ")

Prepare = Callable[[bytes], Callable[[], object]]


def rows(effort: Effort) -> Iterator[Row]:
    """Measure."""
    tables: Mapping[str, Mapping[str, Prepare]] = {
        "headers: headers alone": {
            "C": partial(scanner, CScanner),
            "Python": partial(scanner, PythonScanner),
            "struct loop": struct_loop,
            "C without objects": c_without_objects,
        },
        "headers: from bytes to frames": {"C": partial(frames, "c"), "Python": partial(frames, "python")},
    }
    for table, contenders in tables.items():
        for burst in BURSTS:
            wire = responses(burst)
            turns = {name: partial(turn, prepare, wire, burst, effort) for name, prepare in contenders.items()}
            yield from measure(table, f"{burst} at once", turns, effort.short)


def responses(count: int) -> bytes:
    """Return ``count`` responses to a get."""
    return b"".join(
        encode_response(0x00, opaque=opaque, cas=2**63 + opaque, extras=bytes(4), value=VALUE)
        for opaque in range(1, count + 1)
    )


def turn(prepare: Prepare, wire: bytes, burst: int, effort: Effort) -> Mapping[str, float]:
    """Return the cost of a frame."""
    work, calls = prepare(wire), effort.of(FRAMES // burst)
    with Stopwatch() as watch:
        for _ in range(calls):
            work()
    return watch.processor(calls * burst)


def scanner(kind: type[CScanner | PythonScanner], wire: bytes) -> Callable[[], object]:
    """Return the work of one of triclinium's scanners."""
    return partial(kind(bytearray(wire)).scan, 0, len(wire))


def struct_loop(wire: bytes) -> Callable[[], object]:
    """Return a loop that unpacks headers without checks."""

    def work() -> list[tuple[int, ...]]:
        found, start, end, unpack = list[tuple[int, ...]](), 0, len(wire), HEADER.unpack_from
        while start < end:
            fields = unpack(wire, start)
            found.append(fields)
            start += HEADER.size + fields[6]
        return found

    return work


def c_without_objects(wire: bytes) -> Callable[[], object]:
    """Return the work of the C function alone: decoded fields stay in C memory, without a Python object for each."""
    c = import_module("triclinium_c._scan")
    count = import_module("triclinium_c").FRAMES_PER_CALL
    out = c.ffi.new("uint64_t[]", count * c.lib.TRICLINIUM_FIELDS_PER_FRAME)
    return partial(c.lib.triclinium_scan_headers, c.ffi.from_buffer("uint8_t[]", wire), 0, len(wire), out, count)


def frames(name: Implementation, wire: bytes) -> Callable[[], object]:
    """Return the work of one frame buffer: from the bytes of a socket to frames, as in the client."""
    chosen = implementation()
    use_implementation(name)
    try:
        buffer = FrameBuffer(CLIENT_ACCEPTS)
    finally:
        use_implementation(chosen)
    return partial(buffer.receive, wire)
