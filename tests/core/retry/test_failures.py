"""The exceptions that end a request: their class, their words, and what they know."""

from __future__ import annotations

import pickle

import pytest

from tests.core.retry.request_cases import Refusal
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import (
    AmbiguousTimeoutException,
    CouchbaseException,
    DocumentLockedException,
    DocumentNotFoundException,
    DurabilityAmbiguousException,
    DurabilityImpossibleException,
    DurabilityLevelNotAvailableException,
    RequestCanceledException,
    UnambiguousTimeoutException,
)
from triclinium_core.retry.failures import HINTS, refused, subject, surfaced, timeout
from triclinium_core.retry.reasons import RetryReason

R = RetryReason

UPSERT = ErrorContext(operation="upsert", key="airline_10", timeout=2.5)
RETRIED = ErrorContext(
    operation="upsert",
    key="airline_10",
    timeout=2.5,
    retry_attempts=3,
    retry_reasons=frozenset({"KV_TEMPORARY_FAILURE", "KV_LOCKED"}),
    last_dispatch_error="10.0.0.1:11210: reset",
)

NEXT_STEPS = {
    R.AUTHENTICATION_ERROR: "user name and password",
    R.TLS_ERROR: "certificate",
    R.BUCKET_ACCESS_ERROR: "bucket exists",
    R.SCOPE_NOT_FOUND: "scope's name",
    R.COLLECTION_NOT_FOUND: "collection's name",
    R.KV_LOCKED: "lock",
    R.SOCKET_CLOSED_WHILE_IN_FLIGHT: "read the document before writing again",
}
"""The reasons for which we know what to do next, and the words that must be there."""


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (UPSERT, "upsert 'airline_10'"),
        (ErrorContext(operation="get_cluster_config"), "get_cluster_config"),
        (ErrorContext(operation="get", key=""), "get ''"),
        (ErrorContext(operation="get", key="it's\n\x00"), 'get "it\'s\\n\\x00"'),
    ],
)
def test_subject(context: ErrorContext, expected: str) -> None:
    """Every message begins with the operation and its key, the key quoted so that it stays one line."""
    assert expected == subject(context)


def test_hints_are_for_reasons_with_a_next_step() -> None:
    """Every reason that the user can do something about has its hint."""
    assert set(NEXT_STEPS) == set(HINTS)
    assert all(words in HINTS[reason] for reason, words in NEXT_STEPS.items())


def test_ambiguous_timeout() -> None:
    """It says that nobody knows, and what to do before writing again; the last reason does not explain it."""
    for last_reason in (None, R.KV_LOCKED):
        error = timeout(UPSERT, ambiguous=True, last_reason=last_reason)
        assert AmbiguousTimeoutException is type(error)
        assert UPSERT is error.context
        assert (
            "upsert 'airline_10': no answer within 2.5 s; it may have been applied, so read the document before "
            "writing again"
        ) == str(error)


def test_unambiguous_timeout() -> None:
    """It says that nothing was applied."""
    error = timeout(UPSERT, ambiguous=False, last_reason=None)

    assert UnambiguousTimeoutException is type(error)
    assert "upsert 'airline_10': not done within 2.5 s and certainly not applied" == str(error)


@rows("reason", [reason for reason in RetryReason if reason is not R.SOCKET_CLOSED_WHILE_IN_FLIGHT])
def test_unambiguous_timeout_tells_why(reason: RetryReason) -> None:
    """What kept the request from success, and the next step where we know one."""
    text = str(timeout(UPSERT, ambiguous=False, last_reason=reason))
    hint = f": {HINTS[reason]}" if reason in NEXT_STEPS else ""

    assert f"upsert 'airline_10': not done within 2.5 s and certainly not applied; {reason.meaning}{hint}" == text


def test_a_read_is_not_told_to_look_after_its_write() -> None:
    """A socket that closed under a read leaves no doubt, and "certainly not applied" is not contradicted."""
    read = ErrorContext(operation="get", key="airline_10", idempotent=True, timeout=2.5)
    why = R.SOCKET_CLOSED_WHILE_IN_FLIGHT.meaning

    assert f"get 'airline_10': not done within 2.5 s and certainly not applied; {why}" == str(
        timeout(read, ambiguous=False, last_reason=R.SOCKET_CLOSED_WHILE_IN_FLIGHT)
    )
    assert f"get 'airline_10': {why} (SOCKET_CLOSED_WHILE_IN_FLIGHT) and is not retried" == str(
        refused(None, R.SOCKET_CLOSED_WHILE_IN_FLIGHT, read)
    )


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (ErrorContext(operation="get", timeout=0.001), "get: not done within 0.001 s and"),
        (ErrorContext(operation="get", timeout=75.0), "get: not done within 75 s and"),
        (ErrorContext(operation="get"), "get: not done within its deadline and"),
    ],
)
def test_the_timeout_is_named(context: ErrorContext, expected: str) -> None:
    """The seconds that were given, where they were limited."""
    assert str(timeout(context, ambiguous=False, last_reason=None)).startswith(expected)


