"""Fields that clients in other languages read without a guard: the fake's responses have all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest

from tests.core.testing.fakes.services.management.client_fields import ANSWERS, FIELDS, PREPARED, Field, Request
from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.testing import FakeNode, FakeNodeOptions

_STEP = re.compile(r"([^.\[{]+)|(\[\])|(\{\})")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_integer(value: Any) -> bool:
    return type(value) is int and value >= 0


KINDS: Mapping[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "any text": lambda value: isinstance(value, str),
    "digits": lambda value: _is_text(value) and value.isdecimal(),
    "hexadecimal": lambda value: _is_text(value) and int(value, 16) < 2**32,
    "time": lambda value: value.endswith("Z") and datetime.fromisoformat(value).tzinfo is not None,
    "bucket type": lambda value: value in ("membase", "ephemeral", "memcached"),
    "integer": _is_integer,
    "index": lambda value: value == -1 or _is_integer(value),
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: type(value) is bool,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


class Cluster:
    """A fake node with a connection to each service."""

    def __init__(self) -> None:
        options = FakeNodeOptions(tls_port=11207, alternate_addresses={"external": ("ext.example", 31210)})
        self._node = FakeNode(options)
        self._clients: dict[object, HttpClient] = {}
        self._answers: dict[str, list[Any]] = {}

    def ask(self, request: Request) -> Any:
        """Return the decoded body of the response."""
        if request.service not in self._clients:
            self._clients[request.service] = HttpClient(self._node, request.service, len(self._clients))
        answered = self._clients[request.service].ask(request.method, request.target, request.body.encode())

        assert request.status == answered.status, (request, answered.body)

        return json.loads(answered.body or b"null")

    def answers(self, name: str) -> list[Any]:
        """Return the decoded bodies of a row of ``ANSWERS``, which are requested once."""
        if name not in self._answers:
            self._answers[name] = [self.ask(request) for request in ANSWERS[name]]
        return self._answers[name]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Return a cluster in which all lists have elements."""
    prepared = Cluster()
    for request in PREPARED:
        prepared.ask(request)
    return prepared


def values_at(document: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path; raise LookupError or TypeError for a missing field."""
    found = [document]
    for name, elements, _ in _STEP.findall(path):
        if name:
            found = [each[name] for each in found]
            continue
        found = [value for each in found for value in (each if elements else each.values())]
    yield from found


@rows("field", FIELDS)
def test_fields_that_clients_require(cluster: Cluster, field: Field) -> None:
    """Each field that a client reads without a guard is there, with the type that the client expects."""
    for document in cluster.answers(field.answer):
        values = list(values_at(document, field.path))

        assert values
        assert [] == [value for value in values if not KINDS[field.kind](value)]


def test_every_answer_has_rows() -> None:
    """The table names all of its answers, and no field twice for one answer."""
    assert ANSWERS.keys() == {field.answer for field in FIELDS}
    assert len(FIELDS) == len({(field.answer, field.path) for field in FIELDS})
