"""Explanations of one case, as the client's own retry machine produces them."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest

from tests.core.retry.couchbase.request_cases import Awaits, Raises, Says
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain
from triclinium_core.explain.couchbase.happenings import HAPPENINGS, ErrorCode, Happening, HttpAnswer, KvAnswer
from triclinium_core.explain.explanation import Explanation, Outcome
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.couchbase import DispatchFailed
from triclinium_core.retry.couchbase.deciders import CAPPING_CLAUSE, DECISION_CLAUSES, ERROR_MAP_CLAUSE, DecidedBy
from triclinium_core.tools.vectors.couchbase import STRATEGIES
from triclinium_core.tools.vectors.questions import answer

R = couchbase.RetryReason
KV, QUERY, ANALYTICS, SEARCH, VIEWS, MANAGEMENT = couchbase.Service

SCHEDULE = {"strategy": "linear", "interval": 20, "after": 10, "max-duration": 500}
RETRIED_BY_MAP = couchbase.parse_entry(
    {
        "name": "SLOW",
        "attrs": ["auto-retry", "temp", "fetch-config"],
        "retry": SCHEDULE,
    }
)
OF_NO_USE = couchbase.parse_entry({"name": "GONE", "desc": "gone for good", "attrs": ["conn-state-invalidated"]})


PERMITS = Says(couchbase.RetryAction.after(0.25))
RAISES = Raises(LookupError())


def case_of(
    happened: Happening,
    operation: str = "upsert",
    *,
    service: couchbase.Service = KV,
    strategy: couchbase.AnyRetryStrategy | None = None,
    timeout: float = 2.5,
    **more: Any,
) -> CouchbaseCase:
    """Return a case, by default of an upsert under best effort."""
    return CouchbaseCase(
        service=service,
        operation=operation,
        happened=happened,
        strategy=strategy if strategy is not None else couchbase.BestEffortRetryStrategy(),
        timeout=timeout,
        **more,
    )


def fate(explanation: Explanation) -> tuple[object, ...]:
    """Return the reason, action, delay and error of the explanation."""
    facts = explanation.facts
    assert (facts["action"],) == explanation.outcomes
    return facts["reason"], facts["action"], facts["delay_ms"], facts["error"]


RETRY, FAIL, COMPLETE, CONSULT = Outcome.RETRY, Outcome.FAIL, Outcome.COMPLETE, Outcome.CONSULT


@rows(
    ("case", "expected"),
    [
        (case_of(KvAnswer(0x00), "get"), (None, COMPLETE, None, None)),
        (case_of(KvAnswer(0x01), "get"), (None, FAIL, None, "DocumentNotFoundException")),
        (case_of(KvAnswer(0x09), "unlock"), (None, FAIL, None, "CasMismatchException")),
        (case_of(KvAnswer(0x7FF0)), (None, FAIL, None, "CouchbaseException")),
        (case_of(KvAnswer(0x86), strategy=Awaits()), (R.KV_TEMPORARY_FAILURE, CONSULT, None, None)),
        (case_of(KvAnswer(0x86), strategy=RAISES), (R.KV_TEMPORARY_FAILURE, FAIL, None, "RequestCanceledException")),
        (
            case_of(couchbase.SocketClosed(couchbase.HandedOver.PART, reason=R.KV_LOCKED)),
            (R.SOCKET_CLOSED_WHILE_IN_FLIGHT, FAIL, None, "RequestCanceledException"),
        ),
        (case_of(HttpAnswer(200, b"{}"), service=QUERY), (None, COMPLETE, None, None)),
        (
            case_of(HttpAnswer(200, '{"errors":[{"code":4050}]}'), service=QUERY),
            (R.QUERY_PREPARED_STATEMENT_FAILURE, RETRY, 1, None),
        ),
        (case_of(ErrorCode(5000, "disk full"), service=QUERY), (None, FAIL, None, "InternalServerFailureException")),
        (case_of(ErrorCode(1), service=QUERY), (None, FAIL, None, "CouchbaseException")),
        (case_of(HttpAnswer(503), service=MANAGEMENT), (None, FAIL, None, "TemporaryFailureException")),
        (case_of(HttpAnswer(404), "get_user", service=MANAGEMENT), (None, FAIL, None, "UserNotFoundException")),
    ],
)
def test_outcomes_without_a_reason_in_the_batch(case: CouchbaseCase, expected: tuple[object, ...]) -> None:
    """Final responses, failing or asynchronous strategies and service bodies each give the expected outcome."""
    assert expected == fate(explain(case))


@rows(
    ("happened", "operation", "service", "clause"),
    [
        (ErrorCode(3000, "syntax"), "query", QUERY, "RFC 0058, 8 ParsingFailure"),
        (HttpAnswer(404, "Unknown user."), "get_user", MANAGEMENT, "RFC 0054 GetUser"),
        (HttpAnswer(429), "query", SEARCH, "RFC 6585"),
        (HttpAnswer(200, "<html>"), "query", QUERY, "RFC 0058, 20"),
    ],
)
def test_service_response_names_its_clause(
    happened: Happening, operation: str, service: couchbase.Service, clause: str
) -> None:
    """The clauses list the clause that classifies a service's response once, and a sentence names it."""
    explanation = explain(case_of(happened, operation, service=service))

    assert 1 == sum(found.startswith(clause) for found in explanation.clauses)
    assert any(clause in sentence.text for sentence in explanation.steps)