def test_the_story() -> None:
    """Retries, their reasons in order, and the last dispatch error close every message."""
    story = " [retried 3 times: KV_LOCKED, KV_TEMPORARY_FAILURE; last dispatch error: 10.0.0.1:11210: reset]"
    messages = [
        str(timeout(RETRIED, ambiguous=True, last_reason=None)),
        str(timeout(RETRIED, ambiguous=False, last_reason=R.KV_LOCKED)),
        str(refused(None, R.KV_LOCKED, RETRIED)),
        str(refused(None, R.KV_LOCKED, RETRIED, ValueError())),
        str(surfaced(DocumentNotFoundException, RETRIED)),
    ]

    assert [True] * 5 == [message.endswith(story) for message in messages]


def test_parts_of_the_story() -> None:
    """What is not known is not told."""
    elsewhere = ErrorContext(operation="get", retry_attempts=2)
    connection = ErrorContext(operation="get", last_dispatch_error="reset")

    assert str(refused(None, R.UNKNOWN, elsewhere)).endswith(" and is not retried [retried 2 times]")
    assert str(refused(None, R.UNKNOWN, connection)).endswith(" and is not retried [last dispatch error: reset]")


@rows("reason", RetryReason)
def test_refused(reason: RetryReason) -> None:
    """The words name operation, key, what happened, the reason, and the next step where we know one."""
    error = refused(None, reason, UPSERT)
    hint = f": {HINTS[reason]}" if reason in NEXT_STEPS else ""

    assert RequestCanceledException is type(error)
    assert f"upsert 'airline_10': {reason.meaning} ({reason.name}) and is not retried{hint}" == str(error)
    assert reason.name == error.context.refused_reason
    assert UPSERT.refused_reason is None
    assert error.__cause__ is None


@pytest.mark.parametrize("asked", [DocumentLockedException, CouchbaseException, Refusal])
def test_refused_with_a_class(asked: type[CouchbaseException]) -> None:
    """A reason born of a status, or a strategy, brings its own class (decision C32)."""
    assert asked is type(refused(asked, R.KV_LOCKED, UPSERT))


def test_refused_because_the_strategy_raised() -> None:
    """The request fails with that exception as the cause, and says which reason was in question (decision C28)."""
    cause = ZeroDivisionError("mine")
    error = refused(None, R.KV_LOCKED, UPSERT, cause)

    assert RequestCanceledException is type(error)
    assert cause is error.__cause__
    assert "KV_LOCKED" == error.context.refused_reason
    assert "upsert 'airline_10': the retry strategy failed with ZeroDivisionError when asked about KV_LOCKED" == str(
        error
    )


KV_ANSWER = ErrorContext(operation="get", key="airline_10", status=0x01, status_name="KEY_NOT_FOUND")


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (KV_ANSWER, "get 'airline_10': the server answered KEY_NOT_FOUND [0x01]"),
        (
            ErrorContext(operation="get", status=0x7FF0, status_name="NEWS", status_text="Something new."),
            "get: the server answered NEWS [0x7ff0] (Something new.)",
        ),
        (
            ErrorContext(operation="get", status=0x86, status_text="Wait.", server_context="no memory"),
            "get: the server answered an unknown status [0x86] (Wait.; no memory)",
        ),
        (
            ErrorContext(operation="get", status=0x86, status_name="TEMPORARY_FAILURE", server_context="no memory"),
            "get: the server answered TEMPORARY_FAILURE [0x86] (no memory)",
        ),
        (
            ErrorContext(service="query", operation="query", status=400, status_text="syntax"),
            "query: the server answered HTTP status 400 (syntax)",
        ),
        (
            ErrorContext(service="query", operation="query", status=400, status_name="error 5", status_text="syntax"),
            "query: the server answered error 5 (syntax)",
        ),
        (
            ErrorContext(service="views", operation="view", status=500, status_text=""),
            "view: the server answered HTTP status 500",
        ),
    ],
)
def test_surfaced(context: ErrorContext, expected: str) -> None:
    """A final answer is told by name and number, with what the map and the server say of it."""
    error = surfaced(DocumentNotFoundException, context)

    assert DocumentNotFoundException is type(error)
    assert expected == str(error)
    assert context is error.context


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            DurabilityAmbiguousException,
            "it may have been applied, or may still be; read the document before writing again",
        ),
        (DurabilityImpossibleException, "nothing was written; too few nodes have a copy of the document"),
        (DurabilityLevelNotAvailableException, "nothing was written; ask for another durability level"),
    ],
)
def test_what_to_do_about_an_answer(error: type[CouchbaseException], expected: str) -> None:
    """The next step stands before what happened earlier."""
    text = str(surfaced(error, RETRIED))

    assert expected in text
    assert text.index(expected) < text.index("[retried")


def test_all_survive_pickling() -> None:
    """What the caller gets may cross a process boundary, context and all; Python leaves the cause behind."""
    for error in (
        timeout(RETRIED, ambiguous=True, last_reason=None),
        timeout(RETRIED, ambiguous=False, last_reason=R.KV_LOCKED),
        refused(Refusal, R.KV_LOCKED, RETRIED),
        refused(None, R.KV_LOCKED, RETRIED, ValueError("mine")),
        surfaced(DocumentNotFoundException, KV_ANSWER),
    ):
        copied = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(error), str(error), error.context) == (type(copied), str(copied), copied.context)
        assert error.context.to_json() == copied.context.to_json()
