"""Answers to the recorded questions in each host. The tests in Rust come last because its build takes longest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hosts.component import preparing
from tests.hosts.component.preparing import Arguments, replies
from tests.hosts.component.recorded import QUESTIONS, native_answers


def tabbed_answers(lines: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """Return the answers in the replies of the host in Rust."""
    found = [line.split("\t") for line in lines]
    return [(first, tuple(rest)) for first, *rest in found]


@pytest.mark.hosts
def test_hosts_give_the_native_answers(host: Arguments) -> None:
    """In wasmtime for Python, and in Node, every recorded question has the native answer and clauses."""
    calls = [json.dumps(["decide", question]) for question in QUESTIONS]
    found = [json.loads(line)["ok"] for line in replies(host, calls).lines]

    assert native_answers() == [(each["answer"], tuple(each["clauses"])) for each in found]


@pytest.mark.hosts
def test_rust_gives_the_native_answers(rust_host: Arguments) -> None:
    """A compiled host in Rust gets the native answer and clauses for every recorded question."""
    assert native_answers() == tabbed_answers(replies(rust_host, QUESTIONS).lines)


@pytest.mark.hosts_full
def test_rust_compiles_the_component_itself(component: Path) -> None:
    """A host in Rust with a compiler loads the component without prepared machine code, and gets the native answers."""
    with preparing.build_rust_host("--release", "--features", "compiler") as building:
        command = (preparing.rust_host(building, "release"), component)

    assert native_answers() == tabbed_answers(replies(command, QUESTIONS).lines)
