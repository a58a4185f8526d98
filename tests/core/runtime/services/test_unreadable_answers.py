"""Unreadable responses: each fails only its own request, and no error contains credentials."""

from __future__ import annotations

import json

import pytest

from tests.core.runtime.services.asking import ROWS, Asking, asking
from tests.core.runtime.services.request_cases import BASIC
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import couchbase, neutral
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.management.buckets import AllBucketsResult, GetAllBuckets, GetBucket
from triclinium_core.services.management.users import ChangePassword
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.testing.fakes.faults import Fault
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.answers import FakeAnswer


def test_an_unreadable_first_answer_names_its_node() -> None:
    """If the rows of a first attempt are malformed, the context of the error has the node of this attempt."""
    simulation = Asking()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n"
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(head + b'{"results":[1,oops'))
    error = simulation.failure(errors.DecodingFailureException, asking())

    assert "127.0.0.1:8093" == error.context.last_dispatched_to
    assert 0 == error.context.retry_attempts


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize(
    "body",
    ["", "[]", '{"results": [1', '{"results":[1,]}', '{"metrics": 7, "results": []}', '{"results":[1],"status":7}'],
)
def test_an_answer_that_cannot_be_read(body: str, *, readonly: bool) -> None:
    """If a response is unreadable, the error states whether the statement may have been applied; the next succeeds."""
    simulation = Asking()
    simulation.nodes.script.answer("SELECT odd", FakeAnswer(body=body))

    error = simulation.failure(errors.DecodingFailureException, asking("SELECT odd", readonly=readonly))

    assert readonly is not ("may have been applied" in str(error))
    assert ROWS == simulation.rows[simulation.finish(asking())]


@rows(
    ("fault", "kind"),
    [
        (faults.gzipped(), errors.DecodingFailureException),
        (faults.gzipped(zeros=2**24), errors.DecodingFailureException),
        (faults.endless_headers(), errors.DecodingFailureException),
        (faults.endless_body(), errors.DecodingFailureException),
        (faults.raw_answer(b"\x15\x03\x01\x00\x02\x02\x46"), errors.DecodingFailureException),
        (faults.raw_answer(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), errors.DecodingFailureException),
        (faults.wrong_chunk_size(announced=5), errors.DecodingFailureException),
        (faults.wrong_chunk_size(announced=2**40), errors.DecodingFailureException),
        (faults.wrong_content_length(announced=5), errors.DecodingFailureException),
        (faults.wrong_content_length(announced=2**40), errors.AmbiguousTimeoutException),
        (faults.redirect("http://127.0.0.2:8093/query/service"), errors.CouchbaseException),
        (faults.proxy_page(), errors.CouchbaseException),
    ],
)
def test_a_malformed_response_fails_only_its_request(fault: Fault, kind: type[errors.CouchbaseException]) -> None:
    """A malformed response or a redirect fails its request; a concurrent and a later request succeed, no other is sent."""
    simulation = Asking(timeouts=TimeoutOptions(query=5.0))
    simulation.nodes[0].faults.next(Service.QUERY, fault)

    bad, good = simulation.request(asking()), simulation.request(asking())
    simulation.run()
    again = simulation.finish(asking())

    assert kind is type(simulation.errors[bad])
    assert ROWS == simulation.rows[good] == simulation.rows[again]
    assert 3 == len(simulation.asked)