def test_success_names_no_error_clause() -> None:
    """The clauses of a successful response and of a closed socket have no clause of RFC 0058."""
    for happened in (HttpAnswer(200, "{}"), couchbase.SocketClosed(couchbase.HandedOver.ALL)):
        assert not any("0058" in clause for clause in explain(case_of(happened, "query", service=QUERY)).clauses)


@pytest.mark.parametrize(
    ("case", "expected", "clause"),
    [
        (case_of(KvAnswer(0), "get"), True, "List: KV: Get Request"),
        (case_of(KvAnswer(0), "upsert"), False, "not listed"),
        (case_of(KvAnswer(0), "upsert", idempotent=True), True, "by the caller"),
        (case_of(KvAnswer(0), "get", idempotent=False), False, "by the caller"),
        (case_of(ErrorCode(1), "query", service=QUERY), False, "does not apply"),
        (
            case_of(ErrorCode(1), "query", service=QUERY, readonly=True),
            True,
            'the "readonly" property is set to "true"',
        ),
        (case_of(HttpAnswer(503), "http", service=MANAGEMENT, method="GET"), True, 'every "GET" call'),
    ],
)
def test_idempotency(case: CouchbaseCase, expected: bool, clause: str) -> None:
    """The caller's setting determines idempotency, otherwise the RFC's list does; the first clause names the source."""
    explanation = explain(case)

    assert expected is explanation.facts["idempotent"]
    assert clause in explanation.clauses[0]


@rows(
    ("case", "expected", "was_asked"),
    [
        (case_of(KvAnswer(0x01)), DecidedBy.RESPONSE, False),
        (case_of(KvAnswer(0x86), elapsed=2.5), DecidedBy.DEADLINE, False),
        (case_of(KvAnswer(0x07), elapsed=2.5), DecidedBy.DEADLINE, False),
        (case_of(KvAnswer(0x07), strategy=Awaits()), DecidedBy.CONTROLLED_BACKOFF, False),
        (case_of(KvAnswer(0x86)), DecidedBy.STRATEGY, True),
        (case_of(KvAnswer(0x86), strategy=couchbase.FailFastRetryStrategy()), DecidedBy.STRATEGY, True),
        (case_of(KvAnswer(0x86), strategy=Awaits()), DecidedBy.STRATEGY, False),
        (case_of(KvAnswer(0x86), strategy=RAISES), DecidedBy.STRATEGY, True),
        (case_of(KvAnswer(0x86), strategy=Says(None)), DecidedBy.STRATEGY, True),
        (case_of(couchbase.SocketClosed(couchbase.HandedOver.ALL), strategy=PERMITS), DecidedBy.ORCHESTRATOR, True),
        (case_of(couchbase.SocketClosed(couchbase.HandedOver.ALL), "get", strategy=PERMITS), DecidedBy.STRATEGY, True),
    ],
)
def test_decided_by(case: CouchbaseCase, expected: DecidedBy, was_asked: bool) -> None:
    """The facts name the component that decided, and the strategy's action if the strategy was called."""
    facts = explain(case).facts

    assert (expected, was_asked) == (facts["decided_by"], facts["strategy_answer"] is not None)


