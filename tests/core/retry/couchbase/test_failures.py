"""Exceptions that end a request: their class, their text, and their context."""

from __future__ import annotations

from dataclasses import replace

from tests.core.retry.couchbase.request_cases import Refusal
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.couchbase import RetryReason, Service, failures, refused, subject
from triclinium_core.retry.couchbase.tables.service_errors import SERVICE_ERRORS

R = RetryReason

UPSERT = ErrorContext(operation="upsert", key="airline_10", timeout=2.5)
RETRIED = replace(
    UPSERT, retry_attempts=3, retry_reasons=frozenset({"SECOND", "FIRST"}), last_dispatch_error="10.0.0.1:11210: reset"
)


STORY = ["upsert 'airline_10': ", "[retried 3 times: FIRST, SECOND; ", "10.0.0.1:11210: reset]"]
"""Beginning and end of every message for ``RETRIED``."""


def missing(facts: list[str], message: object) -> list[str]:
    """Return the facts that do not occur in the message."""
    return [fact for fact in facts if fact not in str(message)]


@rows(
    ("context", "expected"),
    [
        (UPSERT, "upsert 'airline_10'"),
        (ErrorContext(operation="get_cluster_config"), "get_cluster_config"),
        (ErrorContext(operation="get", key=""), "get ''"),
        (ErrorContext(operation="get", key="it's\n\x00"), 'get "it\'s\\n\\x00"'),
    ],
)
def test_subject(context: ErrorContext, expected: str) -> None:
    """Every message starts with the operation and any key; the key is quoted, so that it stays on one line."""
    assert expected == subject(context)


def test_reasons_with_a_next_step_have_hints() -> None:
    """Every reason and every final response about which the user can do something has a hint."""
    assert {
        *(R.AUTHENTICATION_ERROR, R.TLS_ERROR, R.BUCKET_ACCESS_ERROR, R.SCOPE_NOT_FOUND, R.COLLECTION_NOT_FOUND),
        *(R.KV_LOCKED, R.SOCKET_CLOSED_WHILE_IN_FLIGHT, R.NODE_NOT_AVAILABLE, R.SERVICE_NOT_AVAILABLE),
    } == set(failures.HINTS)
    assert {
        *(errors.DecodingFailureException, errors.DurabilityAmbiguousException),
        *(errors.DurabilityImpossibleException, errors.DurabilityLevelNotAvailableException),
    } == set(failures.HINTS_OF_ANSWERS)


@rows(
    ("ambiguous", "last_reason", "facts"),
    [
        (True, None, ["2.5 s", "may have been applied", "read the document"]),
        (True, R.KV_LOCKED, ["2.5 s", "may have been applied", "read the document"]),
        (False, None, ["2.5 s", "certainly not applied"]),
        *(
            (False, reason, ["certainly not applied", reason.meaning, failures.HINTS.get(reason, "")])
            for reason in RetryReason
        ),
    ],
)
def test_timeout(ambiguous: bool, last_reason: RetryReason | None, facts: list[str]) -> None:
    """The message of a timeout has its ambiguity and a next step; if it is unambiguous, also the last reason."""
    error = failures.timeout(RETRIED, ambiguous=ambiguous, last_reason=last_reason)

    assert (errors.AmbiguousTimeoutException if ambiguous else errors.UnambiguousTimeoutException) is type(error)
    assert RETRIED is error.context
    assert [] == missing([*STORY, *facts], error)
    assert not (ambiguous and last_reason) or last_reason.meaning not in str(error)


@rows(("seconds", "words"), [(0.001, "0.001 s"), (75.0, "75 s"), (None, "its deadline")])
def test_the_timeout_is_named(seconds: float | None, words: str) -> None:
    """The message has the timeout in seconds, or "its deadline" if the timeout is unknown."""
    assert words in str(failures.timeout(replace(RETRIED, timeout=seconds), ambiguous=False, last_reason=None))


