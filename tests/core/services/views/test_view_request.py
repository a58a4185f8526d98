"""View query requests: their target, the encoding of names, and invalid arguments."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from hypothesis import assume, given, strategies as st

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import is_idempotent
from triclinium_core.services.service_request import HttpRequest, HttpResponse
from triclinium_core.services.views.options import DesignDocumentNamespace, ViewOptions
from triclinium_core.services.views.view_request import ViewRequest

VIEW = ViewRequest(bucket_name="travel", design_document="people", view_name="by_name")


def request(**options: object) -> ViewRequest:
    """Return a request with changed arguments."""
    least = {"bucket_name": "travel", "design_document": "people", "view_name": "by_name"}
    return ViewRequest(**{**least, **options})  # type: ignore[arg-type]


def test_default_request() -> None:
    """The default request is a GET without parameters and without a timeout, because the service accepts no timeout."""
    assert HttpRequest("GET", "/travel/_design/people/_view/by_name") == VIEW.encode(1)


@rows(("options", "expected"), [
        ({"namespace": DesignDocumentNamespace.DEVELOPMENT}, "/travel/_design/dev_people/_view/by_name"),
        ({"bucket_name": "a.b%"}, "/a.b%25/_design/people/_view/by_name"),
        ({"design_document": "a/b?c", "view_name": "é #"}, "/travel/_design/a%2Fb%3Fc/_view/%C3%A9%20%23"),
    ])  # fmt: skip
def test_paths(options: Mapping[str, object], expected: str) -> None:
    """Names of any characters stay single segments of the path."""
    assert expected == request(**options).encode(1).target


def test_query_strings() -> None:
    """Separators in a key are percent-encoded, and a space is not encoded as a plus sign."""
    options = ViewOptions(limit=5, key="a&b=c d+é/")

    assert "limit=5&key=%22a%26b%3Dc%20d%2B%C3%A9%2F%22" == request(options=options).encode(1).target.partition("?")[2]


def test_several_keys() -> None:
    """Several keys are sent in the body of a POST, and other options in the query string."""
    asked = request(options=ViewOptions(keys=["a", 5], limit=2))
    sent = asked.encode(1)

    assert asked.has_body
    assert not request().has_body
    assert HttpRequest("POST", "/travel/_design/people/_view/by_name?limit=2", b'{"keys":["a",5]}') == sent


@rows(("parameter", "options"), [
        ("bucket", {"bucket_name": ""}),
        ("bucket", {"bucket_name": "a/b"}),
        ("bucket", {"bucket_name": None}),
        *(("design_document", {"design_document": value}) for value in ("", ".", "..", None, 5, "\ud800")),
        *(("view_name", {"view_name": value}) for value in ("", ".", "..", None, 5)),
        ("namespace", {"namespace": "dev_"}),
        ("options", {"options": {}}),
        ("client_context_id", {"client_context_id": None}),
    ])  # fmt: skip
def test_invalid_requests(parameter: str, options: Mapping[str, object]) -> None:
    """An invalid argument raises an error that names the argument; so does a name that would change the path."""
    refused(parameter, request, **options)


def test_error_context() -> None:
    """The error context has the view but no key, and the request names the bucket whose nodes may get it."""
    asked = request(options=ViewOptions(keys=["secret"]), client_context_id="x")

    assert asked.error_context() == ErrorContext(
        service="views",
        operation="view_query",
        idempotent=True,
        bucket="travel",
        design_document="people",
        view="by_name",
        http_method="POST",
        http_path="/travel/_design/people/_view/by_name",
        client_context_id="x",
    )
    assert "GET" == VIEW.error_context().http_method
    assert "secret" not in repr(asked)
    assert "travel" == VIEW.bucket
    assert VIEW.idempotent is is_idempotent(VIEW.service, VIEW.name)


def test_decode() -> None:
    """A successful response is decoded to the metadata of the view query."""
    assert 7 == VIEW.decode(HttpResponse(200, b'{"total_rows":7,"rows":[]}')).total_rows


TEXTS = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


@given(document=TEXTS, view=TEXTS, key=JSON, name=TEXTS, value=TEXTS)
def test_names_and_values_are_encoded(document: str, view: str, key: object, name: str, value: str) -> None:
    """The target is ASCII, and the server decodes the original names and values from it."""
    assume(not {document, view} & {".", ".."} and name != "key")
    asked = request(design_document=document, view_name=view, options=ViewOptions(key=key, raw={name: value}))
    target = urlsplit(asked.encode(1).target)

    assert target.path.isascii()
    assert target.query.isascii()
    assert ["", "travel", "_design", document, "_view", view] == [unquote(part) for part in target.path.split("/")]
    assert list(asked.options.parameters) == parse_qsl(target.query, keep_blank_values=True)
