"""``triclinium explain couchbase``: options of a request, and sentences of its explanation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from triclinium._cli._input import DurationParameter, WholeNumber, WrongInput, choose, choose_name, spelled
from triclinium._cli._options import COUNT, given, option
from triclinium._cli.explain.explanation_text import retries
from triclinium_core import errors
from triclinium_core.explain.couchbase.explain import CouchbaseCase
from triclinium_core.explain.couchbase.happenings import ErrorCode, Happening, HttpAnswer, KvAnswer
from triclinium_core.explain.explanation import milliseconds
from triclinium_core.explain.smithy.script import ScriptedClock
from triclinium_core.kv.operation.operation_codec import CODECS
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.retry.smithy import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
from triclinium_core.tools.vectors.couchbase import HANDED_OVER, REASONS, SERVICES, STRATEGIES
from triclinium_core.tools.vectors.fields import STATUS_MAX, quote

EVENTS = ("socket-closed", "dispatch-failed")

TOKEN_STRATEGIES = ("simple", "standard", "adaptive")
"""Names on the command line of the strategies that issue tokens."""

LONGEST = ConstantRandom(1.0)
"""Random source that yields the longest possible jittered delay of a token strategy."""

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

UNNAMED_OPERATION = "request"
"""Name of the operation if the user omits it, which only services other than kv permit."""

OPERATION_OF: Mapping[couchbase.Service, str] = {
    service: "http" if service is couchbase.Service.MANAGEMENT else "query"
    for service in couchbase.Service
    if service is not couchbase.Service.KV
}
"""Name of the operation in a file of questions, for each service other than kv."""

NAMED_OPERATIONS: Mapping[couchbase.Service, tuple[str, ...]] = {
    couchbase.Service.SEARCH: couchbase.SEARCH_INDEX_OPERATIONS,
    couchbase.Service.MANAGEMENT: couchbase.MANAGEMENT_OPERATIONS,
}
"""Operations whose responses have a special meaning, by service."""


def _operations() -> set[str]:
    """Return the names of all KV operations in the tables of the core."""
    names = {operation.name for operation in CODECS}
    names.update(row.operation for row in couchbase.IDEMPOTENT_OPERATIONS if row.service is couchbase.Service.KV)
    names.update(name for row in couchbase.KV_STATUSES.values() for name in row.of_operation)
    names.update(name for line in couchbase.RETRYABLE_STATUSES.values() for name in line.excluded)
    return names


OPERATIONS: tuple[str, ...] = tuple(sorted(_operations()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOptions:
    """Options of the command that describe a case; None for an option without a default that was not given."""

    status: str | None = option(metavar="STATUS", help="Status from a KV node: 0x86, or TEMPORARY_FAILURE.")
    error_map_entry: str | None = option(
        metavar="JSON", help="Entry of the node's error map for that status; or @FILE."
    )
    event: str | None = option(metavar="EVENT", help=f"Event instead of a response: {' or '.join(EVENTS)}.")
    handed_over: str | None = option(
        metavar="SHARE",
        help=f"Share of the request that was written before the socket closed: {', '.join(HANDED_OVER)}.  [default: all]",
    )
    reason: str | None = option(metavar="REASON", help="Reason why nothing was sent.  [default: SOCKET_NOT_AVAILABLE]")
    code: int | None = option(type=WholeNumber(min=0), metavar="CODE", help="Error code from query or analytics.")
    message: str | None = option(metavar="TEXT", help="Text of that error.")
    http_status: int | None = option(
        type=WholeNumber(100, 599), metavar="STATUS", help="HTTP status from a service other than kv."
    )
    body: str | None = option(metavar="TEXT", help="Body of that response.")
    strategy: str = option(
        metavar="NAME",
        default="fast_fail_on_terminal_error",
        help=f"Retry strategy: {', '.join(STRATEGIES)}; or one with tokens: {', '.join(TOKEN_STRATEGIES)}.",
    )
    quota: int | None = option(**COUNT, help="Capacity of the quota of standard or adaptive.  [default: 500]")
    attempt: int = option(**COUNT, default=0, help="Number of previous retries.")
    elapsed_ms: float = option(
        type=DurationParameter(endless=False, unit=0.001),
        metavar="MS",
        default=0.0,
        help="Milliseconds since the request was submitted.",
    )
    timeout_ms: float | None = option(
        type=DurationParameter(unit=0.001),
        metavar="MS",
        help=f"Timeout of the request in milliseconds, or inf.  [default: {TimeoutOptions().kv * 1000:g} for kv, else "
        f"{TimeoutOptions().query * 1000:g}]",
    )
    readonly: bool = option(is_flag=True, help="Mark the query or analytics request as read-only.")
    method: str | None = option(metavar="METHOD", help="HTTP method of a management request.")


@dataclass(frozen=True, slots=True)
class HappeningOption:
    """Option that describes the event of the request, and the options with its details."""

    build: Callable[[CaseOptions], Happening]
    details: frozenset[str]
    services: str


def build_case(service_name: str, operation_name: str | None, options: CaseOptions) -> CouchbaseCase:
    """Return the case that the arguments and the options describe.

    Raises:
        WrongInput: a name is unknown, a value is missing or out of range, or options contradict each other.
    """
    service = choose(service_name, SERVICES, "service")
    operation = _operation(service, operation_name)
    happening = _option_of_happening(options)
    method = choose_name(options.method, METHODS, "HTTP method") if options.method else ""
    _refuse_useless_flags(service, operation, options)
    timeout = TimeoutOptions().of_service(service)
    if options.timeout_ms is not None:
        timeout = options.timeout_ms / 1000
    try:
        return CouchbaseCase(
            service=service,
            operation=operation,
            happened=HAPPENINGS[happening].build(options),
            readonly=options.readonly,
            method=method,
            strategy=_strategy(options),
            attempt=options.attempt,
            elapsed=options.elapsed_ms / 1000,
            timeout=timeout,
        )
    except errors.InvalidArgumentException as error:
        if error.parameter == "reason":
            raise WrongInput(_reason_out_of_place(options.reason or "", error.message)) from error
        raise WrongInput(
            f"{spelled(happening)} does not apply to {service}, only to {HAPPENINGS[happening].services}"
        ) from error


def _strategy(options: CaseOptions) -> AnyRetryStrategy:
    known: dict[str, couchbase.RetryStrategy | str] = {**STRATEGIES, **{name: name for name in TOKEN_STRATEGIES}}
    chosen = choose(options.strategy, known, "strategy")
    if not isinstance(chosen, str):
        if options.quota is not None:
            raise WrongInput(f"--quota does not apply to the strategy {options.strategy}, which has no quota; omit it")
        return chosen
    if chosen == "simple":
        if options.quota is not None:
            raise WrongInput("--quota does not apply to the strategy simple, which has no quota; omit it")
        return SimpleRetryStrategy(rng=LONGEST)
    if chosen == "standard":
        return StandardRetryStrategy(rng=LONGEST, quota_capacity=options.quota)
    return AdaptiveRetryStrategy(rng=LONGEST, clock=ScriptedClock(), quota_capacity=options.quota)


def _operation(service: couchbase.Service, name: str | None) -> str:
    if service is not couchbase.Service.KV:
        known = (OPERATION_OF[service], *NAMED_OPERATIONS.get(service, ()))
        if name is not None and name.casefold() not in {UNNAMED_OPERATION, *known}:
            raise WrongInput(f"unknown operation of {service}: {name!r}; choose from {', '.join(known)}, or omit it")
        return UNNAMED_OPERATION if name is None else name.casefold()
    if name is None:
        raise WrongInput("OPERATION is missing; kv requires one, such as get or upsert; --help lists them")
    if name.casefold().startswith(couchbase.DCP_PREFIX):
        return name.casefold()
    return choose_name(name, OPERATIONS, "operation of kv")


def _refuse_useless_flags(service: couchbase.Service, operation: str, options: CaseOptions) -> None:
    """Refuse flags that the operation's row of the idempotent list does not use."""
    row = couchbase.idempotent_row(service, operation)
    subject = f"{service} {operation}" if service is couchbase.Service.KV else str(service)
    for flag, is_given, idempotency in (
        ("--readonly", options.readonly, couchbase.Idempotency.IF_READONLY),
        ("--method", options.method, couchbase.Idempotency.IF_GET),
    ):
        if is_given and (row is None or row.idempotency is not idempotency):
            looking = dict.fromkeys(
                str(row.service) for row in couchbase.IDEMPOTENT_OPERATIONS if row.idempotency is idempotency
            )
            services = " and ".join(looking)
            raise WrongInput(f"{flag} does not apply to {subject}, only to {services}; omit it")


