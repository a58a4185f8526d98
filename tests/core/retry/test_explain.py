"""One case, told by the client's own machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.errors import CouchbaseException, InvalidArgumentException
from triclinium_core.retry.actions import CloseConnection, RefreshCollection, RefreshTopology
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.couchbase_questions import STRATEGIES
from triclinium_core.retry.error_map import parse_entry
from triclinium_core.retry.events import DispatchFailed, HandedOver, SocketClosed
from triclinium_core.retry.explain import Case, ErrorCode, Happening, HttpAnswer, KvAnswer, explain
from triclinium_core.retry.explanation import ERROR_MAP_CLAUSE, DecidedBy, Explanation, Outcome
from triclinium_core.retry.questions import answer
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.service import Service
from triclinium_core.retry.strategy import (
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
)

R = RetryReason
KV, QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = Service

SCHEDULE = {"strategy": "linear", "interval": 20, "after": 10, "max-duration": 500}
RETRIED_BY_MAP = parse_entry({"name": "SLOW", "attrs": ["auto-retry", "temp", "fetch-config"], "retry": SCHEDULE})
OF_NO_USE = parse_entry({"name": "GONE", "desc": "gone for good", "attrs": ["conn-state-invalidated"]})


class Always:
    """Retries everything, whatever the orchestrator says."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry."""
        return RetryAction.after(0.25)


class Broken:
    """Cannot answer."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Raise."""
        raise LookupError(reason)


class Wordless:
    """Answers something that is no answer."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return None."""
        return cast(RetryAction, None)