def test_forbidding_flag_overrides_always_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a reason forbids the retry, the retry is refused even if the reason is always retried."""
    monkeypatch.setattr(R.SOCKET_CLOSED_WHILE_IN_FLIGHT, "always_retry", True)

    facts = explain(case_of(couchbase.SocketClosed(couchbase.HandedOver.ALL))).facts

    assert (DecidedBy.ORCHESTRATOR, "RequestCanceledException") == (facts["decided_by"], facts["error"])


@pytest.mark.parametrize(
    ("strategy", "elapsed", "expected"),
    [
        (couchbase.BestEffortRetryStrategy(), 2.0, (500, False, "UnambiguousTimeoutException")),
        (couchbase.BestEffortRetryStrategy(), 1.9, (500, True, None)),
        (couchbase.ErrorMapRetryStrategy(), 0.495, (5, False, "TemporaryFailureException")),
        (couchbase.ErrorMapRetryStrategy(), 0.25, (200, True, None)),
        (couchbase.ErrorMapRetryStrategy(), 0.5, (None, None, "TemporaryFailureException")),
    ],
)
def test_capped_delay_reports_how_it_ends(
    strategy: couchbase.AnyRetryStrategy, elapsed: float, expected: tuple[object, ...]
) -> None:
    """If the delay is cut to the deadline, the facts name the timeout error; if to the schedule, the status's error."""
    explanation = explain(case_of(KvAnswer(0x7FF0, RETRIED_BY_MAP), attempt=10, strategy=strategy, elapsed=elapsed))
    facts = explanation.facts

    assert expected == (facts["delay_ms"], facts["dispatches"], facts["error"])
    assert (CAPPING_CLAUSE in explanation.clauses) is (facts["dispatches"] is False)


@rows(
    ("happened", "expected"),
    [
        (KvAnswer(0x86, RETRIED_BY_MAP), False),
        (KvAnswer(0x01, RETRIED_BY_MAP), False),
        (KvAnswer(0x00, OF_NO_USE), False),
        (KvAnswer(0x7FF0, RETRIED_BY_MAP), True),
        (KvAnswer(0x7FF0, OF_NO_USE), True),
        (KvAnswer(0x82, RETRIED_BY_MAP), True),
        (KvAnswer(0x7FF0), None),
        (couchbase.SocketClosed(couchbase.HandedOver.ALL), None),
    ],
)
def test_error_map_decides_only_unknown_statuses(happened: Happening, expected: bool | None) -> None:
    """The error map decides only about unknown statuses; for a known status, a clause states that the map is ignored."""
    explanation = explain(case_of(happened))

    assert expected is explanation.facts["error_map_has_a_say"]
    assert (ERROR_MAP_CLAUSE in explanation.clauses) is (expected is False)


