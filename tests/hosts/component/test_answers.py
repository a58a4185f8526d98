"""Answers to the recorded questions in each host."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.hosts.component.preparing import Arguments, replies
from tests.hosts.component.recorded import QUESTIONS, native_answers

pytestmark = pytest.mark.hosts

CALLS = [json.dumps(["decide", question]) for question in QUESTIONS]


def answers(lines: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """Return the answers in the replies of the hosts in Python and Node."""
    found = [json.loads(line)["ok"] for line in lines]
    return [(each["answer"], tuple(each["clauses"])) for each in found]


def test_python_gives_the_native_answers(python_host: Arguments) -> None:
    """In wasmtime for Python, every recorded question has the answer and the clauses that the core gives natively."""
    assert native_answers() == answers(replies(python_host, CALLS).lines)


def test_node_gives_the_native_answers(node_host: Arguments) -> None:
    """After translation by jco, Node gives the native answer and clauses for every recorded question."""
    assert native_answers() == answers(replies(node_host, CALLS).lines)
