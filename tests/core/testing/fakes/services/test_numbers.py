"""Requests to fake services with numbers that no real service accepts."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from tests.core.testing.http_client import BASIC, HttpClient
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode
from triclinium_core.testing.fakes.services.fake_request import integer_of

LONG = "9" * 5000
NUMBERS = (LONG, f"-{LONG}", "9" * 21, "0x10", "1_0", " 1", "\u0663", "\u00b2", "1.5", "1e999", "NaN", "")
"""Strings that are not 64-bit integers, although ``int`` or ``float`` accepts some of them."""

COLLECTIONS = "/pools/default/buckets/default/scopes/_default/collections"
FORMS: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("POST", "/pools/default/buckets", {"name": "x"}, "ramQuotaMB"),
    ("POST", "/pools/default/buckets", {"name": "x", "ramQuotaMB": "100"}, "replicaNumber"),
    ("POST", "/pools/default/buckets", {"name": "x", "ramQuotaMB": "100"}, "maxTTL"),
    ("POST", "/pools/default/buckets/default", {}, "ramQuotaMB"),
    ("POST", COLLECTIONS, {"name": "c"}, "maxTTL"),
    ("PATCH", f"{COLLECTIONS}/_default", {}, "maxTTL"),
)
STATEMENTS = (
    "SELECT {}",
    "SELECT -{}",
    "SELECT ${}",
    "SELECT RAW [{}]",
    'CREATE INDEX i ON `default`(a) WITH {{"num_replica": {}}}',
)
MEMBERS = ("timeout", "$a", "scan_cap", "readonly", "statement", "prepared", "query_context", "client_context_id")


@pytest.mark.parametrize(("method", "target", "form", "field"), FORMS)
def test_forms(method: str, target: str, form: dict[str, str], field: str) -> None:
    """The cluster manager answers a field that is not a number in range with 400, and still works."""
    client = HttpClient(FakeNode(), Service.MANAGEMENT)
    for number in NUMBERS:
        body = urlencode({**form, field: number}).encode()

        assert 400 == client.ask(method, target, body).status
    assert 200 == client.ask("GET", "/pools/default/buckets").status


def test_uids_of_manifests() -> None:
    """The cluster manager answers a uid above 64 bits, or with characters other than digits, with 400."""
    client = HttpClient(FakeNode(), Service.MANAGEMENT)
    target = "/pools/default/buckets/default/scopes/@ensureManifest"

    assert 200 == client.ask("POST", f"{target}/1").status
    assert {400} == {client.ask("POST", f"{target}/{uid}").status for uid in (LONG, "-1", "0x1", "1_0", "f" * 17)}


@pytest.mark.parametrize("service", [Service.QUERY, Service.ANALYTICS])
def test_statements(service: Service) -> None:
    """A statement with any number gets a response in every form of the request."""
    client = HttpClient(FakeNode(), service)
    for number in NUMBERS:
        for statement in STATEMENTS:
            asked = {"statement": statement.format(number)}

            assert client.ask("POST", "/query/service", json.dumps(asked).encode()).status < 500
            assert client.ask("GET", f"/query/service?{urlencode(asked)}").status < 500
        for member in MEMBERS:
            form = {"statement": "SELECT $a", member: number}
            body = f'{{"statement": "SELECT $a, $1", "args": [{number}], "{member}": {number}}}'.encode()

            assert client.ask("POST", "/query/service", body).status < 500
            assert client.ask("POST", "/query/service", urlencode(form).encode()).status < 500
    assert [1] == client.ask("POST", "/query/service", b'{"statement": "SELECT RAW 1"}').rows


def test_missing_values_of_constants() -> None:
    """A missing item of an array is null, and a missing member of an object is left out."""
    client = HttpClient(FakeNode())

    assert [[[1, None], {"b": 2}]] == client.query('SELECT RAW [[1, gone], {"a": gone, "b": 2}]').rows


@pytest.mark.parametrize(
    ("service", "method", "target"),
    [
        (Service.SEARCH, "PUT", "/api/index/i"),
        (Service.SEARCH, "POST", "/api/index/i/query"),
        (Service.VIEWS, "PUT", "/default/_design/d"),
        (Service.VIEWS, "POST", "/default/_design/d/_view/v?limit=%s"),
    ],
)
def test_documents(service: Service, method: str, target: str) -> None:
    """A JSON body with any number gets a response, and a number that no decoder accepts is refused."""
    client = HttpClient(FakeNode(), service)
    statuses = {
        number: client.ask(method, target.replace("%s", LONG), f'{{"a": {number}}}'.encode()).status
        for number in NUMBERS
    }

    assert all(status < 500 for status in statuses.values())
    assert 400 <= statuses[LONG] < 500


@pytest.mark.parametrize("head", ["Content-Length: {}", "Transfer-Encoding: chunked\r\n\r\n{}", "Expect: {}", "X: {}"])
def test_heads(head: str) -> None:
    """A head with any number is read or ends its connection, and a request on another connection is answered."""
    node = FakeNode()
    for number in NUMBERS:
        sent = f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: {BASIC}\r\n{head.format(number)}\r\n\r\n"
        HttpClient(node, connection=2).send(sent.encode())
        node.connection_lost(2, 0.0)

    assert [1] == HttpClient(node).query("SELECT RAW 1").rows


@rows(
    ("text", "expected"),
    [("5", 5), ("-1", -1), ("007", 7), ("10", 10), ("11", None), ("-2", None), *((each, None) for each in NUMBERS)],
)
def test_integers(text: str, expected: int | None) -> None:
    """A string is an integer only if it has ASCII digits, with an optional minus sign, and its value is in the range."""
    assert expected == integer_of(text, -1, 10)
