"""Parser for responses of the HTTP services, with any body."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from tests.core.retry.couchbase.tables.service_cases import bodies
from tests.rows import rows
from triclinium_core.concealment import BEGINNING_MIN, Secrets
from triclinium_core.retry.couchbase import Service
from triclinium_core.retry.couchbase.tables.service_answers import CODES_REPORTED_MAX, read_answer
from triclinium_core.shown import SERVER_TEXT_MAX, TEXT_READ_MAX

_, QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = Service


@rows("service", [QUERY, ANALYTICS])
def test_errors_with_numbers(service: Service) -> None:
    """The first error decides (decision C22), and the codes of the further errors are listed."""
    body = {
        "errors": [
            {"code": 12009, "msg": "DML Error", "reason": {"code": 12033}, "retry": False},
            {"code": 4040},
            {"code": "5000"},
            "no error",
            {"code": 3000, "retry": True},
        ]
    }
    answer = read_answer(service, 409, json.dumps(body), "query")

    assert (12009, "DML Error", 12033, (4040, 3000)) == (answer.code, answer.message, answer.cause, answer.more_codes)
    assert answer.server_permits_retry is False
    assert (service, "query", 409, body) == (answer.service, answer.operation, answer.http_status, answer.body)


@rows(
    "body",
    [
        '{"errors": "4040"}',
        '{"errors": [4040]}',
        '{"errors": [null, {"code": 4040}]}',
        '{"errors": [{}]}',
        '{"errors": [{"code": "4040"}]}',
        '{"errors": [{"code": 4040.0}]}',
        '{"errors": [{"code": true}]}',
        '{"errors": [{"code": null, "msg": 1, "retry": "yes", "reason": 17}]}',
        '{"errors": [{"code": ' + "4" * 4000 + "}]}",
        '{"errors": [[4040, "stale"]]}',
    ],
)
def test_errors_without_a_number(body: str) -> None:
    """A response whose error has no valid code is a failure, even with status 200, and has no code."""
    answer = read_answer(QUERY, 200, body)

    assert answer.is_failure
    assert (None, None, (), None) == (answer.code, answer.cause, answer.more_codes, answer.server_permits_retry)


@rows(
    ("service", "http_status", "body", "is_failure"),
    [
        *((service, 200, "{}", False) for service in (QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT)),
        *((service, 200, "", False) for service in (QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT)),
        *((service, 300, "{}", True) for service in (QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT)),
        *((service, 200, "<html>", True) for service in (QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT)),
        *((QUERY, 200, json.dumps({"status": status}), False) for status in ("success", "running", "completed")),
        *((QUERY, 200, json.dumps({"status": status}), True) for status in ("fatal", "errors", "timeout", "stopped")),
        (QUERY, 200, '{"errors": []}', False),
        (QUERY, 200, '{"status": ["fatal"]}', False),
        (SEARCH, 200, '{"error": "rest_index: no"}', True),
        (SEARCH, 200, '{"status": {"failed": 1}, "error": ""}', False),
        (VIEWS, 200, '{"error": "not_found", "reason": "missing"}', True),
        (VIEWS, 200, '{"rows": [], "errors": [{"from": "local", "reason": "x"}]}', False),
        (MANAGEMENT, 200, '{"error": "a bucket of this name"}', False),
        *((MANAGEMENT, 200, body, False) for body in ("[]", "true", '"done"', "All bucket nodes will be flushed")),
    ],
)
def test_failures(service: Service, http_status: int, body: str, is_failure: bool) -> None:
    """The HTTP status, the service's own mark of an error, or a body from another server makes a response a failure."""
    for given_body in (body, body.encode()):
        assert is_failure is read_answer(service, http_status, given_body).is_failure


@rows(
    ("service", "body", "reported"),
    [
        (QUERY, '{"errors": [{"code": 3000, "msg": "syntax  error\\n near \\u0007 x"}]}', "syntax error near \\x07 x"),
        (QUERY, '{"errors": [{"code": 3000}]}', ""),
        (SEARCH, '{"error": "index not found", "request": {}, "status": "fail"}', "index not found"),
        (VIEWS, '{"error": "not_found", "reason": "deleted"}', "not_found; deleted"),
        (MANAGEMENT, '{"errors": {"name": "too long", "quota": 5}}', "name: too long"),
        (MANAGEMENT, '{"errors": ["one", 2, "three"]}', "one; three"),
        (MANAGEMENT, '{"message": "Forbidden.", "permissions": ["cluster.x!y"]}', "Forbidden.; cluster.x!y"),
        (MANAGEMENT, '"Unknown user."', "Unknown user."),
        (MANAGEMENT, "Requested resource not found.\r\n", "Requested resource not found."),
        (MANAGEMENT, "<html>gone", ""),
        (QUERY, "<html>gone", ""),
        (SEARCH, "", ""),
    ],
)
def test_the_text_of_an_error(service: Service, body: str, reported: str) -> None:
    """The error's text comes from the part of the body that the service uses for it; a foreign body gives no text."""
    assert reported == read_answer(service, 400, body).error_text


@rows("service", Service)
def test_a_foreign_body(service: Service) -> None:
    """The page of a proxy is a foreign body; an empty body is not."""
    assert read_answer(service, 502, b" \n<!doctype html>").is_foreign
    assert not read_answer(service, 502, b" \n").is_foreign
    assert (service is MANAGEMENT) is not read_answer(service, 502, b"Bad Gateway").is_foreign
    assert (service is MANAGEMENT) is not read_answer(service, 502, b"[17]").is_foreign


def test_listed_codes_are_limited() -> None:
    """At most ``CODES_REPORTED_MAX`` codes of further errors are listed."""
    body = json.dumps({"errors": [{"code": number} for number in range(10_000)]})

    assert tuple(range(1, CODES_REPORTED_MAX + 1)) == read_answer(QUERY, 400, body).more_codes


@given(st.sampled_from(Service), st.integers(100, 599), bodies)
def test_any_body_is_parsed(service: Service, http_status: int, body: bytes | str) -> None:
    """For any body the parser raises nothing, and the text is one printable line of limited length."""
    answer = read_answer(service, http_status, body)

    assert answer.is_failure or http_status < 300
    assert len(answer.error_text) <= SERVER_TEXT_MAX
    assert answer.error_text.isprintable()
    assert all(code is None or type(code) is int for code in (answer.code, answer.cause, *answer.more_codes))


PASSWORD = "s3cret>password?"


@rows("shown", range(len(PASSWORD) + 5))
def test_a_password_at_the_read_limit(shown: int) -> None:
    """If the size limit cuts an echoed password in two, the text does not show the first part of the password."""
    secrets = Secrets(passwords=(PASSWORD,))
    text = f"{' ' * (TEXT_READ_MAX - shown - 1)} {PASSWORD} is wrong"
    page = read_answer(QUERY, 502, f"<html>{text}").body_start(secrets)
    error = read_answer(QUERY, 400, json.dumps({"errors": [{"code": 3000, "msg": text}]})).error_text_without(secrets)

    assert [] == [line for line in (page, error) if PASSWORD[:BEGINNING_MIN] in line]
