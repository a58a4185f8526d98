"""Cost of the component: questions in each host, start of an instance, size and build."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.bench.turns import WALL, Effort, Row, Turn, measure
from tests.hosts.component import preparing
from tests.hosts.component.preparing import Arguments, replies
from tests.hosts.component.recorded import QUESTIONS
from triclinium_core.shown import json_text
from triclinium_core.tools.vectors.questions import answer, clauses, decode

REPEATED = 5
"""Number of times that a turn asks all recorded questions."""

INSTANTIATE, BUILD = "ms to instantiate", "s to build"
MB, COMPRESSED = "MB", "MB with gzip"


def rows(effort: Effort) -> Iterator[Row]:
    """Build the component and the hosts, and measure; a contender whose tools are missing has no figures."""
    build: Turn | None = None
    try:
        component = preparing.component()
        build = partial(_build, component)
    except pytest.skip.Exception:  # componentize-py is missing: no figures for component and hosts.
        component = Path()
    yield from measure("component: build", "component", {"component": build}, effort._replace(rounds=1))
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "retry.cwasm"
        hosts: Mapping[str, Callable[[], tuple[Arguments, bool]]] = {
            "wasmtime, Python": lambda: (_python(component, code), True),
            "jco, Node": lambda: (preparing.node_host(component), True),
            "wasmtime, Rust": lambda: (_rust(code), False),
        }
        commands = {name: _prepared(prepare) if build else None for name, prepare in hosts.items()}
        questions = list(QUESTIONS) * effort.of(REPEATED)
        asked = {name: command and partial(_ask, *command, questions) for name, command in commands.items()}
        started = {name: command and partial(_start, *command) for name, command in commands.items()}
        yield from measure(
            "component: a question", "answer", {"native": partial(_natively, questions), **asked}, effort
        )
        yield from measure("component: an instance", "instance", started, effort)


def _build(component: Path) -> Mapping[str, float]:
    began = time.perf_counter()
    preparing.component()
    built = time.perf_counter() - began
    contents = component.read_bytes()
    return {BUILD: built, MB: len(contents) / 1e6, COMPRESSED: len(gzip.compress(contents)) / 1e6}


def _prepared(prepare: Callable[[], tuple[Arguments, bool]]) -> tuple[Arguments, bool] | None:
    try:
        return prepare()
    except pytest.skip.Exception:  # The tools of this host are missing, so its cells stay empty.
        return None


def _python(component: Path, code: Path) -> Arguments:
    command = (*preparing.python_host(), component, code)
    replies(command, [])
    return command[:-1]


def _natively(questions: Sequence[str]) -> Mapping[str, float]:
    began = time.perf_counter()
    for question in questions:
        fields = decode(question)
        json_text(answer(fields))
        clauses(fields)
    return {WALL: (time.perf_counter() - began) / len(questions) * 1e6}


def _rust(code: Path) -> Arguments:
    if shutil.which("cargo") is None:
        return (preparing.rust_host(None),)
    with preparing.build_rust_host("--release") as building:
        return preparing.rust_host(building, "release"), code


def _ask(command: Arguments, takes_calls: bool, questions: Sequence[str]) -> Mapping[str, float]:
    lines = [json.dumps(["decide", question]) for question in questions] if takes_calls else questions
    return {WALL: replies(command, lines).figures["us_per_call"]}


def _start(command: Arguments, _: bool) -> Mapping[str, float]:
    return {INSTANTIATE: replies(command, []).figures["instantiate_s"] * 1e3}