@pytest.mark.parametrize(
    ("attempt", "since_first_failure", "expected"), [(0, None, RETRY), (1, None, FAIL), (1, 0.1, RETRY), (0, 2.0, FAIL)]
)
def test_time_of_the_first_failure(attempt: int, since_first_failure: float | None, expected: Outcome) -> None:
    """The schedule starts at the given first failure; without it, at the submission if there were retries."""
    case = case_of(
        KvAnswer(0x7FF0, RETRIED_BY_MAP),
        strategy=couchbase.ErrorMapRetryStrategy(),
        attempt=attempt,
        elapsed=2.0,
        timeout=60.0,
        since_first_failure=since_first_failure,
    )

    assert (expected,) == explain(case).outcomes


def test_jittered_delay_is_reported_at_its_longest() -> None:
    """If the caller passes no random numbers, jitter does not shorten the delay."""
    strategy = couchbase.BestEffortRetryStrategy(exponential(first=0.1, jitter=0.5))

    assert 100 == explain(case_of(KvAnswer(0x86), strategy=strategy)).facts["delay_ms"]


@rows(
    ("happened", "expected"),
    [
        (KvAnswer(0x07), ["cluster map"]),
        (KvAnswer(0x88), ["collection id"]),
        (KvAnswer(0x1F), ["close the connection: the status invalidates the connection"]),
        (KvAnswer(0x7FF0, RETRIED_BY_MAP), ["cluster map"]),
        (
            KvAnswer(0x7FF0, OF_NO_USE),
            ["close the connection: the error map lists conn-state-invalidated for status 0x7ff0"],
        ),
        (KvAnswer(0x86), []),
    ],
)
def test_orders(happened: Happening, expected: list[str]) -> None:
    """The facts list the further orders of the machine, and a sentence states each order."""
    explanation = explain(case_of(happened))

    orders = cast(list[str], explanation.facts["orders"])
    assert [True] * len(expected) == [part in order for part, order in zip(expected, orders, strict=True)]
    assert [True] * len(orders) == [
        sentence.endswith(f" {order}.") for sentence, order in zip(explanation.sentences()[5:], orders, strict=True)
    ]


@rows(
    ("case", "facts", "clause"),
    [
        (case_of(KvAnswer(0x86)), ["TEMPORARY_FAILURE", "0x86"], "KV: Temporary Failure 0x86"),
        (case_of(KvAnswer(0x7FF0, OF_NO_USE)), ["GONE", "0x7ff0"], "misses any retry indication"),
        (case_of(KvAnswer(0x7FF0)), ["unknown", "0x7ff0"], "no entry"),
        (
            case_of(KvAnswer(0x7FF0, couchbase.parse_entry({"attrs": []}))),
            ["unknown", "0x7ff0"],
            "misses any retry indication",
        ),
        (case_of(ErrorCode(4040), service=QUERY), ["error 4040"], "Query: Error code 4040"),
        (case_of(ErrorCode(3000, "syntax", 503), service=QUERY), ["3000", "503", "syntax"], "not in the list"),
        (case_of(HttpAnswer(429), service=SEARCH), ["HTTP status 429"], "Search: Http status code 429"),
        (case_of(couchbase.SocketClosed(couchbase.HandedOver.NOTHING)), ["closed", "none"], "RFC 0049 Client Dispatch"),
        (case_of(couchbase.SocketClosed(couchbase.HandedOver.PART)), ["closed", "part"], "RFC 0049 Network Time"),
        (case_of(DispatchFailed(R.NODE_NOT_AVAILABLE)), [R.NODE_NOT_AVAILABLE.meaning], "RFC 0049 Client Dispatch"),
        (
            case_of(DispatchFailed(R.KV_TEMPORARY_FAILURE)),
            ["collection", R.KV_TEMPORARY_FAILURE.meaning],
            "RFC 0049 Client Dispatch",
        ),
    ],
)
def test_happening_and_its_clause(case: CouchbaseCase, facts: list[str], clause: str) -> None:
    """The facts have the event with its numbers, and the second clause is about its reason or the lack of a reason."""
    explanation = explain(case)

    assert [] == [fact for fact in facts if fact not in str(explanation.facts["happened"])]
    assert clause in explanation.clauses[1]