class Thoughtful:
    """Has to be awaited."""

    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry."""
        return RetryAction.after(0.25)


def case_of(
    happened: Happening,
    operation: str = "upsert",
    *,
    service: Service = KV,
    strategy: AnyRetryStrategy | None = None,
    attempt: int = 0,
    elapsed: float = 0.0,
) -> Case:
    """Return a case with 2.5 seconds of time and best effort, unless told otherwise."""
    return Case(
        service=service,
        operation=operation,
        happened=happened,
        strategy=strategy if strategy is not None else BestEffortRetryStrategy(),
        attempt=attempt,
        elapsed=elapsed,
        timeout=2.5,
    )


def fate(explanation: Explanation) -> tuple[object, ...]:
    """Return reason, outcome, delay and error."""
    return explanation.reason, explanation.outcome, explanation.delay, explanation.error


RETRY, FAIL = Outcome.RETRY, Outcome.FAIL


@rows(
    ("happened", "operation", "expected"),
    [
        (KvAnswer(0x86), "upsert", (R.KV_TEMPORARY_FAILURE, RETRY, 0.001, None)),
        (KvAnswer(0x09), "get", (R.KV_LOCKED, RETRY, 0.001, None)),
        (KvAnswer(0x09), "unlock", (None, FAIL, None, "CasMismatchException")),
        (KvAnswer(0x01), "get", (None, FAIL, None, "DocumentNotFoundException")),
        (KvAnswer(0x00), "get", (None, Outcome.COMPLETE, None, None)),
        (KvAnswer(0x7FF0, RETRIED_BY_MAP), "upsert", (R.KV_ERROR_MAP_RETRY_INDICATED, RETRY, 0.001, None)),
        (KvAnswer(0x7FF0, OF_NO_USE), "upsert", (None, FAIL, None, "CouchbaseException")),
        (KvAnswer(0x7FF0), "upsert", (None, FAIL, None, "CouchbaseException")),
        (SocketClosed(HandedOver.NOTHING), "upsert", (R.SOCKET_NOT_AVAILABLE, RETRY, 0.001, None)),
        (
            SocketClosed(HandedOver.PART),
            "upsert",
            (R.SOCKET_CLOSED_WHILE_IN_FLIGHT, FAIL, None, "RequestCanceledException"),
        ),
        (SocketClosed(HandedOver.ALL), "get", (R.SOCKET_CLOSED_WHILE_IN_FLIGHT, RETRY, 0.001, None)),
        (DispatchFailed(R.CIRCUIT_BREAKER_OPEN), "upsert", (R.CIRCUIT_BREAKER_OPEN, RETRY, 0.001, None)),
        (DispatchFailed(R.UNKNOWN), "upsert", (R.UNKNOWN, FAIL, None, "RequestCanceledException")),
        (DispatchFailed(R.KV_TEMPORARY_FAILURE), "upsert", (R.KV_TEMPORARY_FAILURE, RETRY, 0.001, None)),
    ],
)
def test_kv(happened: Happening, operation: str, expected: tuple[object, ...]) -> None:
    """What befalls a KV request decides its reason, and with the operation its fate."""
    assert expected == fate(explain(case_of(happened, operation)))


@rows(
    ("service", "happened", "expected"),
    [
        (QUERY, ErrorCode(4040), (R.QUERY_PREPARED_STATEMENT_FAILURE, RETRY, 0.001, None)),
        (QUERY, ErrorCode(5000, "queryport.indexNotFound"), (R.QUERY_INDEX_NOT_FOUND, RETRY, 0.001, None)),
        (QUERY, ErrorCode(5000, "disk full"), (None, FAIL, None, "CouchbaseException")),
        (QUERY, HttpAnswer(200, b"{}"), (None, Outcome.COMPLETE, None, None)),
        (
            QUERY,
            HttpAnswer(200, '{"errors":[{"code":4050}]}'),
            (R.QUERY_PREPARED_STATEMENT_FAILURE, RETRY, 0.001, None),
        ),
        (ANALYTICS, ErrorCode(23007), (R.ANALYTICS_TEMPORARY_FAILURE, RETRY, 0.001, None)),
        (SEARCH, HttpAnswer(429), (R.SEARCH_TOO_MANY_REQUESTS, RETRY, 0.001, None)),
        (VIEWS, HttpAnswer(302), (R.VIEWS_NO_ACTIVE_PARTITION, RETRY, 0.001, None)),
        (MANAGEMENT, HttpAnswer(503), (None, FAIL, None, "CouchbaseException")),
        (QUERY, DispatchFailed(R.SERVICE_NOT_AVAILABLE), (R.SERVICE_NOT_AVAILABLE, RETRY, 0.001, None)),
        (
            SEARCH,
            SocketClosed(HandedOver.ALL),
            (R.SOCKET_CLOSED_WHILE_IN_FLIGHT, RETRY, 0.001, None),
        ),
    ],
)
def test_http_services(service: Service, happened: Happening, expected: tuple[object, ...]) -> None:
    """The answers of the HTTP services are read by their own lists."""
    assert expected == fate(explain(case_of(happened, "query", service=service)))


@pytest.mark.parametrize(
    ("case", "expected", "clause"),
    [
        (Case(service=KV, operation="get", happened=KvAnswer(0)), True, "List: KV: Get Request"),
        (Case(service=KV, operation="upsert", happened=KvAnswer(0)), False, "no line names it"),
        (Case(service=KV, operation="upsert", happened=KvAnswer(0), idempotent=True), True, "the caller says so"),
        (Case(service=KV, operation="get", happened=KvAnswer(0), idempotent=False), False, "the caller says so"),
        (Case(service=QUERY, operation="query", happened=ErrorCode(1)), False, "which does not hold here"),
        (
            Case(service=QUERY, operation="query", happened=ErrorCode(1), readonly=True),
            True,
            'the "readonly" property is set to "true"',
        ),
        (
            Case(service=MANAGEMENT, operation="http", happened=HttpAnswer(503), method="GET"),
            True,
            'every "GET" call',
        ),
    ],
)
def test_idempotency(case: Case, expected: bool, clause: str) -> None:
    """The caller's word goes first, then the list with what it looks at."""
    explanation = explain(case)

    assert expected is explanation.idempotent
    assert clause in explanation.idempotent_clause


