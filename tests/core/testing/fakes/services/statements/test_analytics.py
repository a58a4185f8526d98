"""Analytics service of a fake node."""

from __future__ import annotations

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeNode


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to the analytics service of a lone node."""
    return HttpClient(FakeNode(), Service.ANALYTICS)


@rows("path", ["/analytics/service", "/query/service"])
def test_statements_are_answered(path: str) -> None:
    """On both paths of the service, constant statements are evaluated and other statements get scripted answers."""
    client = HttpClient(FakeNode(), Service.ANALYTICS)
    client.node.script.answer("SELECT VALUE d FROM d", FakeAnswer(rows=[1, 2]), service=Service.ANALYTICS)
    constant = client.ask("POST", path, b'{"statement": "SELECT $a AS it", "$a": 3, "client_context_id": "mine"}')
    scripted = client.ask("POST", path, b'{"statement": "SELECT VALUE d FROM d"}')

    assert ([{"it": 3}], "mine") == (constant.rows, constant.document["clientContextID"])
    assert [1, 2] == scripted.rows
    assert "processedObjects" in scripted.document["metrics"]  # type: ignore[operator]
    assert "SELECT VALUE d FROM d" == client.node.request_log[1].statement


@rows(
    ("statement", "code"),
    [("SELEC 1", 24000), ("", 24000), ("SELECT 1 FROM d", 24000), ("SELECT $nobody", 24001)],
)
def test_statements_that_fail(statement: str, code: int) -> None:
    """A failed statement has a code of this service, not of the query service."""
    answered = HttpClient(FakeNode(), Service.ANALYTICS).query(statement)

    assert (400, [code]) == (answered.status, answered.codes)


def test_other_requests(client: HttpClient) -> None:
    """A ping is answered, an unknown path gets 404, and missing credentials get an error."""
    statuses = [client.ask("GET", target).status for target in ("/admin/ping", "/elsewhere")]
    client.authorization = None

    assert [200, 404] == statuses
    assert [20000] == client.query("SELECT 1").codes


def test_scope_without_a_dataverse_is_refused() -> None:
    """A statement in the context of a scope is refused, because no scope has a dataverse, unless it is scripted."""
    client = HttpClient(FakeNode(), Service.ANALYTICS)
    context = "default:`travel`.`inventory`"
    refused = client.query("SELECT 1", query_context=context)
    client.node.script.answer("SELECT 1", FakeAnswer(rows=[1]), service=Service.ANALYTICS)

    assert [24034] == refused.codes
    assert [1] == client.query("SELECT 1", query_context=context).rows