SAID = [
    case_of(KvAnswer(0x09), "get"),
    case_of(KvAnswer(0x09, RETRIED_BY_MAP), "get"),
    case_of(KvAnswer(0x07), elapsed=2.4995),
    case_of(KvAnswer(0x86), elapsed=2.5),
    case_of(couchbase.SocketClosed(couchbase.HandedOver.ALL), strategy=PERMITS),
    case_of(couchbase.SocketClosed(couchbase.HandedOver.ALL), strategy=couchbase.FailFastRetryStrategy()),
    case_of(KvAnswer(0x00, OF_NO_USE), "get"),
    case_of(KvAnswer(0x86), strategy=Awaits()),
]


@rows("case", SAID)
def test_sentences_contain_all_facts(case: CouchbaseCase) -> None:
    """The sentences contain all facts that apply, and all clauses."""
    explanation = explain(case)
    facts, sentences = explanation.facts, explanation.sentences()
    known = [facts[key] for key in ("service", "operation", "happened", "reason", "meaning", "error", "message")]
    if facts["strategy_answer"] is not None:
        known += [facts["strategy"], facts["strategy_answer"]]
    if facts["delay_ms"] is not None:
        known.append(f"{facts['delay_ms']} ms")

    assert [] == [
        fact for fact in (*known, *explanation.clauses) if fact is not None and str(fact) not in " ".join(sentences)
    ]
    assert facts["idempotent"] is ("not idempotent" not in sentences[1])
    assert bool(facts["dispatches"]) is ("sent again in" in sentences[4])
    assert facts["counts_as_retry"] is bool(facts["dispatches"])
    assert DECISION_CLAUSES[DecidedBy(str(facts["decided_by"]))] in sentences[3]


def test_as_json() -> None:
    """If a field does not apply, its value is null, so the JSON always has the same keys."""
    retried, completed = explain(SAID[1]).to_json(), explain(SAID[6]).to_json()

    assert {
        "service": "kv",
        "operation": "get",
        "happened": "the node responded with LOCKED [0x09]",
        "idempotent": True,
        "reason": "KV_LOCKED",
        "meaning": "the document is locked",
        "allows_non_idempotent_retry": True,
        "always_retry": False,
        "error_map_has_a_say": False,
        "strategy": "BestEffortRetryStrategy",
        "strategy_answer": "requests a retry in 1 ms",
        "token": None,
        "decided_by": "strategy",
        "action": "retry",
        "delay_ms": 1,
        "dispatches": True,
        "counts_as_retry": True,
        "error": None,
        "message": None,
        "orders": [],
        "clauses": list(explain(SAID[1]).clauses),
    } == retried
    assert retried.keys() == completed.keys()
    assert {
        *("reason", "meaning", "allows_non_idempotent_retry", "always_retry"),
        *("strategy_answer", "token", "delay_ms", "dispatches", "error", "message"),
    } == {key for key, value in completed.items() if value is None}


@rows(
    ("happened", "facts"),
    [
        (ErrorCode(3000, "syntax"), ["error 3000", "syntax"]),
        (ErrorCode(3000, http_status=503), ["error 3000"]),
        (HttpAnswer(400, "oh"), ["HTTP status 400"]),
    ],
)
def test_message_quotes_the_response(happened: Happening, facts: list[str]) -> None:
    """The message has the number of an error code, and has the HTTP status only for an HTTP response."""
    message = str(explain(case_of(happened, "query", service=QUERY)).facts["message"])

    assert [] == [fact for fact in facts if fact not in message]
    assert isinstance(happened, HttpAnswer) is ("HTTP" in message)