@rows(
    ("case", "expected"),
    [
        (case_of(KvAnswer(0x01)), DecidedBy.RESPONSE),
        (case_of(KvAnswer(0x00)), DecidedBy.RESPONSE),
        (case_of(KvAnswer(0x86), elapsed=2.5), DecidedBy.DEADLINE),
        (case_of(KvAnswer(0x07), elapsed=2.5), DecidedBy.DEADLINE),
        (case_of(KvAnswer(0x07), strategy=FailFastRetryStrategy()), DecidedBy.CONTROLLED_BACKOFF),
        (case_of(KvAnswer(0x07), strategy=Thoughtful()), DecidedBy.CONTROLLED_BACKOFF),
        (case_of(KvAnswer(0x86)), DecidedBy.STRATEGY),
        (case_of(KvAnswer(0x86), strategy=FailFastRetryStrategy()), DecidedBy.STRATEGY),
        (case_of(KvAnswer(0x86), strategy=Thoughtful()), DecidedBy.STRATEGY),
        (case_of(KvAnswer(0x86), strategy=Broken()), DecidedBy.STRATEGY),
        (case_of(KvAnswer(0x86), strategy=Wordless()), DecidedBy.STRATEGY),
        (case_of(SocketClosed(HandedOver.ALL), strategy=Always()), DecidedBy.ORCHESTRATOR),
        (case_of(SocketClosed(HandedOver.ALL), "get", strategy=Always()), DecidedBy.STRATEGY),
    ],
)
def test_who_decides(case: Case, expected: DecidedBy) -> None:
    """It shows in who was asked, and in what was done about the answer."""
    assert expected is explain(case).decided_by


def test_a_flag_that_forbids_overrules_always_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """When no strategy was asked and the time is not up, the orchestrator refused."""
    monkeypatch.setattr(R.SOCKET_CLOSED_WHILE_IN_FLIGHT, "always_retry", True)

    explanation = explain(case_of(SocketClosed(HandedOver.ALL)))

    assert (DecidedBy.ORCHESTRATOR, "RequestCanceledException") == (explanation.decided_by, explanation.error)


@rows(
    ("case", "expected"),
    [
        (case_of(KvAnswer(0x86), attempt=3), "wants a retry in 8 ms"),
        (case_of(KvAnswer(0x86), elapsed=2.4995), "wants a retry in 1 ms"),
        (case_of(KvAnswer(0x86), strategy=FailFastRetryStrategy()), "refuses"),
        (case_of(KvAnswer(0x86), strategy=Broken()), "raises LookupError"),
        (case_of(KvAnswer(0x86), strategy=Wordless()), "answers what is no RetryAction"),
        (case_of(SocketClosed(HandedOver.ALL)), "refuses, since the request is not idempotent"),
        (case_of(SocketClosed(HandedOver.ALL), strategy=Always()), "wants a retry in 250 ms"),
        (
            case_of(DispatchFailed(R.TLS_ERROR), strategy=FastFailOnTerminalErrorRetryStrategy()),
            "refuses: TLS_ERROR is one of the five terminal reasons",
        ),
        (
            case_of(KvAnswer(0x7FF0, RETRIED_BY_MAP), strategy=ErrorMapRetryStrategy(), attempt=1, elapsed=0.5),
            "refuses, since the time of the error map's schedule is up",
        ),
        (
            case_of(KvAnswer(0x7FF0, RETRIED_BY_MAP), strategy=ErrorMapRetryStrategy(), attempt=1, elapsed=0.495),
            "wants a retry in 20 ms, but only within 5 ms",
        ),
        (case_of(KvAnswer(0x07)), None),
        (case_of(KvAnswer(0x01)), None),
        (case_of(KvAnswer(0x86), elapsed=2.5), None),
        (case_of(KvAnswer(0x86), strategy=Thoughtful()), None),
    ],
)
def test_what_the_strategy_answers(case: Case, expected: str | None) -> None:
    """A retry and when, or a refusal and what it minds; nothing where it was not asked."""
    assert expected == explain(case).strategy_answer


def test_the_words_stand_in_the_decision() -> None:
    """Of a strategy that is heard, and of one that is overruled."""
    heard = explain(case_of(KvAnswer(0x86), strategy=Always())).sentences()[3]
    overruled = explain(case_of(SocketClosed(HandedOver.ALL), strategy=Always())).sentences()[3]

    assert heard.startswith("Always is asked, and wants a retry in 250 ms (")
    assert overruled.startswith("Always is asked, and wants a retry in 250 ms. But no strategy may send it again, ")


