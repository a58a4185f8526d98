"""Pages that name parts of the core leave none of them out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_origin

import pytest

import triclinium_core.client
import triclinium_core.contract
import triclinium_core.explain
import triclinium_core.kv
import triclinium_core.retry
import triclinium_core.runtime
import triclinium_core.services
import triclinium_core.tools
from tests.docs.pages import DOCS
from tests.docs.way_of_a_get import way_of_a_get
from tests.docs.way_of_a_query import way_of_a_query
from triclinium_core.contract.couchbase import Action, Event
from triclinium_core.retry.cassandra.requests.actions import CassandraAction
from triclinium_core.retry.cassandra.requests.events import CassandraEvent

pytestmark = pytest.mark.native

CLIENT = Path(triclinium_core.client.__path__[0])
CONTRACT = Path(triclinium_core.contract.__path__[0])
KV = Path(triclinium_core.kv.__path__[0])
RUNTIME = Path(triclinium_core.runtime.__path__[0])
TOOLS = Path(triclinium_core.tools.__path__[0])
EXPLAIN = Path(triclinium_core.explain.__path__[0])
RETRY = Path(triclinium_core.retry.__path__[0])
SERVICES = Path(triclinium_core.services.__path__[0])
ENGINE = CLIENT, CONTRACT, KV, RUNTIME, SERVICES
"""Packages of the client."""


def names_on(page: str) -> set[str]:
    """Return what stands at the beginning of a code span."""
    return set(re.findall(r"`(\w+(?:\.py)?)", (DOCS / page).read_text(encoding="utf-8")))


def test_the_page_on_the_architecture_names_every_module() -> None:
    """Of the client: whoever looks for a file finds where it belongs."""
    modules = {module.name for folder in ENGINE for module in folder.rglob("*.py")} - {"__init__.py"}

    assert set() == modules - names_on("internals/architecture.md")


def test_the_page_on_the_architecture_names_no_module_that_is_gone() -> None:
    """A file that is renamed is renamed there."""
    named = {name for name in names_on("internals/architecture.md") if name.endswith(".py")}

    folders = *ENGINE, RETRY, EXPLAIN, TOOLS
    assert set() == named - {module.name for folder in folders for module in folder.rglob("*.py")}


@pytest.mark.parametrize(
    ("page", "events", "actions"),
    [
        ("howto/embed_the_core.md", Event, Action),
        ("howto/cassandra_driver.md", CassandraEvent, CassandraAction),
    ],
)
def test_the_contract_of_a_driver_names_every_event_and_action(page: str, events: object, actions: object) -> None:
    """Whoever writes a driver finds all that it has to tell and to do."""
    assert set() == {
        (get_origin(kind) or kind).__name__ for kind in (*get_args(events), *get_args(actions))
    } - names_on(page)


@pytest.mark.parametrize("way", [way_of_a_get, way_of_a_query])
def test_the_page_on_the_architecture_shows_the_way_of_a_call(way: Callable[[], str]) -> None:
    """As it is taken now; ``python -m tests.docs.way_of_a_get``, or ``way_of_a_query``, prints what to put there."""
    assert way() in (DOCS / "internals/architecture.md").read_text(encoding="utf-8")