@rows("reason", RetryReason)
def test_refused(reason: RetryReason) -> None:
    """The message has the reason and the next step, and the context has the reason."""
    error = refused(None, reason, RETRIED)

    assert errors.RequestCanceledException is type(error)
    assert [] == missing([*STORY, reason.meaning, str(reason), failures.HINTS.get(reason, "")], error)
    assert (reason.name, None, None) == (error.context.refused_reason, RETRIED.refused_reason, error.__cause__)
    assert Refusal is type(refused(Refusal, reason, RETRIED))


def test_refused_because_the_strategy_raised() -> None:
    """If the strategy raises, the message states the reason, and the raised exception is the cause (decision C28)."""
    cause = ZeroDivisionError("mine")
    error = refused(None, R.KV_LOCKED, RETRIED, cause)

    assert (errors.RequestCanceledException, cause) == (type(error), error.__cause__)
    assert "KV_LOCKED" == error.context.refused_reason
    assert [] == missing([*STORY, "strategy", "ZeroDivisionError", "KV_LOCKED"], error)


@rows(
    ("context", "ending"),
    [
        (ErrorContext(operation="get"), ""),
        (ErrorContext(operation="get", retry_attempts=1), "[retried once]"),
        (
            ErrorContext(
                operation="get",
                retry_attempts=1,
                retry_reasons=frozenset({"KV_LOCKED", "UNKNOWN"}),
                refused_reason="UNKNOWN",
            ),
            "[retried once: KV_LOCKED]",
        ),
        (ErrorContext(operation="get", retry_attempts=2), "[retried 2 times]"),
        (ErrorContext(operation="get", last_dispatch_error="reset"), "[last dispatch error: reset]"),
    ],
)
def test_unknown_facts_are_left_out(context: ErrorContext, ending: str) -> None:
    """If the context lacks a fact, the message leaves it out."""
    words = str(refused(None, R.UNKNOWN, context))

    assert words.endswith(ending)
    assert bool(ending) is ("[" in words)


KV_ANSWER = ErrorContext(operation="get", key="airline_10", status=0x01, status_name="KEY_NOT_FOUND")


@rows(
    ("context", "facts"),
    [
        (KV_ANSWER, ["get 'airline_10'", "KEY_NOT_FOUND", "0x01"]),
        (
            ErrorContext(operation="get", status=0x7FF0, status_name="NEWS", status_text="Something new."),
            ["NEWS", "0x7ff0", "Something new."],
        ),
        (
            ErrorContext(operation="get", status=0x86, status_text="Wait.", server_context="no memory"),
            ["unknown", "0x86", "Wait.", "no memory"],
        ),
    ],
)
def test_surfaced(context: ErrorContext, facts: list[str]) -> None:
    """The message of a final response has the status's name and number, and the texts of error map and server."""
    error = failures.surfaced(errors.DocumentNotFoundException, context)

    assert (errors.DocumentNotFoundException, context) == (type(error), error.context)
    assert [] == missing(facts, error)


QUERY = ErrorContext(
    service="query",
    operation="query",
    idempotent=False,
    statement="SELECT secret",
    parameters=("$1",),
    last_dispatched_to="10.0.0.1:8093",
    http_status=400,
    error_code=3000,
    error_message="syntax error near 'x'",
    timeout=75.0,
)


@rows(
    ("context", "facts"),
    [
        (QUERY, ["query: ", "10.0.0.1:8093", "error 3000", "syntax error near 'x'"]),
        (replace(QUERY, more_error_codes=(4040, 5000)), ["error 3000", "4040, 5000"]),
        (replace(QUERY, error_code=None), ["HTTP status 400", "syntax error"]),
        (replace(QUERY, error_code=None, error_message=None, body_start="<html>x"), ["HTTP status 400", "<html>x"]),
        (replace(QUERY, last_dispatched_to=None), ["error 3000"]),
        (replace(QUERY, service="search", operation="search", index="landmarks"), ["search 'landmarks': "]),
        (replace(QUERY, service="views", operation="view_query", design_document="dd", view="v"), ["'dd/v': "]),
    ],
)
def test_the_message_of_a_service_error(context: ErrorContext, facts: list[str]) -> None:
    """The message has the operation, endpoint, code and text, but not the statement."""
    reason = R.QUERY_PREPARED_STATEMENT_FAILURE
    for error in (
        failures.surfaced(errors.ParsingFailureException, context),
        refused(errors.ParsingFailureException, reason, context),
        failures.timeout(context, ambiguous=False, last_reason=reason),
    ):
        assert [] == missing(facts, error)
        assert "secret" not in str(error)


