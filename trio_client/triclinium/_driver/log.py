"""What the machine reports, for the standard library's logging.

``triclinium.retry`` tells retries at DEBUG and refusals at INFO (SDK-RFC 0049 "Logging"), and at ERROR what a token strategy
raises when it is told of a success. ``triclinium.connection`` tells what
happens to connections: the loss of a node at WARNING, what fails until it is back at DEBUG, all else at INFO; and at
DEBUG with which options a client begins. A defect in a decoder is logged at ERROR with its traceback, once for each kind.

The numbers and names in the sentences of ``triclinium.retry`` are attributes of the record too, for handlers that keep them
as data: ``operation``, ``key``, ``reason``, ``node``, ``retry_attempts`` and ``age`` in seconds; of a retry also ``delay`` in seconds
and ``dispatches``, of a refusal ``error``.

``triclinium.timeout`` tells at WARNING of each timeout, once: of an operation, or of a block ``fail_after`` with all operations
that it gave up. Their contexts are JSON.

``triclinium.threshold`` tells at WARNING what was slow, ``triclinium.orphan`` at WARNING which answers nobody waited for any more,
``triclinium.meter`` at INFO how long operations took. Each line is the JSON of SDK-RFC 0067 and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from triclinium_core.client.actions import (
    ReportConnection,
    ReportDecoderFault,
    ReportLevel,
    ReportRefusal,
    ReportRetry,
    ReportStrategyError,
    ReportTelemetry,
    TelemetryKind,
)
from triclinium_core.error_context import ErrorContext
from triclinium_core.errors import TimeoutException
from triclinium_core.options import ClientOptions

retry_logger = logging.getLogger("triclinium.retry")
connection_logger = logging.getLogger("triclinium.connection")
timeout_logger = logging.getLogger("triclinium.timeout")

# Where a program has set up no log, Python would print the warnings on standard error.
logging.getLogger("triclinium").addHandler(logging.NullHandler())

CONTEXTS_MAX = 10
"""Of how many operations a line tells that were given up at once; the exception has them all."""

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
"""Who tells what was gathered of operations, and how loudly."""


class Log:
    """Writes reports to the log.

    Args:
        redact: whether document ids are marked as ``<ud>…</ud>``, which Couchbase's tools know how to remove.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self.redact: bool = redact

    def options(self, options: ClientOptions) -> None:
        """Tell with which options a client begins; secrets are not shown (SDK-RFC 0074 "Logging")."""
        connection_logger.debug("a client begins with %s", options)

    def retry(self, report: ReportRetry) -> None:
        """Tell that an operation will be retried, or that its time will be up before it could be."""
        request = report.request
        retry_logger.debug(
            "%s of %s %s in %.3f s (%s, node %s, retries so far: %d)",
            request.operation,
            self._user_data(request.key),
            "is sent again" if report.dispatches else "fails unsent",
            report.delay,
            report.reason,
            report.node,
            request.retry_attempts,
            extra={**self._fields(report), "delay": report.delay, "dispatches": report.dispatches},
        )

    def refusal(self, report: ReportRefusal) -> None:
        """Tell that an operation fails and is not retried."""
        request = report.request
        retry_logger.info(
            "%s of %s is not retried and fails with %s (%s, node %s, retries so far: %d, %.3f s old)",
            request.operation,
            self._user_data(request.key),
            report.error,
            report.reason,
            report.node,
            request.retry_attempts,
            request.age,
            extra={**self._fields(report), "error": report.error},
        )

    def strategy_error(self, report: ReportStrategyError) -> None:
        """Tell that a strategy failed when it was told of a success; nobody else hears of it."""
        retry_logger.error("a retry strategy failed when it was told of a success", exc_info=report.error)

    def connection(self, report: ReportConnection) -> None:
        """Tell what happened to a connection."""
        connection_logger.log(_LEVELS[report.level], "%s: %s", report.node, report.text)

    def decoder_fault(self, report: ReportDecoderFault) -> None:
        """Log that a decoder failed on the bytes of a node, with the traceback."""
        connection_logger.error("%s: %s", report.node, report.fault, exc_info=report.fault)

    def timeout(self, error: TimeoutException) -> None:
        """Tell that an operation ran out of time, and all that is known of it."""
        log_timeout(error, [error.context], redact=self.redact)

    def telemetry(self, report: ReportTelemetry) -> None:
        """Tell what was gathered of operations in an interval."""
        logger, level = _TELEMETRY[report.kind]
        logger.log(level, "%s", report.text)

    def _fields(self, report: ReportRetry | ReportRefusal) -> dict[str, object]:
        request = report.request
        return {
            "operation": request.operation,
            "key": request.key if request.key is None else self._marked(request.key),
            "reason": str(report.reason),
            "node": report.node,
            "retry_attempts": request.retry_attempts,
            "age": request.age,
        }

    def _user_data(self, key: str | None) -> str:
        if key is None:
            return "None"
        # The representation, for a document id with a line break would forge a line of the log.
        quoted = repr(key)
        return self._marked(quoted[1:-1]) if self.redact else quoted

    def _marked(self, text: str) -> str:
        return _marked(text) if self.redact else text


def log_timeout(error: TimeoutException, contexts: Sequence[ErrorContext], *, redact: bool) -> None:
    """Tell once of a timeout, with the contexts of the operations that it ended.

    Args:
        redact: whether document ids and statements are marked.
    """
    told = [_redacted(context) if redact else context for context in contexts[:CONTEXTS_MAX]]
    text = ", ".join(context.to_json() for context in told)
    more = f" and {len(contexts) - CONTEXTS_MAX} more" if len(contexts) > CONTEXTS_MAX else ""
    timeout_logger.warning("%s: %s%s", type(error).__name__, text, more)


def _redacted(context: ErrorContext) -> ErrorContext:
    key, statement = context.key, context.statement
    return replace(
        context,
        key=None if key is None else _marked(key),
        statement=None if statement is None else _marked(statement),
    )


def _marked(text: str) -> str:
    return f"<ud>{text}</ud>"
