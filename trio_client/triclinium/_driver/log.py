"""What the machine reports, for the standard library's logging.

``triclinium.retry`` tells retries at DEBUG and refusals at INFO (SDK-RFC 0049 "Logging"). ``triclinium.connection`` tells what
happens to connections: a loss at WARNING, the failed attempts that follow it at DEBUG, all else at INFO.

The numbers and names in the sentences of ``triclinium.retry`` are attributes of the record too, for handlers that keep them
as data: ``operation``, ``key``, ``reason``, ``node``, ``retry_attempts`` and ``age`` in seconds; of a retry also ``delay`` in seconds
and ``dispatches``, of a refusal ``error``.
"""

from __future__ import annotations

import logging

from triclinium_core.client.actions import ReportConnection, ReportLevel, ReportRefusal, ReportRetry

retry_logger = logging.getLogger("triclinium.retry")
connection_logger = logging.getLogger("triclinium.connection")

# Where a program has set up no log, Python would print the warnings on standard error.
logging.getLogger("triclinium").addHandler(logging.NullHandler())

_LEVELS = {
    ReportLevel.DEBUG: logging.DEBUG,
    ReportLevel.INFO: logging.INFO,
    ReportLevel.WARNING: logging.WARNING,
}


class Log:
    """Writes reports to the log.

    Args:
        redact: whether document ids are marked as ``<ud>…</ud>``, which Couchbase's tools know how to remove.
    """

    def __init__(self, *, redact: bool = False) -> None:
        self._redact = redact

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

    def connection(self, report: ReportConnection) -> None:
        """Tell what happened to a connection."""
        connection_logger.log(_LEVELS[report.level], "%s: %s", report.node, report.text)

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
        return self._marked(quoted[1:-1]) if self._redact else quoted

    def _marked(self, text: str) -> str:
        return f"<ud>{text}</ud>" if self._redact else text
