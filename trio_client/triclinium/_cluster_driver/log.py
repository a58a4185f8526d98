"""Reports of the machine as log records.

``triclinium.retry`` logs retries at DEBUG and refusals at INFO (SDK-RFC 0049 "Retry Orchestration"; decision C30), and
at ERROR the exception of a token strategy that cannot record a success. ``triclinium.connection`` logs events of
connections: at WARNING the loss of a node and risks such as TLS without verification, at DEBUG further failures until
the node is back, at INFO most other events. It also logs the options of a new client at DEBUG, and each kind of decoder
defect once at ERROR, with its traceback.

Records of retries and refusals have these attributes: ``operation``, ``key``, ``reason``, ``node``, ``retry_attempts``
and ``age`` in seconds; for a retry also ``delay`` in seconds and ``dispatches``, for a refusal ``error``.

The client writes records of retries, refusals and timeouts in the context of the task that waits for the operation, and
in the span of its call if the tracer has a current span, so that they carry the trace of the caller.

``triclinium.timeout`` logs each timeout once at WARNING: of an operation, of a call that makes several requests, or
of a ``fail_after`` block that abandoned operations. A message contains up to ten operations' contexts as JSON.

``triclinium.threshold`` logs slow operations at WARNING, ``triclinium.orphan`` logs responses without a waiting
operation at WARNING, ``triclinium.meter`` logs durations of operations at INFO. Each line is the JSON of SDK-RFC 0067
and nothing else.

``triclinium.tape`` logs at WARNING that a tape could not be written, or not in time.

Every message is printable, has no line break and has a bounded length, whatever a node, a caller or a key
contains.
With ``redact``, user data is inside ``<ud>…</ud>``: document ids, sub-document paths, statements and names of their
parameters, user names, HTTP paths, and messages of a server, which may quote all of these. Names of buckets, scopes,
collections, indexes and views are metadata, addresses are system data, and a client context id is an identifier. They
are not marked, except inside such messages.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from triclinium_core import errors
from triclinium_core.contract.couchbase import ReportRefusal, ReportRetry, ReportTelemetry, TelemetryKind
from triclinium_core.contract.neutral import ReportConnection, ReportDecoderFault, ReportLevel, ReportStrategyError
from triclinium_core.error_context import TEXT_MAX, ErrorContext
from triclinium_core.options import Authenticator, ClientOptions, PasswordAuthenticator
from triclinium_core.retry.couchbase import RetryRequest
from triclinium_core.shown import beginning, printable, printable_json

retry_logger = logging.getLogger("triclinium.retry")
connection_logger = logging.getLogger("triclinium.connection")
timeout_logger = logging.getLogger("triclinium.timeout")
tape_logger = logging.getLogger("triclinium.tape")

# Without a handler, Python prints warnings on standard error in programs that do not configure logging.
logging.getLogger("triclinium").addHandler(logging.NullHandler())

CONTEXTS_MAX = 10
"""Maximum number of operations in the line of one timeout; the exception may have more."""

USERS_MAX = 8
"""Number of recent user names that are sure to be marked in messages, because open connections may still use an earlier
authenticator."""

_OPEN, _CLOSE = "<ud>", "</ud>"
_MARK = re.compile(r"<(?=/?(?:ud|md|sd)>)", re.IGNORECASE)
"""Beginning of a mark inside of data. Such a mark could end the mark around the data."""

_LEVELS = {
    ReportLevel.DEBUG: logging.DEBUG,
    ReportLevel.INFO: logging.INFO,
    ReportLevel.WARNING: logging.WARNING,
}

_TELEMETRY: Mapping[TelemetryKind, tuple[logging.Logger, int]] = {
    TelemetryKind.SLOW_OPERATIONS: (logging.getLogger("triclinium.threshold"), logging.WARNING),
    TelemetryKind.DURATIONS: (logging.getLogger("triclinium.meter"), logging.INFO),
    TelemetryKind.ORPHANS: (logging.getLogger("triclinium.orphan"), logging.WARNING),
}
"""Logger and level of each kind of summary."""


class Log:
    """Writer of reports to the log.

    Args:
        redact: mark user data as ``<ud>…</ud>``, which Couchbase's tools can remove.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self.redact: bool = redact
        self._users: re.Pattern[str] | None = None
        """Pattern of the user names to mark in messages; None without user names."""
        self._names: list[str] = []

    def authenticator(self, authenticator: Authenticator | None) -> None:
        """Mark the user name of a ``PasswordAuthenticator`` in later messages, if the log marks user data."""
        if isinstance(authenticator, PasswordAuthenticator):
            spelled = repr(authenticator.username)[1:-1], printable(authenticator.username)
            forms = dict.fromkeys(map(_without_marks, spelled))
            self._names = [*(name for name in self._names if name not in forms), *forms][-2 * USERS_MAX :]
            longest_first = sorted(self._names, key=len, reverse=True)
            self._users = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def options(self, options: ClientOptions) -> None:
        """Log the options of a new client at DEBUG, without secrets (SDK-RFC 0074 "Logging")."""
        self.authenticator(options.authenticator)
        if connection_logger.isEnabledFor(logging.DEBUG):
            connection_logger.debug("a client starts with %s", self._text(str(options)))

    def writes(self, report: ReportRetry | ReportRefusal) -> bool:
        """Return whether the logger is enabled for the level of ``report``."""
        return retry_logger.isEnabledFor(logging.DEBUG if isinstance(report, ReportRetry) else logging.INFO)

    def retry(self, report: ReportRetry) -> None:
        """Log that an operation will be retried, or that its deadline is earlier than the retry."""
        request = report.request
        retry_logger.debug(
            "%s %s in %.3f s (%s, node %s, retries so far: %d)",
            self._subject(request),
            "is sent again" if report.dispatches else "fails, with its retry unsent,",
            report.delay,
            report.reason,
            _node(report.node),
            request.retry_attempts,
            extra={**self._fields(report), "delay": report.delay, "dispatches": report.dispatches},
        )

    def refusal(self, report: ReportRefusal) -> None:
        """Log that an operation fails and is not retried."""
        request = report.request
        retry_logger.info(
            "%s is not retried and fails with %s (%s, node %s, retries so far: %d, %.3f s old)",
            self._subject(request),
            report.error,
            report.reason,
            _node(report.node),
            request.retry_attempts,
            request.age,
            extra={**self._fields(report), "error": report.error},
        )

    def strategy_error(self, report: ReportStrategyError) -> None:
        """Log the exception that a strategy raised while recording a success; no caller receives it."""
        retry_logger.error("a retry strategy failed to record a success", exc_info=report.error)

    def connection(self, report: ReportConnection) -> None:
        """Log an event of a connection."""
        connection_logger.log(_LEVELS[report.level], "%s: %s", printable(report.node), self._text(report.text))

    def decoder_fault(self, report: ReportDecoderFault) -> None:
        """Log that a decoder failed on the bytes of a node, with the traceback."""
        connection_logger.error("%s: %s", report.node, report.fault, exc_info=report.fault)

    def timeout(self, error: errors.TimeoutException) -> None:
        """Log the timeout of an operation with its context."""
        log_timeout(error, [error.context], redact=self.redact)

    def telemetry(self, report: ReportTelemetry) -> None:
        """Log the summary of the operations of an interval."""
        logger, level = _TELEMETRY[report.kind]
        logger.log(level, "%s", printable_json(report.text))

    def tape_problem(self, problem: str) -> None:
        """Log a problem with writing a tape."""
        tape_logger.warning("%s", printable(problem))

    def _fields(self, report: ReportRetry | ReportRefusal) -> dict[str, object]:
        request = report.request
        return {
            "operation": request.operation,
            "key": request.key if request.key is None else self._marked(printable(request.key)),
            "reason": str(report.reason),
            "node": _node(report.node),
            "retry_attempts": request.retry_attempts,
            "age": request.age,
        }

    def _subject(self, request: RetryRequest) -> str:
        """Return the operation, with the key if it has one."""
        if request.key is None:
            return request.operation
        quoted = printable(repr(request.key))
        return f"{request.operation} of {self._marked(quoted[1:-1]) if self.redact else quoted}"

    def _marked(self, text: str) -> str:
        return marked(text) if self.redact else text

    def _text(self, text: str) -> str:
        """Return ``text`` in printable form. If the log marks user data, mark each known user name."""
        text = printable(text)
        if not self.redact:
            return text
        # A mark inside the message would be taken for one of the client's.
        text = _without_marks(text)
        return text if self._users is None else self._users.sub(lambda found: marked(found[0]), text)


