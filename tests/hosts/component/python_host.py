"""Host of the component in Python: carries out calls from standard input with wasmtime.

Usage: ``uv run --no-project --with wasmtime==48.0.0 python python_host.py COMPONENT [MACHINE_CODE]``. Each line of
input is a JSON list: the name of an exported function and its arguments, as JavaScript has them after jco. Each line of
output is ``{"ok": result}`` or ``{"error": text}``. Prints durations and memory to standard error at the end. With
MACHINE_CODE, writes the machine code of the component to that file. Exit statuses: 0 if all calls were carried
out, 1 otherwise.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

DECISIONS, MACHINES = "triclinium:retry/decisions@0.1.0", "triclinium:retry/machines@0.1.0"
STATISTICS = Path("/proc/self/statm")
TIMES = {"NaN", "Infinity", "-Infinity"}
"""Numbers that JSON lacks."""


def to_component(value: object) -> object:
    """Return a JSON value as wasmtime takes it."""
    if isinstance(value, dict) and "tag" in value:
        return Variant(value["tag"], to_component(value.get("val")))
    if isinstance(value, dict):
        record = Record()
        record.__dict__.update({name: to_component(field) for name, field in value.items()})
        return record
    return float(value) if isinstance(value, str) and value in TIMES else value


def to_json(value: object) -> object:
    """Return a result of wasmtime as a JSON value."""
    if isinstance(value, Variant):
        return {"tag": value.tag} if value.payload is None else {"tag": value.tag, "val": to_json(value.payload)}
    if isinstance(value, Record):
        return {name: to_json(field) for name, field in vars(value).items()}
    return [to_json(item) for item in value] if isinstance(value, list) else value


def resident_mb() -> float:
    """Return the resident memory of this process, which only Linux reports this way; elsewhere 0."""
    if not STATISTICS.exists():
        return 0.0
    return int(STATISTICS.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 2**20


def main(path: str, machine_code: str | None = None) -> int:
    """Carry out the calls, and return the exit status."""
    config = Config()
    config.cache = True
    engine = Engine(config)
    times = [perf_counter()]
    component = Component.from_file(engine, path)
    times.append(perf_counter())
    if machine_code is not None:
        Path(machine_code).write_bytes(component.serialize())
    store = Store(engine)
    times.append(perf_counter())
    instance = Linker(engine).instantiate(store, component)
    times.append(perf_counter())
    calls, spent, before = 0, 0.0, resident_mb()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        interface = instance.get_export_index(store, DECISIONS if name == "decide" else MACHINES)
        function = instance.get_func(store, instance.get_export_index(store, name, interface))
        given = arguments if name == "decide" else [to_component(argument) for argument in arguments]
        began = perf_counter()
        result = function(store, *given)
        function.post_return(store)
        calls, spent = calls + 1, spent + perf_counter() - began
        # Every function returns a result, and a string only as its error.
        print(json.dumps({"error" if isinstance(result, str) else "ok": to_json(result)}))
    figures = {
        "load_s": times[1] - times[0],
        "instantiate_s": times[3] - times[2],
        "us_per_call": spent / max(calls, 1) * 1e6,
        "grown_mb": resident_mb() - before,
    }
    print(json.dumps(figures), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