@rows(
    ("failed", "expected"),
    [
        (DispatchFailed(R.KV_TEMPORARY_FAILURE), "TemporaryFailureException"),
        (DispatchFailed(R.KV_ERROR_MAP_RETRY_INDICATED), "CouchbaseException"),
        (DispatchFailed(R.SCOPE_NOT_FOUND), "RequestCanceledException"),
        (DispatchFailed(R.NODE_NOT_AVAILABLE), "RequestCanceledException"),
        (DispatchFailed(R.KV_TEMPORARY_FAILURE, error=errors.RateLimitedException), "RateLimitedException"),
    ],
)
def test_failed_lookup_raises_its_own_error(failed: DispatchFailed, expected: str) -> None:
    """A failed dispatch raises the error of the case or of the reason's status, else RequestCanceledException."""
    assert expected == explain(case_of(failed, strategy=couchbase.FailFastRetryStrategy())).facts["error"]


@rows(
    ("changes", "parameter"),
    [
        ({"service": "kv"}, "service"),
        ({"happened": 0x86}, "happened"),
        ({"attempt": -1}, "attempt"),
        ({"elapsed": math.inf}, "elapsed"),
        ({"timeout": -1}, "timeout"),
        ({"elapsed": 1.0, "since_first_failure": 1.1}, "since_first_failure"),
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
        ({"happened": couchbase.SocketClosed(couchbase.HandedOver.NOTHING, reason=R.NODE_NOT_AVAILABLE)}, "reason"),
        ({"service": QUERY, "happened": DispatchFailed(R.BUCKET_ACCESS_ERROR)}, "reason"),
    ],
)
def test_invalid_case_is_refused(changes: dict[str, object], parameter: str) -> None:
    """An invalid case raises InvalidArgumentException with the parameter's name."""
    fields = {"service": KV, "operation": "get", "happened": KvAnswer(0x86)} | changes

    with refusal_of(parameter, kind=errors.InvalidArgumentException):
        CouchbaseCase(**fields)  # type: ignore[arg-type]


def test_defaults_of_a_case() -> None:
    """A case has by default the client's default strategy, no earlier failure and no deadline."""
    explanation = explain(CouchbaseCase(service=KV, operation="get", happened=KvAnswer(0x86)))

    assert "FastFailOnTerminalErrorRetryStrategy" == explanation.facts["strategy"]
    assert (R.KV_TEMPORARY_FAILURE, RETRY, 1, None) == fate(explanation)


# Decision C36: no request of a cluster has the reason SERVICE_RESPONSE_CODE_INDICATED.
@rows("reason", [reason for reason in couchbase.RetryReason if reason is not R.SERVICE_RESPONSE_CODE_INDICATED])
@rows("strategy", STRATEGIES)
@rows("idempotent", [False, True])
@rows(("attempt", "elapsed"), [(0, 0.0), (20, 0.499), (5, 0.5), (1, 2.499), (1, 2.5)])
def test_explain_and_the_batch_agree(
    reason: couchbase.RetryReason, strategy: str, idempotent: bool, attempt: int, elapsed: float
) -> None:
    """For one reason, the explanation and the batch command return equal facts on both sides of the time limits."""
    service, happened = HAPPENINGS[reason]
    if reason is R.KV_ERROR_MAP_RETRY_INDICATED:
        happened = KvAnswer(0x7FF0, RETRIED_BY_MAP)
    explanation = explain(
        case_of(
            happened,
            service=service,
            idempotent=idempotent,
            strategy=STRATEGIES[strategy],
            attempt=attempt,
            elapsed=elapsed,
            since_first_failure=elapsed,
        )
    )
    batch = answer(
        {
            "family": "couchbase",
            "ask": "decide",
            "strategy": strategy,
            "reason": str(reason),
            "idempotent": idempotent,
            "attempt": attempt,
            "elapsed_ms": elapsed * 1000,
            "timeout_ms": 2500,
            "error_map_entry": (
                {"attrs": ["auto-retry", "temp"], "retry": SCHEDULE}
                if reason is R.KV_ERROR_MAP_RETRY_INDICATED
                else None
            ),
        }
    )

    assert reason == explanation.facts["reason"]
    assert batch == {key: explanation.facts[key] for key in batch}