def _answer(status: str, kind: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@rows(
    "answer",
    [
        _answer("400 Bad Request", "text/html", f"<html>authorization: Basic {BASIC}</html>"),
        _answer("400 Bad Request", "text/html", f"<html>authorization: Basic {BASIC[:11]}"),
        _answer("502 Bad Gateway", "text/html", f"<html>{'x' * 270} Basic {BASIC}"),
        _answer("400 Bad Request", "text/plain", f"Authorization=Basic%20{BASIC.replace('=', '%3D').lower()}"),
        _answer("400 Bad Request", "text/plain", "user Administrator:password is refused"),
        _answer("400 Bad Request", "text/html", f"<html>{'x' * 280} Administrator:password is refused"),
        _answer("200 OK", "application/json", json.dumps({"errors": [{"code": 5000, "msg": f"got {BASIC}"}]})),
        _answer("400 x", "application/json", json.dumps({"errors": [{"msg": BASIC}]}).replace("=", "\\u003d")),
        f"POST /query/service HTTP/1.1\r\nauthorization: Basic {BASIC}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {BASIC}\r\n\r\n".encode(),
        f"authorization Basic {BASIC}\r\n\r\n".encode(),
    ],
)
def test_an_answer_that_repeats_the_credentials(answer: bytes) -> None:
    """If a response repeats the credentials, no part of them is in the error, its context or the connection reports."""
    simulation = Asking(timeouts=TimeoutOptions(query=5.0))
    simulation.nodes[0].faults.always(Service.QUERY, faults.raw_answer(answer))
    token = simulation.finish(asking())
    error = simulation.errors[token]
    reports = [action.text for action in simulation.actions if isinstance(action, neutral.ReportConnection)]

    for reported in (str(error), error.context.to_json(), repr(error.context), *reports):
        assert "QWRtaW" not in reported.replace("%", "")
        assert "qwrtaw" not in reported.lower()
        assert "Administrator:pass" not in reported


def test_a_password_in_a_request_that_is_repeated() -> None:
    """If a management service repeats a request that has a new password, the error does not contain the password."""
    simulation = Asking()
    echo = _answer("400 Bad Request", "text/plain", "name=&roles=&password=correct%20horse%20battery")
    simulation.nodes[0].faults.always(Service.MANAGEMENT, faults.raw_answer(echo))
    error = simulation.errors[simulation.finish(ChangePassword(new_password="correct horse battery"))]

    assert "horse" not in str(error) + error.context.to_json()


@rows(
    ("answer", "is_used"),
    [
        (b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}", False),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{"results":[1],"status":"success"}', True),
    ],
)
def test_nothing_queues_behind_a_half_sent_request(answer: bytes, is_used: bool) -> None:
    """If a response precedes the end of its large request, it ends that request, and the next one is sent elsewhere."""
    simulation = Asking(max_http_connections=1)
    simulation.finish(asking())
    large = simulation.request(asking("x" * 1_000_000))
    (stream,) = (stream for stream, link in simulation.links.items() if len(link.outgoing) > 1_000_000)
    simulation.feed(neutral.BytesReceived(stream, answer))
    simulation.feed(couchbase.RowsWanted(large))
    simulation.actions.clear()
    after = simulation.finish(asking())

    assert [] == [
        action for action in simulation.actions if isinstance(action, neutral.SendBytes) and action.stream == stream
    ]
    assert ROWS == simulation.rows[after]
    assert is_used is (simulation.rows.get(large) == [b"1"])
    assert is_used is not (large in simulation.errors)


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (GetBucket(bucket_name="travel"), b"7"),
        (GetAllBuckets(), b"7"),
        (asking(), b'{"results":[],"status":7}'),
        (asking(), b'{"results":[1,oops'),
        (asking(), b'{"results":[1'),
        (asking(adhoc=False), b'{"results":[{"name":7}],"status":"success"}'),
    ],
)
def test_undecodable_answer_has_http_status(request_: ServiceRequest, body: bytes) -> None:
    """If a response with status 200 cannot be decoded, its request fails, and the context has this status."""
    simulation = Asking(enhanced=False)
    simulation.nodes[0].faults.next(request_.service, faults.http_status(200, body=body))

    error = simulation.failure(errors.DecodingFailureException, request_)

    assert 200 == error.context.http_status


@pytest.mark.parametrize("enhanced", [False, True])
def test_an_unreadable_plan_has_changed_nothing(enhanced: bool) -> None:
    """If a response is unreadable, the error states that the statement may have been applied, except for a PREPARE."""
    simulation = Asking(enhanced=enhanced)
    body = b'{"results":[{"name":7}],"status":7}'
    simulation.nodes[0].faults.next(Service.QUERY, faults.http_status(200, body=body))

    error = simulation.failure(errors.DecodingFailureException, asking(adhoc=False))

    assert enhanced == ("may have been applied" in str(error))


def test_an_answer_without_a_head_has_no_status() -> None:
    """If the response of a statement has no status line, the error does not have the status of its PREPARE."""
    simulation = Asking(enhanced=False)
    plan = b'{"results":[{"name":"p","encoded_plan":"x"}],"status":"success"}'
    for fault in (faults.http_status(200, body=plan), faults.raw_answer(b"nonsense\r\n\r\n")):
        simulation.nodes[0].faults.next(Service.QUERY, fault)

    error = simulation.failure(errors.DecodingFailureException, asking(adhoc=False))

    assert 2 == len(simulation.asked)
    assert error.context.http_status is None


def test_a_list_with_unreadable_rows() -> None:
    """If rows of a list are unreadable, the list omits them, and one warning has their number."""
    simulation = Asking()
    body = '[{"name":"a","quota":{}},{"name":7},null]'
    simulation.nodes.script.answer("GET /pools/default/buckets", FakeAnswer(body=body), service=Service.MANAGEMENT)

    token = simulation.finish(GetAllBuckets())
    found = simulation.answers[token]
    warnings = [
        action.text
        for action in simulation.actions
        if isinstance(action, neutral.ReportConnection) and action.level is neutral.ReportLevel.WARNING
    ]

    assert isinstance(found, AllBucketsResult)
    assert ["a"] == [each.settings.name for each in found.buckets]
    assert [("get_all_buckets", "2")] == [(text.split(":")[0], text.split()[-1]) for text in warnings]