def log_timeout(
    error: errors.TimeoutException, contexts: Sequence[ErrorContext], *, redact: bool, dropped: int = 0
) -> None:
    """Log one timeout with the contexts of the operations that it ended.

    Args:
        dropped: number of further operations, whose contexts were dropped.
        redact: mark user data.
    """
    logged = [_redacted(context) if redact else context for context in contexts[:CONTEXTS_MAX]]
    text = ", ".join(context.to_json() for context in logged)
    more = f" and {len(contexts) + dropped - CONTEXTS_MAX} more" if len(contexts) > CONTEXTS_MAX else ""
    timeout_logger.warning("%s: %s%s", type(error).__name__, text, more)


def _redacted(context: ErrorContext) -> ErrorContext:
    """Return the context with marks around user data and around messages that may quote user data."""
    return replace(
        context,
        key=_marked_or_none(context.key),
        path=_marked_or_none(context.path),
        statement=_marked_or_none(context.statement),
        parameters=tuple(map(marked, context.parameters)),
        http_path=_marked_or_none(context.http_path),
        server_context=_marked_or_none(context.server_context),
        error_message=_marked_or_none(context.error_message),
        body_start=_marked_or_none(context.body_start),
        last_dispatch_error=_marked_or_none(context.last_dispatch_error),
        connections=tuple(map(marked, context.connections)),
    )


def _marked_or_none(text: str | None) -> str | None:
    return None if text is None else marked(text)


def marked(text: str) -> str:
    """Return ``text`` with marks around it: at most ``TEXT_MAX`` characters with the marks. Empty text stays empty.

    A mark inside of the text gets a backslash, so that it does not count as a mark.
    """
    if not text:
        return text
    return f"{_OPEN}{beginning(_without_marks(text), TEXT_MAX - len(_OPEN + _CLOSE))}{_CLOSE}"


def _without_marks(text: str) -> str:
    return _MARK.sub(r"<\\", text)


def _node(node: str | None) -> str | None:
    return None if node is None else printable(node)