def _reason_out_of_place(name: str, message: str) -> str:
    """Return the error text for a reason that cannot prevent dispatch: with the event that causes it if known."""
    reason = choose(name, REASONS, "retry reason")
    lines = [line for line in couchbase.RETRYABLE_STATUSES.values() if not line.only_of]
    origins = [f"kv --status {line.status.name}" for line in lines if line.reason is reason]
    for flag, table in (
        ("--code", couchbase.RETRYABLE_ERROR_CODES),
        ("--http-status", couchbase.RETRYABLE_HTTP_STATUSES),
    ):
        origins += [f"{line.service} {flag} {line.code}" for line in table.values() if line.reason is reason]
    if reason is couchbase.RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT:
        origins.append("--event socket-closed")
    if origins:
        return f"--reason {reason} does not prevent a request from being sent; it results from {origins[0]}"
    return f"--reason {message.removeprefix('reason=')}"


def _option_of_happening(options: CaseOptions) -> str:
    """Return the only option that describes the event, after checking that no other contradicts it."""
    event_options = given(options, EVENT_OPTIONS)
    happenings = [name for name in event_options if name in HAPPENINGS]
    # A response with an error code also has an HTTP status, so --http-status beside --code is only a detail.
    happenings = [name for name in happenings if not any(name in HAPPENINGS[other].details for other in happenings)]
    ways = ", ".join(spelled(name) for name in HAPPENINGS)
    if not happenings:
        raise WrongInput(f"the failure is missing; give one of {ways}")
    if len(happenings) > 1:
        raise WrongInput(f"{' and '.join(map(spelled, happenings))} are alternatives; give one of {ways}")
    (happening,) = happenings
    for name in event_options:
        if name != happening and name not in HAPPENINGS[happening].details:
            raise WrongInput(f"{spelled(name)} does not apply to {spelled(happening)}; omit it")
    return happening