def test_an_async_strategy_is_left_to_the_driver() -> None:
    """Nobody awaits anything here, so the outcome is that the strategy has to be consulted."""
    explanation = explain(case_of(KvAnswer(0x86), strategy=Thoughtful()))

    assert (R.KV_TEMPORARY_FAILURE, Outcome.CONSULT, None, None) == fate(explanation)
    assert "So the strategy is awaited, and what it answers decides." == explanation.sentences()[-1]
    assert "Thoughtful" == explanation.strategy


def test_a_strategy_that_raises_fails_the_request() -> None:
    """The message names what was raised."""
    explanation = explain(case_of(KvAnswer(0x86), strategy=Broken()))

    assert (R.KV_TEMPORARY_FAILURE, FAIL, None, "RequestCanceledException") == fate(explanation)
    assert explanation.message is not None
    assert "the retry strategy failed with LookupError" in explanation.message


@pytest.mark.parametrize(
    ("strategy", "elapsed", "expected"),
    [
        (BestEffortRetryStrategy(), 2.0, (0.5, False, "UnambiguousTimeoutException")),
        (BestEffortRetryStrategy(), 1.9, (0.5, True, None)),
        (ErrorMapRetryStrategy(), 0.495, (0.005, False, "TemporaryFailureException")),
        (ErrorMapRetryStrategy(), 0.25, (0.2, True, None)),
        (ErrorMapRetryStrategy(), 0.5, (None, None, "TemporaryFailureException")),
    ],
)
def test_a_delay_that_is_cut_tells_how_it_ends(
    strategy: AnyRetryStrategy, elapsed: float, expected: tuple[object, ...]
) -> None:
    """The machine is asked what it does when the delay is over: the timeout, or the status's own error."""
    explanation = explain(case_of(KvAnswer(0x7FF0, RETRIED_BY_MAP), attempt=10, strategy=strategy, elapsed=elapsed))

    assert expected == (
        explanation.delay if explanation.delay is None else pytest.approx(explanation.delay),
        explanation.dispatches,
        explanation.error,
    )


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (case_of(KvAnswer(0x86), elapsed=2.4995), True),
        (case_of(KvAnswer(0x86)), True),
        (case_of(KvAnswer(0x86), elapsed=2.5), False),
        (case_of(KvAnswer(0x01), attempt=3), False),
        (case_of(KvAnswer(0x86), strategy=Thoughtful()), False),
    ],
)
def test_what_counts_as_a_retry(case: Case, expected: bool) -> None:
    """The client counts a delay that was cut as well, so that the error tells of a retry though nothing was sent again."""
    explanation = explain(case)

    assert expected is explanation.counts_as_retry
    if explanation.dispatches is False:
        assert "is not sent again" in explanation.sentences()[4]
        assert "This counts as a retry. Then it fails with" in explanation.sentences()[4]
        assert "[retried once: KV_TEMPORARY_FAILURE]" in explanation.sentences()[4]


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        (KvAnswer(0x86, RETRIED_BY_MAP), False),
        (KvAnswer(0x01, RETRIED_BY_MAP), False),
        (KvAnswer(0x00, OF_NO_USE), False),
        (KvAnswer(0x7FF0, RETRIED_BY_MAP), True),
        (KvAnswer(0x7FF0, OF_NO_USE), True),
        (KvAnswer(0x82, RETRIED_BY_MAP), True),
        (KvAnswer(0x86), None),
        (KvAnswer(0x7FF0), None),
        (SocketClosed(HandedOver.ALL), None),
    ],
)
def test_whether_the_error_map_has_a_say(happened: Happening, expected: bool | None) -> None:
    """It decides about unknown statuses only; of a known one it is said that nobody looks."""
    explanation = explain(case_of(happened))

    assert expected is explanation.error_map_has_a_say
    assert ("has no say" in explanation.sentences()[2]) is (expected is False)
    assert (ERROR_MAP_CLAUSE in explanation.clauses) is (expected is False)


@pytest.mark.parametrize(
    ("attempt", "since_first_failure", "expected"),
    [(0, None, RETRY), (1, None, FAIL), (1, 0.1, RETRY), (0, 2.0, FAIL)],
)
def test_when_the_first_failure_was(attempt: int, since_first_failure: float | None, expected: Outcome) -> None:
    """The schedule of an error map counts from the first failure: now, or the submission where retries were done."""
    case = Case(
        service=KV,
        operation="get",
        happened=KvAnswer(0x7FF0, RETRIED_BY_MAP),
        strategy=ErrorMapRetryStrategy(),
        attempt=attempt,
        elapsed=2.0,
        timeout=60.0,
        since_first_failure=since_first_failure,
    )

    assert expected is explain(case).outcome