def test_the_server_permits_a_retry() -> None:
    """The message mentions another attempt only if the server permits it."""
    error = failures.surfaced(errors.DmlFailureException, replace(QUERY, server_permits_retry=True))

    assert [] == missing(["permits another attempt", failures.HINTS_OF_SERVICES[errors.DmlFailureException]], error)
    assert "permits another attempt" not in str(failures.surfaced(errors.DmlFailureException, QUERY))


@rows("service", SERVICE_ERRORS)
def test_every_service_error_has_a_hint(service: Service) -> None:
    """Every exception of the service tables has a hint, including the two kinds of timeouts."""
    raised = {
        type(failures.surfaced(row.error, replace(QUERY, idempotent=idempotent)))
        for row in SERVICE_ERRORS[service]
        for idempotent in (True, False)
    }

    assert set() == raised - failures.HINTS_OF_SERVICES.keys()


@rows(
    ("status", "body", "text", "step"),
    [
        (302, None, None, failures.NOT_FOLLOWED),
        (302, "<html>moved", None, failures.NOT_FOLLOWED),
        (404, "<html>", None, failures.FOREIGN_SERVER),
        (502, None, None, failures.FOREIGN_SERVER),
        (504, None, "gateway", failures.FOREIGN_SERVER),
        (404, None, "nope", None),
        (410, None, None, None),
    ],
)
def test_hints_for_responses_without_a_row(status: int, body: str | None, text: str | None, step: str | None) -> None:
    """Only a redirect's message states that it was not followed, and only a foreign response's names another server."""
    context = replace(QUERY, error_code=None, http_status=status, body_start=body, error_message=text)
    said = str(failures.surfaced(errors.CouchbaseException, context))

    assert [each for each in (failures.NOT_FOLLOWED, failures.FOREIGN_SERVER) if each in said] == (
        [] if step is None else [step]
    )


def test_a_statement_that_ended_early_without_an_error() -> None:
    """If a statement ended early without an error, the hint is about the missing reason, and not about a foreign
    server.
    """
    context = replace(QUERY, error_code=None, http_status=200, error_message='{"status":"fatal"}')
    said = str(failures.surfaced(errors.DecodingFailureException, context))

    assert [] == missing([failures.NO_REASON_GIVEN], said)
    assert failures.FOREIGN_SERVER not in said


ANSWERED = [
    (ErrorContext(service="search", http_status=429, error_message="too many requests"), ["429", "too many requests"]),
    (ErrorContext(service="query", http_status=200, error_code=4040, error_message="stale"), ["error 4040", "stale"]),
    (ErrorContext(service="views", http_status=503, body_start="<html>"), ["503", "<html>"]),
    (ErrorContext(status=0x86, status_name="TEMPORARY_FAILURE", status_text="busy"), ["[0x86]", "busy"]),
    (ErrorContext(status=0x86, server_context="out of memory"), ["[0x86]", "out of memory"]),
]
"""Contexts of requests that got a response, each with the facts of the newest response."""


@rows("ambiguous", [False, True])
@rows(("context", "facts"), ANSWERED)
def test_a_timeout_has_the_newest_response(context: ErrorContext, facts: list[str], ambiguous: bool) -> None:
    """Even with an attempt in flight, the message of a timeout has the newest response and the number of retries."""
    context = replace(context, retry_attempts=7, retry_reasons=frozenset({"SEARCH_TOO_MANY_REQUESTS"}))
    said = failures.timeout(context, ambiguous=ambiguous, last_reason=R.SEARCH_TOO_MANY_REQUESTS)

    assert [] == missing([*facts, "7 times", "SEARCH_TOO_MANY_REQUESTS"], said)


