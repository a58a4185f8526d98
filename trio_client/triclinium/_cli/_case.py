"""From the options of ``triclinium explain`` to a case that the core explains."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from triclinium._cli._case_names import (
    EVENTS,
    HANDED_OVER,
    OPERATIONS,
    STATUSES,
    UNNAMED_OPERATION,
)
from triclinium._cli._wrong_input import WrongInput, choose
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.error_map import ErrorMapEntry, MalformedErrorMap, parse_entry
from triclinium_core.retry.events import DispatchFailed, HandedOver, SocketClosed
from triclinium_core.retry.explain import Case, ErrorCode, Happening, HttpAnswer, KvAnswer
from triclinium_core.retry.kv_responses import DCP_PREFIX
from triclinium_core.retry.question_fields import MalformedQuestion, parse_status
from triclinium_core.retry.questions import REASONS, SERVICES, STRATEGIES
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.service import Service


class CaseOptions(TypedDict):
    """The options of the command that tell a case; None for one that was not given."""

    status: str | None
    error_map_entry: str | None
    event: str | None
    handed_over: str | None
    reason: str | None
    code: int | None
    message: str | None
    http_status: int | None
    body: str | None
    strategy: str
    attempt: int
    elapsed_ms: float
    timeout_ms: float | None
    readonly: bool
    method: str


@dataclass(frozen=True, slots=True)
class HappeningOption:
    """An option that says what befell the request, and the options that may tell more of it."""

    build: Callable[[CaseOptions], Happening]
    details: frozenset[str]
    services: str


def build_case(service_name: str, operation_name: str | None, options: CaseOptions) -> Case:
    """Return the case.

    Raises:
        WrongInput: a name is not known, a value is out of range, or options do not go together.
    """
    service = choose(service_name, SERVICES, "service")
    operation = _operation(service, operation_name)
    option = _option_of_happening(options)
    timeout_ms = options["timeout_ms"]
    try:
        return Case(
            service=service,
            operation=operation,
            happened=HAPPENINGS[option].build(options),
            readonly=options["readonly"],
            method=options["method"],
            strategy=choose(options["strategy"], STRATEGIES, "strategy"),
            attempt=options["attempt"],
            elapsed=options["elapsed_ms"] / 1000,
            timeout=default_timeout(service) if timeout_ms is None else timeout_ms / 1000,
        )
    except InvalidArgumentException as error:
        if error.parameter != "happened":
            raise WrongInput(error.message) from error
        raise WrongInput(
            f"{_spelled(option)} cannot happen to {service}; it happens to {HAPPENINGS[option].services}"
        ) from error


def default_timeout(service: Service) -> float:
    """Return the seconds that a request of ``service`` may take unless it is said; the client has a limit for KV only."""
    return TimeoutOptions().kv if service is Service.KV else math.inf


def _operation(service: Service, name: str | None) -> str:
    if service is not Service.KV:
        return name or UNNAMED_OPERATION
    if name is None:
        raise WrongInput("name an operation of kv, such as get or upsert; --help lists them")
    if name.casefold().startswith(DCP_PREFIX):
        return name.casefold()
    return choose(name, {operation: operation for operation in OPERATIONS}, "operation of kv")


def _option_of_happening(options: CaseOptions) -> str:
    """Return the one option that says what happened, once no other contradicts it."""
    given = [name for name, value in options.items() if name in TELLING and value is not None]
    told = [name for name in given if name in HAPPENINGS]
    # An error code comes in an answer that has an HTTP status, so that one is a detail there.
    told = [name for name in told if not any(name in HAPPENINGS[other].details for other in told)]
    ways = ", ".join(_spelled(name) for name in HAPPENINGS)
    if not told:
        raise WrongInput(f"say what happened, with one of {ways}")
    if len(told) > 1:
        raise WrongInput(f"{' and '.join(map(_spelled, told))} are two happenings; give one of {ways}")
    (option,) = told
    for name in given:
        if name != option and name not in HAPPENINGS[option].details:
            raise WrongInput(f"{_spelled(name)} says nothing about {_spelled(option)}; leave it out")
    return option


def _kv_answer(options: CaseOptions) -> KvAnswer:
    return KvAnswer(_status(options["status"] or ""), _entry(options["error_map_entry"]))


def _status(text: str) -> int:
    if not text[:1].isdecimal():
        return choose(text, STATUSES, "status", otherwise="write its number, such as 0x86")
    try:
        return parse_status(text, "--status")
    except MalformedQuestion as error:
        raise WrongInput(str(error)) from error


def _entry(text: str | None) -> ErrorMapEntry | None:
    if text is None:
        return None
    try:
        document = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        return parse_entry(json.loads(document), "--error-map-entry")
    except OSError as error:
        raise WrongInput(f"--error-map-entry {text}: {error.strerror or error}") from error
    except MalformedErrorMap as error:
        raise WrongInput(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise WrongInput(f"--error-map-entry is not JSON: {error}") from error


def _event(options: CaseOptions) -> SocketClosed | DispatchFailed:
    reason = choose(options["reason"] or RetryReason.SOCKET_NOT_AVAILABLE, REASONS, "retry reason")
    share = options["handed_over"]
    if choose(options["event"] or "", EVENTS, "event") == "socket-closed":
        handed_over = choose(share or HandedOver.ALL.value, HANDED_OVER, "share")
        if options["reason"] is not None and handed_over is not HandedOver.NOTHING:
            raise WrongInput(
                "--reason says why nothing was sent; with --event socket-closed it needs --handed-over nothing"
            )
        return SocketClosed(handed_over, reason=reason)
    if share is not None:
        raise WrongInput("--handed-over says nothing about --event dispatch-failed, where nothing is; leave it out")
    return DispatchFailed(reason)


def _error_code(options: CaseOptions) -> ErrorCode:
    code = ErrorCode(options["code"] or 0, options["message"] or "")
    http_status = options["http_status"]
    return code if http_status is None else ErrorCode(code.code, code.message, http_status)


def _http_answer(options: CaseOptions) -> HttpAnswer:
    return HttpAnswer(options["http_status"] or 0, options["body"] or "")


HAPPENINGS: Mapping[str, HappeningOption] = {
    "status": HappeningOption(_kv_answer, frozenset({"error_map_entry"}), "kv"),
    "event": HappeningOption(_event, frozenset({"handed_over", "reason"}), "every service"),
    "code": HappeningOption(_error_code, frozenset({"message", "http_status"}), "query and analytics"),
    "http_status": HappeningOption(_http_answer, frozenset({"body"}), "every service but kv"),
}

TELLING = frozenset(HAPPENINGS).union(*(option.details for option in HAPPENINGS.values()))
"""All options that tell what happened."""


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"