def _kv_answer(options: CaseOptions) -> KvAnswer:
    return KvAnswer(_status(options.status or ""), _entry(options.error_map_entry))


def _status(text: str) -> int:
    has_prefix = text[:2].casefold() == "0x"
    digits = text[2:] if has_prefix else text
    if not _HEXADECIMAL.fullmatch(digits):
        if not text[:1].isdecimal():
            return couchbase.Status[
                choose_name(text, couchbase.Status.__members__, "status", otherwise="write its number, such as 0x86")
            ]
        raise WrongInput(f"--status {quote(text)} must be 0x and hexadecimal digits, such as 0x86")
    status = int(digits, 16)
    if has_prefix and status <= STATUS_MAX:
        return status
    meant = [f"0x{status:02x}"] if status <= STATUS_MAX else []
    if not has_prefix and digits.isdecimal() and len(digits) <= len(str(STATUS_MAX)):
        decimal = int(digits)
        if decimal != status and decimal <= STATUS_MAX:
            meant.append(f"0x{decimal:02x} if {digits} is decimal")
    if not meant:
        raise WrongInput(f"--status {quote(text)} has more than 16 bits; the largest is 0x{STATUS_MAX:04x}")
    raise WrongInput(f"--status {quote(text)} does not begin with 0x; write {', or '.join(meant)}")


def _entry(text: str | None) -> couchbase.ErrorMapEntry | None:
    if text is None:
        return None
    try:
        document = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        return couchbase.parse_entry(json.loads(document), "--error-map-entry")
    except OSError as error:
        raise WrongInput(f"--error-map-entry {text}: {error.strerror or error}") from error
    except couchbase.MalformedErrorMap as error:
        raise WrongInput(f"{error}; write it like {EXAMPLE_OF_ENTRY}") from error
    except (ValueError, RecursionError) as error:
        raise WrongInput(f"--error-map-entry is not JSON: {error}; write it like {EXAMPLE_OF_ENTRY}") from error


EXAMPLE_OF_ENTRY = '{"name": "SLOW", "attrs": ["retry-later"]}'


def _event(options: CaseOptions) -> couchbase.SocketClosed | couchbase.DispatchFailed:
    reason = choose(options.reason or couchbase.RetryReason.SOCKET_NOT_AVAILABLE, REASONS, "retry reason")
    share = options.handed_over
    if choose_name(options.event or "", EVENTS, "event") == "socket-closed":
        handed_over = choose(share or couchbase.HandedOver.ALL.value, HANDED_OVER, "share")
        if options.reason is not None and handed_over is not couchbase.HandedOver.NOTHING:
            raise WrongInput(
                "--reason explains why nothing was sent; with --event socket-closed it requires --handed-over nothing"
            )
        return couchbase.SocketClosed(handed_over, reason=reason)
    if share is not None:
        raise WrongInput("--handed-over does not apply to --event dispatch-failed, which sends nothing; omit it")
    return couchbase.DispatchFailed(reason)


def _error_code(options: CaseOptions) -> ErrorCode:
    return ErrorCode(options.code or 0, options.message or "", options.http_status)


def _http_answer(options: CaseOptions) -> HttpAnswer:
    return HttpAnswer(options.http_status or 0, options.body or "")


_HEXADECIMAL = re.compile("[0-9A-Fa-f]+")

HAPPENINGS: Mapping[str, HappeningOption] = {
    "status": HappeningOption(_kv_answer, frozenset({"error_map_entry"}), "kv"),
    "event": HappeningOption(_event, frozenset({"handed_over", "reason"}), "every service"),
    "code": HappeningOption(_error_code, frozenset({"message", "http_status"}), "query and analytics"),
    "http_status": HappeningOption(_http_answer, frozenset({"body"}), "every service but kv"),
}

EVENT_OPTIONS = frozenset(HAPPENINGS).union(*(option.details for option in HAPPENINGS.values()))
"""All options that describe the event."""


def circumstances(case: CouchbaseCase) -> str:
    """Return the progress of the request as a sentence."""
    elapsed = milliseconds(case.elapsed)
    if math.isinf(case.timeout):
        return f"So far: {retries(case.attempt)}, and {elapsed} ms have passed, without a timeout."
    return f"So far: {retries(case.attempt)}, and {elapsed} ms of {milliseconds(case.timeout)} ms have passed."
