"""Table of what a fake cluster does not support, and the responses that name its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.core.testing.http_client import HttpClient
from tests.core.testing.node_client import as_json, ready_client, status_of
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing import FakeNode
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES
from triclinium_core.testing.fakes.unsupported import PAGE, UNSUPPORTED, Response, Route, reason

ROOT = Path(__file__).parents[4]
ROW = re.compile(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


@pytest.mark.native
def test_page_lists_every_row() -> None:
    """The page has exactly the rows of the table, in its order and its words."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")

    assert [(row.name, row.service, row.what, row.response.value) for row in UNSUPPORTED] == ROW.findall(page)


@pytest.mark.native
def test_page_lists_every_command() -> None:
    """The page names every unsupported command, with its opcode."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    commands = {name: opcode for row in UNSUPPORTED for opcode, name in row.opcodes.items()}

    assert [] == [name for name, opcode in commands.items() if f"`{name}` (0x{opcode:02x})" not in page]


def test_rows_are_distinct() -> None:
    """No two rows have the same name or the same command, and no row has a supported command."""
    names = [row.name for row in UNSUPPORTED]
    opcodes = [opcode for row in UNSUPPORTED for opcode in row.opcodes]

    assert sorted(set(names)) == sorted(names)
    assert sorted(set(opcodes)) == sorted(opcodes)
    assert set(opcodes).isdisjoint(Opcode)


def test_rows_with_responses_have_requests() -> None:
    """A row has commands if and only if they get a status, and a row with routes gets HTTP status 501."""
    assert all(bool(row.opcodes) == (row.response is Response.KV_NOT_SUPPORTED) for row in UNSUPPORTED)
    assert all(row.response is Response.HTTP_501 for row in UNSUPPORTED if row.routes)


def test_withheld_features_are_listed() -> None:
    """The table names every feature of connections that a node never grants."""
    (row,) = (row for row in UNSUPPORTED if row.response is Response.NOT_GRANTED)

    assert {feature.name for feature in set(HelloFeature) - IMPLEMENTED_FEATURES} == set(
        re.findall(r"`(\w+)`", row.what)
    )


@rows("without", [(), (HelloFeature.XERROR,)])
def test_unsupported_commands_are_named(without: tuple[HelloFeature, ...]) -> None:
    """Every command of the table gets NOT_SUPPORTED and JSON that names it and the page, even without XERROR."""
    client = ready_client(without=without)
    found = [(name, row.name, client.ask(opcode)) for row in UNSUPPORTED for opcode, name in row.opcodes.items()]

    assert {Status.NOT_SUPPORTED} == {status_of(reply) for _, _, reply in found}
    assert all(
        as_json(reply.value)["error"] == {"context": f"{name}: {reason(row)}"} and PAGE in reply.value.decode()
        for name, row, reply in found
    )


def test_unsupported_routes_are_named() -> None:
    """Every route of the table gets 501 and JSON that names its row and the page."""
    for row in UNSUPPORTED:
        for route in row.routes:
            client = HttpClient(FakeNode(), Service(row.service))
            path = "/".join(route.path).replace("**", "x").replace("*", "default")
            answered = client.ask("GET", f"/{path}")

            assert (501, {"status": "fail", "error": reason(row.name)}) == (answered.status, answered.document)


@rows(
    ("path", "segments", "expected"),
    [
        (("a", "*"), ("a", "b"), True),
        (("a", "*"), ("a",), False),
        (("a", "**"), ("a", "b", "c"), True),
        (("a", "**"), ("a",), True),
        (("a", "**"), ("b",), False),
        (("a",), ("a", "b"), False),
    ],
)
def test_wildcards_of_routes(path: tuple[str, ...], segments: tuple[str, ...], expected: bool) -> None:
    """One star stands for one segment, two stars for any number at the end."""
    assert expected is Route(path).matches(segments)