def test_a_jittered_delay_is_told_at_its_longest() -> None:
    """Without randomness of the caller's, jitter takes nothing off."""
    strategy = BestEffortRetryStrategy(exponential(first=0.1, jitter=0.5))

    assert 0.1 == explain(case_of(KvAnswer(0x86), strategy=strategy)).delay


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        (KvAnswer(0x07), (RefreshTopology(),)),
        (KvAnswer(0x88), (RefreshCollection(),)),
        (KvAnswer(0x1F), (CloseConnection("the status invalidates the connection"),)),
        (KvAnswer(0x7FF0, RETRIED_BY_MAP), (RefreshTopology(),)),
        (KvAnswer(0x7FF0, OF_NO_USE), (CloseConnection("the error map says conn-state-invalidated of status 0x7ff0"),)),
        (KvAnswer(0x86), ()),
    ],
)
def test_orders(happened: Happening, expected: tuple[object, ...]) -> None:
    """What else the machine orders is told too."""
    assert expected == explain(case_of(happened)).orders


@rows(
    ("case", "happened", "clause"),
    [
        (case_of(KvAnswer(0x86)), "the node answered TEMPORARY_FAILURE [0x86]", "KV: Temporary Failure 0x86"),
        (
            case_of(KvAnswer(0x7FF0, OF_NO_USE)),
            "the node answered GONE [0x7ff0]",
            "the map misses any retry indication",
        ),
        (case_of(KvAnswer(0x7FF0)), "the node answered an unknown status [0x7ff0]", "no entry, so no retry indication"),
        (
            case_of(KvAnswer(0x7FF0, parse_entry({"attrs": []}))),
            "the node answered an unknown status [0x7ff0]",
            "the map misses any retry indication",
        ),
        (
            case_of(ErrorCode(4040), service=QUERY),
            "the service answered error 4040",
            "Query: Error code 4040",
        ),
        (
            case_of(ErrorCode(3000, "syntax"), service=QUERY),
            "the service answered error 3000, syntax",
            "not in the list",
        ),
        (
            case_of(ErrorCode(3000, "syntax", 503), service=QUERY),
            "the service answered error 3000 with HTTP status 503, syntax",
            "not in the list",
        ),
        (
            case_of(HttpAnswer(429), service=SEARCH),
            "the service answered HTTP status 429",
            "Search: Http status code 429",
        ),
        (
            case_of(SocketClosed(HandedOver.NOTHING)),
            "the socket closed when nothing of the request had been handed over to it",
            "RFC 0049 Client Dispatch",
        ),
        (
            case_of(SocketClosed(HandedOver.PART)),
            "the socket closed when part of the request had been handed over to it",
            "RFC 0049 Network Time",
        ),
        (
            case_of(DispatchFailed(R.NODE_NOT_AVAILABLE)),
            "it could not be dispatched, because the node could not be reached",
            "RFC 0049 Client Dispatch",
        ),
        (
            case_of(DispatchFailed(R.KV_TEMPORARY_FAILURE)),
            (
                "it could not be dispatched, because the id of its collection could not be had: "
                "the node is temporarily unable to do it"
            ),
            "RFC 0049 Client Dispatch",
        ),
    ],
)
def test_words_for_what_happened(case: Case, happened: str, clause: str) -> None:
    """Each happening has its words, and the clause that gives the reason or none."""
    explanation = explain(case)

    assert happened == explanation.happened
    assert clause in explanation.reason_clause


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        (ErrorCode(5), "query: the server answered error 5"),
        (ErrorCode(3000, "syntax"), "query: the server answered error 3000 (syntax)"),
        (ErrorCode(5, http_status=503), "query: the server answered error 5"),
        (HttpAnswer(400, "oh"), "query: the server answered HTTP status 400"),
    ],
)
def test_a_message_says_what_was_answered(happened: Happening, expected: str) -> None:
    """An error code by its number, and an HTTP status only where somebody said one."""
    assert expected == explain(case_of(happened, "query", service=QUERY)).message


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (R.KV_TEMPORARY_FAILURE, "TemporaryFailureException"),
        (R.KV_ERROR_MAP_RETRY_INDICATED, "CouchbaseException"),
        (R.SCOPE_NOT_FOUND, "RequestCanceledException"),
        (R.NODE_NOT_AVAILABLE, "RequestCanceledException"),
    ],
)
def test_a_lookup_that_failed_surfaces_its_own_error(reason: RetryReason, expected: str) -> None:
    """As in the client, where the answer to the question for a collection's id brings it."""
    assert expected == explain(case_of(DispatchFailed(reason), strategy=FailFastRetryStrategy())).error


