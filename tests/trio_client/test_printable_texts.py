"""Printable messages, contexts and log lines for hostile arguments of public methods."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
import trio

import triclinium
import triclinium.search
import triclinium.views
from tests.rows import rows
from triclinium.testing import open_fake_cluster
from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.environment import read_environment
from triclinium_core.kv.topology.connection_string import parse_connection_string

EVIL = "\n2026-01-01 CRITICAL forged \x1b[31m\x9b\x7f\u202e\u2028"
"""A line break, an escape, a C1 control, DEL, a bidirectional control and a line separator."""

LENGTH_MAX = 5_000
"""Maximum length of a message or a context with hostile arguments."""

CASES_MIN = 300
"""Minimum number of calls. With fewer, the methods were not found."""

OWN_ERRORS = (errors.CouchbaseException, ArgumentError)


def faults_of(error: BaseException) -> list[str]:
    """Return the beginnings of those texts of an error that are not printable, or too long."""
    texts = [str(error), repr(error)]
    if isinstance(error, errors.CouchbaseException):
        texts += [error.message, error.context.to_json()]
    return [text[:200] for text in texts if not text.isprintable() or len(text) > LENGTH_MAX]


def calls_of(owner: object) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield calls with hostile required arguments, and with each option hostile in turn, by name of the method."""
    for name, method in inspect.getmembers(owner, inspect.isroutine):
        if name.startswith("_") or name == "set_authenticator":
            continue
        parameters = inspect.signature(method).parameters.values()
        given = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
        required = [each for each in given if each.default is each.empty and each.kind is not each.VAR_POSITIONAL]
        positional = [EVIL for each in required if each.kind is not each.KEYWORD_ONLY]
        keywords = {each.name: EVIL for each in required if each.kind is each.KEYWORD_ONLY}
        where = f"{type(owner).__name__}.{name}"
        if required:
            yield where, _call(method, positional, keywords)
        for option in given:
            if option.default is not option.empty:
                yield f"{where}({option.name}=)", _call(method, positional, {**keywords, option.name: EVIL})


def _call(method: Callable[..., object], positional: list[str], keywords: Mapping[str, object]) -> Callable[[], object]:
    return lambda: method(*positional, **keywords)


async def carry_out(call: Callable[[], object]) -> Exception | None:
    """Return the exception that a call or its result raises."""
    try:
        result = call()
        if inspect.isawaitable(result):
            await result
        elif isinstance(result, AbstractAsyncContextManager):
            async with result as given:
                if isinstance(given, AsyncIterable):
                    async for _ in given:
                        pass
    except Exception as error:
        return error
    return None


def owners(cluster: triclinium.Cluster) -> Iterator[object]:
    """Yield handles and managers whose methods a program calls."""
    bucket = cluster.bucket("default")
    collection = bucket.default_collection()
    yield from (cluster, bucket, bucket.default_scope(), collection, collection.binary, bucket.collections())
    yield from (cluster.buckets(), cluster.users(), cluster.query_indexes(), cluster.search_indexes())
    yield collection.query_indexes()


@rows("redact", [False, True])
async def test_every_method_with_hostile_arguments(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock, redact: bool
) -> None:
    """With hostile arguments to the methods of a client, messages, contexts and log lines are printable."""
    caplog.clear()
    caplog.set_level(logging.DEBUG, logger="triclinium")
    wrong: list[str] = []
    count = 0
    short = triclinium.TimeoutOptions(
        kv=0.5, kv_durable=0.5, kv_scan=0.5, query=0.5, analytics=0.5, search=0.5, views=0.5, management=0.5
    )
    async with open_fake_cluster() as fake, fake.open_client(timeouts=short, redact_logs=redact) as cluster:
        for owner in owners(cluster):
            for where, call in calls_of(owner):
                count += 1
                with trio.move_on_after(5):
                    error = await carry_out(call)
                    if isinstance(error, OWN_ERRORS):
                        wrong += [f"{where}: {text!r}" for text in faults_of(error)]
    wrong += [f"{record.name}: {record.getMessage()[:200]!r}" for record in caplog.records if not _is_fine(record)]

    assert [] == wrong
    assert count >= CASES_MIN


def _is_fine(record: logging.LogRecord) -> bool:
    return record.getMessage().isprintable()


def classes() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield constructors of public values with hostile required arguments, and with each option hostile in turn."""
    for module in (triclinium, triclinium.search, triclinium.views):
        for name, kind in vars(module).items():
            if not inspect.isclass(kind) or name.startswith("_") or issubclass(kind, BaseException):
                continue
            try:
                parameters = inspect.signature(kind).parameters.values()
            except ValueError:
                continue
            named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
            required = {each.name: EVIL for each in named if each.default is each.empty}
            yield name, _call(kind, [], required)
            for option in named:
                if option.default is not option.empty:
                    yield f"{name}({option.name}=)", _call(kind, [], {**required, option.name: EVIL})


def test_every_value_with_hostile_arguments() -> None:
    """A constructor that refuses a hostile argument raises an error with printable text."""
    wrong: list[str] = []
    count = 0
    for where, call in classes():
        count += 1
        try:
            call()
        except OWN_ERRORS as error:
            wrong += [f"{where}: {text!r}" for text in faults_of(error)]
        except (TypeError, ValueError, AttributeError, LookupError, RuntimeError):
            # Ignore Python's errors for wrong arguments, and trio's for a call outside a run.
            pass

    assert [] == wrong
    assert count >= CASES_MIN // 2


@rows(
    "text",
    [
        EVIL,
        f"couchbase:/h{EVIL}",
        f"h{EVIL}",
        f"{EVIL}://h",
        f"couchbase://u@h{EVIL}",
        f"couchbase://h{EVIL}",
        f"couchbase://h:{EVIL}",
        "couchbase://h?%0aX=1",
        "couchbase://h?kv_timeout=%0aX%1b[31m",
        "couchbase://h?enable_dns_srv=%0aX",
        "couchbase://h?network=%0aX",
        f"couchbase://h?{EVIL}",
    ],
)
def test_hostile_connection_strings(text: str) -> None:
    """The error for a refused connection string is printable, even if an environment variable has the string."""
    wrong: list[str] = []
    for read in (
        lambda: parse_connection_string(text),
        lambda: read_environment({"TRICLINIUM_CONNECTION_STRING": text}),
        lambda: triclinium.open_cluster(text, triclinium.PasswordAuthenticator("app", "secret")),
    ):
        try:
            read()
        except OWN_ERRORS as error:
            wrong += faults_of(error)

    assert [] == wrong


@rows("name", ["KV_TIMEOUT", "PROFILE", "COMPRESSION", "ENABLE_DNS_SRV", EVIL])
def test_hostile_variables(name: str) -> None:
    """The error for a refused environment variable is printable."""
    with pytest.raises(OWN_ERRORS) as refused:
        read_environment({"TRICLINIUM_CONNECTION_STRING": "couchbase://h", f"TRICLINIUM_{name}": EVIL})

    assert [] == faults_of(refused.value)
