"""Rules for retries of HTTP requests: the tables of the RFCs, custom rules, and ``Retry-After`` headers."""

from __future__ import annotations

import math
import time
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import calls
from triclinium_core.retry.calls.http_rules import RETRY_AFTER_MOST
from triclinium_core.retry.smithy import ErrorInfo

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WALL_SECONDS = NOON.timestamp()

GET = calls.HttpRequestFacts("GET")
POST = calls.HttpRequestFacts("POST")
POST_WITH_KEY = calls.HttpRequestFacts("POST", has_idempotency_key=True)
PUT_OF_A_STREAM = calls.HttpRequestFacts("PUT", is_replayable=False)

UNSENT = calls.HttpFailure(is_unsent=True)
UNANSWERED = calls.HttpFailure()


def test_the_methods_are_those_of_the_rfc() -> None:
    """The idempotent methods are PUT, DELETE and the safe methods (RFC 9110, section 9.2.2)."""
    assert {"PUT", "DELETE", "GET", "HEAD", "OPTIONS", "TRACE"} == calls.IDEMPOTENT_METHODS


def retried(rules: calls.HttpRetryRules) -> list[int]:
    """Return the statuses after which the rules retry a GET."""
    return [status for status in range(100, 600) if rules.judge_answer(GET, status, None, WALL_SECONDS).is_retry_safe]


def test_statuses() -> None:
    """By default the rules retry the statuses for transient conditions, but not 500."""
    assert [408, 425, 429, 502, 503, 504] == retried(calls.HttpRetryRules())
    assert all(rule.reason for rule in calls.RETRIED_STATUSES.values())


def test_kinds_of_statuses() -> None:
    """Of the retried statuses, one is throttling, two are timeouts, and each is a fault of the client or the server."""
    rules = calls.HttpRetryRules()
    found = {status: rules.judge_answer(GET, status, None, WALL_SECONDS) for status in calls.RETRIED_STATUSES}

    assert {429} == {status for status, info in found.items() if info.is_throttling_error}
    assert {408, 504} == {status for status, info in found.items() if info.is_timeout_error}
    assert {"client": {408, 425, 429}, "server": {502, 503, 504}} == {
        fault: {status for status, info in found.items() if info.fault == fault} for fault in ("client", "server")
    }


@rows(("expected", "status"), [(True, 200), (True, 304), (True, 404), (False, 429), (False, 500), (False, 503)])
def test_successful_statuses(expected: bool, status: int) -> None:
    """By default, a status is a success unless it means throttling or a server error."""
    assert expected is calls.HttpRetryRules().is_success(status)


@rows(
    ("expected", "request_facts", "rules"),
    [
        (True, GET, calls.HttpRetryRules()),
        (False, POST, calls.HttpRetryRules()),
        (False, POST_WITH_KEY, calls.HttpRetryRules()),
        (True, POST_WITH_KEY, calls.HttpRetryRules(idempotency_key=True)),
        (False, POST, calls.HttpRetryRules(idempotency_key=True)),
        (True, POST, calls.HttpRetryRules(methods={"POST"})),
        (False, GET, calls.HttpRetryRules(methods={"POST"})),
        (False, PUT_OF_A_STREAM, calls.HttpRetryRules()),
        (False, calls.HttpRequestFacts("get"), calls.HttpRetryRules()),
    ],
)
def test_retry_safe_requests(
    expected: bool, request_facts: calls.HttpRequestFacts, rules: calls.HttpRetryRules
) -> None:
    """A request that may have arrived is retry-safe only if it is repeatable; an unsent request is always safe."""
    assert expected is rules.judge_answer(request_facts, 503, None, WALL_SECONDS).is_retry_safe
    assert expected is rules.judge_failure(request_facts, UNANSWERED).is_retry_safe
    assert True is rules.judge_failure(request_facts, UNSENT).is_retry_safe


@rows("is_timeout", [True, False])
def test_failures(is_timeout: bool) -> None:
    """A failure without a response has no fault and no ``retry_after``; it may be a timeout."""
    assert ErrorInfo(is_retry_safe=True, is_timeout_error=is_timeout) == calls.HttpRetryRules().judge_failure(
        GET, calls.HttpFailure(is_timeout=is_timeout)
    )


def test_custom_statuses() -> None:
    """Custom statuses replace the defaults; a listed status is retried and is no success, whatever it means."""
    rules = calls.HttpRetryRules(statuses={404, 500})

    assert ErrorInfo(is_retry_safe=True, fault="client") == rules.judge_answer(GET, 404, None, WALL_SECONDS)
    assert ErrorInfo(is_retry_safe=True, fault="server") == rules.judge_answer(GET, 500, None, WALL_SECONDS)
    assert rules.judge_answer(GET, 429, None, WALL_SECONDS).is_throttling_error
    assert [404, 500] == retried(rules)
    assert [False, False, False, True] == [rules.is_success(status) for status in (404, 500, 503, 429)]


