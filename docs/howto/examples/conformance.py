# /// script
# dependencies = ["wasmtime==48.0.0"]
# ///
"""Compares decisions of another client with those of the component, and lists the differences by clause.

Usage: uv run docs/howto/examples/conformance.py COMPONENT DECISIONS

COMPONENT is retry.wasm. DECISIONS is a file with one JSON object per line, or - for standard input: a question with the
other client's answer under "expect". Fields that this answer leaves out are not compared.

Exit statuses: 0 if all decisions agree; 1 if some differ; 2 if an argument or a line is invalid, after comparing the
other lines, or if there is no decision.
"""

import json
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wasmtime import Config, Engine, Store, WasmtimeError
from wasmtime.component import Component, Linker

Decide = Callable[[str], tuple[str, list[str]]]


class InvalidInput(Exception):
    """Exception for an argument or a line that the program cannot use."""


def load(path: str) -> Decide:
    """Return the function ``decide`` of the component."""
    config = Config()
    config.cache = True  # Compiling the component takes seconds; with the cache, it happens once.
    engine = Engine(config)
    store = Store(engine)
    instance = Linker(engine).instantiate(store, Component.from_file(engine, path))
    decisions = instance.get_export_index(store, "triclinium:retry/decisions@0.1.0")
    if decisions is None:
        raise InvalidInput(f"{path} does not export triclinium:retry/decisions@0.1.0; build it with build.py")
    function = instance.get_func(store, instance.get_export_index(store, "decide", decisions))

    def decide(question: str) -> tuple[str, list[str]]:
        result = function(store, question)
        function.post_return(store)
        if isinstance(result, str):
            raise InvalidInput(result)
        return result.answer, result.clauses

    return decide


def differences(decide: Decide, line: bytes) -> tuple[str, list[str]]:
    """Return the clauses that decide the question in a line, and a text for each field whose values differ."""
    try:
        question = line.decode()
        items = json.loads(question)["expect"].items()
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInput(
            'expected an object whose "expect" is also an object, the answer of the other client'
        ) from error
    text, clauses = decide(question)
    answer = json.loads(text)
    return "; ".join(clauses), [
        f"{name} is {json.dumps(value)}, expected {json.dumps(answer[name]) if name in answer else 'nothing'}"
        for name, value in items
        if name not in answer or comparable(answer[name]) != comparable(value)
    ]


def comparable(value: object) -> str:
    """Return a text that is equal for equal JSON values: 9 and 9.0 are equal, but 1 and true differ."""
    return json.dumps(json.loads(json.dumps(value), parse_int=float), sort_keys=True)


def compare(decide: Decide, lines: Iterable[bytes]) -> Iterator[int]:
    """Print the differences by clause, and yield each exit status other than 0."""
    by_clause: dict[str, list[str]] = {}
    compared = differing = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            clause, texts = differences(decide, line.removeprefix(BOM_UTF8) if number == 1 else line)
        except InvalidInput as error:
            print(f"line {number}: {error}", file=sys.stderr)
            yield 2
            continue
        compared += 1
        if texts:
            differing += 1
            by_clause.setdefault(clause, []).extend(f"  line {number}: {text}" for text in texts)
            yield 1
    for clause, texts in sorted(by_clause.items(), key=lambda row: (-len(row[1]), row[0])):
        print(clause, *texts, sep="\n")
    print(f"{compared} decisions compared, {differing} differ")
    if not compared:
        yield 2


def main(arguments: list[str]) -> int:
    """Compare the decisions in a file, and return the exit status."""
    if len(arguments) != 2:
        print("usage: conformance.py COMPONENT DECISIONS, such as retry.wasm decisions.jsonl", file=sys.stderr)
        return 2
    component, decisions = arguments
    try:
        with sys.stdin.buffer if decisions == "-" else Path(decisions).open("rb") as lines:
            return max(compare(load(component), lines), default=0)
    except (InvalidInput, OSError, WasmtimeError) as error:
        print(f"cannot compare {decisions} with {component}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