def test_an_error_that_is_told_with_a_failed_dispatch_stays() -> None:
    """The caller knows better."""
    failed = DispatchFailed(R.KV_TEMPORARY_FAILURE, error=errors.RateLimitedException)

    assert "RateLimitedException" == explain(case_of(failed, strategy=FailFastRetryStrategy())).error


@rows(
    ("changes", "parameter"),
    [
        ({"service": "kv"}, "service"),
        ({"happened": 0x86}, "happened"),
        ({"attempt": -1}, "attempt"),
        ({"attempt": 1.0}, "attempt"),
        ({"attempt": True}, "attempt"),
        ({"elapsed": -0.1}, "elapsed"),
        ({"elapsed": math.inf}, "elapsed"),
        ({"elapsed": math.nan}, "elapsed"),
        ({"elapsed": "1"}, "elapsed"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": math.nan}, "timeout"),
        ({"elapsed": 1.0, "since_first_failure": 1.1}, "since_first_failure"),
        ({"happened": KvAnswer(-1)}, "status"),
        ({"happened": KvAnswer(0x10000)}, "status"),
        ({"service": SEARCH, "happened": HttpAnswer(-1)}, "http_status"),
        ({"service": QUERY, "happened": ErrorCode(-1)}, "code"),
        ({"service": QUERY, "happened": KvAnswer(0x86)}, "happened"),
        ({"happened": HttpAnswer(503)}, "happened"),
        ({"happened": ErrorCode(4040)}, "happened"),
        ({"service": VIEWS, "happened": ErrorCode(4040)}, "happened"),
        ({"service": QUERY, "happened": ErrorCode(4040, http_status=-1)}, "http_status"),
        ({"operation": None}, "operation"),
        ({"strategy": "best_effort"}, "strategy"),
        ({"happened": DispatchFailed(R.KV_LOCKED)}, "reason"),
        ({"happened": DispatchFailed("TLS_ERROR")}, "reason"),  # type: ignore[arg-type]
        ({"happened": SocketClosed(HandedOver.NOTHING, reason=R.NODE_NOT_AVAILABLE)}, "reason"),
        ({"service": QUERY, "happened": DispatchFailed(R.BUCKET_ACCESS_ERROR)}, "reason"),
    ],
)
def test_refuses_a_senseless_case(changes: dict[str, object], parameter: str) -> None:
    """A mistake of the caller's is told at once, with the parameter's name."""
    fields = {"service": KV, "operation": "get", "happened": KvAnswer(0x86)} | changes

    with pytest.raises(InvalidArgumentException) as caught:
        Case(**fields)  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


def test_a_reason_that_is_out_of_place() -> None:
    """The message says which ones are not."""
    with pytest.raises(InvalidArgumentException) as caught:
        case_of(DispatchFailed(R.SCOPE_NOT_FOUND), service=SEARCH)

    assert (
        "reason=SCOPE_NOT_FOUND is out of place; a dispatch to search fails for one of SOCKET_NOT_AVAILABLE, "
        "AUTHENTICATION_ERROR, TLS_ERROR, NODE_NOT_AVAILABLE, SERVICE_NOT_AVAILABLE, CIRCUIT_BREAKER_OPEN, UNKNOWN"
    ) == caught.value.message


def test_the_reason_of_a_socket_that_closed_in_flight_does_not_matter() -> None:
    """Something was handed over, so it is another one."""
    case = case_of(SocketClosed(HandedOver.PART, reason=R.KV_LOCKED))

    assert R.SOCKET_CLOSED_WHILE_IN_FLIGHT is explain(case).reason


def test_a_case_needs_little() -> None:
    """By default the default strategy decides, at the first failure, with endless time."""
    explanation = explain(Case(service=KV, operation="get", happened=KvAnswer(0x86)))

    assert "FastFailOnTerminalErrorRetryStrategy" == explanation.strategy
    assert (R.KV_TEMPORARY_FAILURE, RETRY, 0.001, None) == fate(explanation)


BORN_OF: dict[RetryReason, tuple[Service, Happening]] = {
    R.SOCKET_NOT_AVAILABLE: (KV, SocketClosed(HandedOver.NOTHING)),
    R.KV_NOT_MY_VBUCKET: (KV, KvAnswer(0x07)),
    R.KV_COLLECTION_OUTDATED: (KV, KvAnswer(0x88)),
    R.KV_ERROR_MAP_RETRY_INDICATED: (KV, KvAnswer(0x7FF0, RETRIED_BY_MAP)),
    R.KV_LOCKED: (KV, KvAnswer(0x09)),
    R.KV_TEMPORARY_FAILURE: (KV, KvAnswer(0x86)),
    R.KV_SYNC_WRITE_IN_PROGRESS: (KV, KvAnswer(0xA2)),
    R.KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS: (KV, KvAnswer(0xA4)),
    R.SOCKET_CLOSED_WHILE_IN_FLIGHT: (KV, SocketClosed(HandedOver.ALL)),
    R.QUERY_PREPARED_STATEMENT_FAILURE: (QUERY, ErrorCode(4040)),
    R.QUERY_INDEX_NOT_FOUND: (QUERY, ErrorCode(5000, "queryport.indexNotFound")),
    R.ANALYTICS_TEMPORARY_FAILURE: (ANALYTICS, ErrorCode(23000)),
    R.SEARCH_TOO_MANY_REQUESTS: (SEARCH, HttpAnswer(429)),
    R.VIEWS_TEMPORARY_FAILURE: (VIEWS, HttpAnswer(300)),
    R.VIEWS_NO_ACTIVE_PARTITION: (VIEWS, HttpAnswer(302)),
}


def grid() -> Iterable[tuple[str, bool, int, float]]:
    """Return strategies, idempotency, attempts and elapsed times, with those around the limits."""
    return (
        (strategy, idempotent, attempt, elapsed)
        for strategy in STRATEGIES
        for idempotent in (False, True)
        for attempt in (0, 1, 5, 20)
        for elapsed in (0.0, 0.499, 0.5, 2.4, 2.499, 2.5, 3.0)
    )


# Decision C36: one reason is never given.
@rows("reason", [reason for reason in RetryReason if reason is not R.SERVICE_RESPONSE_CODE_INDICATED])
def test_explain_and_the_batch_agree(reason: RetryReason) -> None:
    """The machine that is fed an event, and the question that names its reason, have one answer."""
    service, happened = BORN_OF.get(reason, (KV, DispatchFailed(reason)))
    entry = {"attrs": ["auto-retry", "temp"], "retry": SCHEDULE}

    for strategy, idempotent, attempt, elapsed in grid():
        case = Case(
            service=service,
            operation="any",
            happened=happened,
            idempotent=idempotent,
            strategy=STRATEGIES[strategy],
            attempt=attempt,
            elapsed=elapsed,
            timeout=2.5,
            since_first_failure=elapsed,
        )
        question = {
            "family": "couchbase",
            "ask": "decide",
            "strategy": strategy,
            "reason": str(reason),
            "idempotent": idempotent,
            "attempt": attempt,
            "elapsed_ms": elapsed * 1000,
            "timeout_ms": 2500,
            "error_map_entry": entry if reason is R.KV_ERROR_MAP_RETRY_INDICATED else None,
        }
        batch = answer(question)
        explanation = explain(case)

        assert reason is explanation.reason
        assert batch == {key: explanation.to_json()[key] for key in batch}


def test_every_error_is_one_of_ours() -> None:
    """A name that is told can be looked up."""
    for status in range(0x100):
        for strategy in STRATEGIES.values():
            error = explain(case_of(KvAnswer(status), strategy=strategy)).error

            assert error is None or issubclass(getattr(errors, error), CouchbaseException)
