"""Views of a fake node, which keeps design documents and returns scripted rows."""

from __future__ import annotations

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeNode
from triclinium_core.testing.fakes.unsupported import PAGE

DESIGN = "/default/_design/people"


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to the views of a lone node."""
    return HttpClient(FakeNode(), Service.VIEWS)


def test_rows_are_scripted(client: HttpClient) -> None:
    """Rows are scripted by design document and view, with their total number and errors."""
    found = [{"id": "ada", "key": "a", "value": 1}]
    error = {"from": "10.0.0.1", "reason": "timeout"}
    client.node.script.answer("people/by_name", FakeAnswer(rows=found), service=Service.VIEWS)
    client.node.script.answer("people/half", FakeAnswer(rows=found, errors=[error]), service=Service.VIEWS)
    whole = client.ask("POST", f"{DESIGN}/_view/by_name?limit=1", b'{"keys": ["a"]}').document
    half = client.ask("GET", f"{DESIGN}/_view/half").document

    assert {"total_rows": 1, "rows": found} == whole
    assert {"total_rows": 1, "rows": found, "errors": [error]} == half
    assert ["people/by_name", "people/half"] == [request.statement for request in client.node.request_log]


def test_design_document_is_created_and_dropped(client: HttpClient) -> None:
    """A design document is kept as it was given, and the cluster manager lists it."""
    document = b'{"views":{"by_name":{"map":"function (doc, meta) {}"}}}'
    put = client.ask("PUT", DESIGN, document)
    found = client.ask("GET", DESIGN)
    listed = HttpClient(client.node, Service.MANAGEMENT, 2).ask("GET", "/pools/default/buckets/default/ddocs").document
    view = client.ask("GET", f"{DESIGN}/_view/by_name")
    dropped = [client.ask("DELETE", DESIGN).status for _ in range(2)]

    assert (201, document) == (put.status, found.body)
    assert ["_design/people"] == [row["doc"]["meta"]["id"] for row in listed["rows"]]  # type: ignore[attr-defined]
    assert "nodes.script.answer" in view.body.decode()
    assert f"view-functions in {PAGE}" in view.body.decode()
    assert [200, 404] == dropped


@rows(
    ("method", "target", "status", "reason"),
    [
        ("GET", DESIGN, 404, "missing"),
        ("GET", f"{DESIGN}/_view/by_name", 404, "missing"),
        ("GET", "/gone/_design/people/_view/by_name", 404, "missing"),
        ("GET", "/default/elsewhere", 404, f"no such path; {PAGE}"),
        ("PUT", DESIGN, 400, "JSON"),
        ("GET", "/", 200, ""),
    ],
)
def test_other_requests(method: str, target: str, status: int, reason: str) -> None:
    """A missing object, an unknown path or an invalid body is an error with its reason; the root responds."""
    answered = HttpClient(FakeNode(), Service.VIEWS).ask(method, target)

    assert status == answered.status
    assert reason in answered.body.decode()


@pytest.mark.parametrize("form", [b"storageBackend=magma&ramQuotaMB=1024", b"bucketType=ephemeral&ramQuotaMB=100"])
def test_only_couchstore_has_views(client: HttpClient, form: bytes) -> None:
    """The views of a bucket without Couchstore storage are refused, even if they are scripted."""
    client.node.script.answer("people/by_name", FakeAnswer(rows=[]), service=Service.VIEWS)
    HttpClient(client.node, Service.MANAGEMENT, 2).ask("POST", "/pools/default/buckets", b"name=beer&" + form)
    answers = [
        client.ask("PUT", "/beer/_design/people", b"{}"),
        client.ask("GET", "/beer/_design/people/_view/by_name"),
    ]

    assert [404, 404] == [answered.status for answered in answers]
    assert all(b"couchstore storage backend" in answered.body for answered in answers)


def test_missing_view(client: HttpClient) -> None:
    """A view that its design document lacks gets a different error from a missing document."""
    client.ask("PUT", DESIGN, b"{}")

    assert b"missing_named_view" in client.ask("GET", f"{DESIGN}/_view/by_name").body