@rows(("expected", "text"), [(True, "60"), (False, "61"), (True, "soon"), (True, None)])
def test_a_retry_after_above_the_limit(expected: bool, text: str | None) -> None:
    """If and only if ``Retry-After`` exceeds the limit, the response is not retry-safe."""
    info = calls.HttpRetryRules(retry_after_max=60).judge_answer(GET, 503, text, WALL_SECONDS)

    assert expected is info.is_retry_safe


@rows(
    ("expected", "text"),
    [
        (None, None),
        (0.0, "0"),
        (120.0, "120"),
        (120.0, " 120\t"),
        (7.0, "007"),
        (RETRY_AFTER_MOST, "9" * 20),
        (RETRY_AFTER_MOST, "9" * 5000),
        (30.0, "Sat, 21 Nov 2026 12:00:30 GMT"),
        (30.0, "Saturday, 21-Nov-26 12:00:30 GMT"),
        (30.0, "Sat Nov 21 12:00:30 2026"),
        (30.0, "Sat, 21 Nov 2026 12:00:30 -0000"),
        (0.0, "Sat, 21 Nov 2026 11:59:30 GMT"),
        (RETRY_AFTER_MOST, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (None, ""),
        (None, "-5"),
        (None, "+5"),
        (None, "1.5"),
        (None, "1e5"),
        (None, "inf"),
        (None, "nan"),
        (None, "\u0661\u0662"),
        (None, "\u00b2"),
        (None, "120, 30"),
        (None, "soon"),
        (None, "Sat, 99 Nov 2026 12:00:30 GMT"),
        (None, "Sat, 21 Nov 99999999999999999999 12:00:30 GMT"),
        (None, "Fri, 31 Dec 9999 23:59:59 -9999"),
    ],
)
def test_retry_after(expected: float | None, text: str | None) -> None:
    """``Retry-After`` may be seconds or any of three date forms; invalid text gives None, and a past date gives 0."""
    assert expected == calls.parse_retry_after(text, WALL_SECONDS)


@pytest.mark.native
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_date_without_a_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A date without a time zone is read as UTC, whatever the local time zone is."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        delay = calls.parse_retry_after("Sat Nov 21 12:00:30 2026", WALL_SECONDS)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert 30.0 == delay


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,6} [0-9:]{0,9} ?[-+A-Z0-9]{0,6}"))
def test_any_header_gives_seconds_or_none(text: str) -> None:
    """Any header text gives None or a valid number of seconds."""
    delay = calls.parse_retry_after(text, WALL_SECONDS)

    assert delay is None or 0 <= delay <= RETRY_AFTER_MOST


@given(st.integers(min_value=0, max_value=10**9))
def test_every_number_of_seconds_is_parsed(seconds: int) -> None:
    """Every number of seconds up to 10**9 is parsed exactly, as a number and as a date."""
    assert float(seconds) == calls.parse_retry_after(str(seconds), WALL_SECONDS)
    date = format_datetime(NOON + timedelta(seconds=seconds), usegmt=True)
    assert float(seconds) == calls.parse_retry_after(date, WALL_SECONDS)


@rows(
    ("parameter", "value", "said"),
    [
        ("methods", "GET", "methods='GET' must be a set"),
        ("methods", ["GET"], "must be a set of methods"),
        ("methods", {"get"}, "^methods .*'get'"),
        ("methods", {7}, "^methods .*7"),
        ("methods", {"GET,PUT"}, "^methods .*'GET,PUT'"),
        ("statuses", 503, "statuses=503 must be a set"),
        ("statuses", {200}, "^statuses .*200"),
        ("statuses", {True}, "^statuses .*True"),
        ("statuses", {"503"}, "^statuses .*'503'"),
        ("idempotency_key", 1, "idempotency_key=1 must be True or False"),
        ("retry_after_max", -1, "retry_after_max=-1"),
        ("retry_after_max", math.nan, "retry_after_max=nan"),
        ("retry_after_max", math.inf, "retry_after_max=inf"),
        ("retry_after_max", True, "retry_after_max=True"),
        ("retry_after_max", 10**5000, "retry_after_max=<int>"),
        ("statuses", {10**5000}, "^statuses .*<int>"),
        ("retry_after_max", "60", "retry_after_max='60'"),
    ],
)
def test_invalid_rules(parameter: str, value: object, said: str) -> None:
    """If an argument is invalid, the constructor of the rules raises an error with its name."""
    with refusal_of(parameter, said):
        calls.HttpRetryRules(**{parameter: value})  # type: ignore[arg-type]


@rows("methods", [set(), frozenset({"GET"}), {"PROPFIND", "VERSION-CONTROL"}, {"GET": 1}.keys()])
def test_sets_of_any_kind(methods: AbstractSet[str]) -> None:
    """Any kind of set is accepted as the methods, even an empty set."""
    assert methods == calls.HttpRetryRules(methods=methods).methods