@rows(("status", "step"), failures.HINTS_OF_STATUSES.items())
def test_a_timeout_has_the_hint_of_its_status(status: int, step: str) -> None:
    """A timeout whose newest response has a status with a hint has this hint."""
    context = replace(QUERY, service="views", error_code=None, http_status=status)

    assert [] == missing([step], failures.timeout(context, ambiguous=False, last_reason=R.VIEWS_TEMPORARY_FAILURE))
    assert step not in str(failures.timeout(replace(context, http_status=500), ambiguous=False, last_reason=None))


def test_a_lost_read_may_be_sent_again() -> None:
    """The message of a lost read has the hint to send it again, and no warning that it may have been applied."""
    lost = R.SOCKET_CLOSED_WHILE_IN_FLIGHT
    warnings = [failures.HINTS[lost], "may have been applied"]
    for context in (QUERY, RETRIED):
        read = replace(context, idempotent=True)
        assert warnings == missing([*warnings, lost.meaning], failures.timeout(read, ambiguous=False, last_reason=lost))
        assert warnings == missing([*warnings, lost.meaning, failures.SAFE_TO_REPEAT], refused(None, lost, read))


@rows("error", failures.HINTS_OF_SERVICES)
def test_service_errors_have_their_hints(error: type[errors.CouchbaseException]) -> None:
    """If an error of a service is final, or its retry is refused, the message has the hint of the error."""
    context = replace(QUERY, body_start="<html>") if error is errors.DecodingFailureException else QUERY
    for raised in (failures.surfaced(error, context), refused(error, R.ANALYTICS_TEMPORARY_FAILURE, context)):
        assert (error, []) == (type(raised), missing([failures.HINTS_OF_SERVICES[error]], raised))


def test_a_foreign_response_to_a_write() -> None:
    """The message of a foreign response to a write, not to a read, has the hint to check whether it was applied."""
    write = failures.surfaced(errors.DecodingFailureException, QUERY)
    read = failures.surfaced(errors.DecodingFailureException, replace(QUERY, idempotent=True))

    assert failures.LOOK_AT_THE_SERVICE in str(write)
    assert failures.LOOK_AT_THE_SERVICE not in str(read)


def test_a_query_has_no_document_hint() -> None:
    """A query that may have been applied has the hint for services, and not the hint to read the document."""
    lost = R.SOCKET_CLOSED_WHILE_IN_FLIGHT
    for error in (failures.timeout(QUERY, ambiguous=True, last_reason=None), refused(None, lost, QUERY)):
        assert [failures.HINTS[lost]] == missing([failures.HINTS[lost], failures.LOOK_AT_THE_SERVICE], error)


@rows(
    ("idempotent", "expected"),
    [
        (True, errors.UnambiguousTimeoutException),
        (False, errors.AmbiguousTimeoutException),
        (None, errors.AmbiguousTimeoutException),
    ],
)
def test_a_service_timeout(idempotent: bool | None, expected: type[errors.CouchbaseException]) -> None:
    """The timeout of a service is ambiguous unless its request is idempotent."""
    error = failures.surfaced(errors.TimeoutException, replace(QUERY, idempotent=idempotent))

    assert expected is type(error)
    assert bool(idempotent) is (failures.LOOK_AT_THE_SERVICE not in str(error))


@rows("error", failures.HINTS_OF_ANSWERS)
def test_hints_precede_the_history(error: type[errors.CouchbaseException]) -> None:
    """The message of a final response has the hint first and then the history of the retries."""
    text = str(failures.surfaced(error, RETRIED))

    assert [] == missing([*STORY, failures.HINTS_OF_ANSWERS[error]], text)
    assert text.index(failures.HINTS_OF_ANSWERS[error]) < text.index("[retried")
