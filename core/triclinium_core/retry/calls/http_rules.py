"""Rules for retries of HTTP requests: tables, and pure functions that return retry information.

The strategy of the request reads the retry information and decides.

Source: RFC 9110, sections 9.2.2 "Idempotent Methods", 10.2.3 "Retry-After", 15 "Status Codes"; RFC 6585, section 4;
RFC 8470, section 5.2; decisions R14 to R17.
"""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Duration
from triclinium_core.retry.checks import check_duration, check_flag
from triclinium_core.retry.smithy import ErrorInfo
from triclinium_core.retry.tables import table_of
from triclinium_core.shown import shown

IDEMPOTENT_METHODS: frozenset[str] = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Idempotent methods: a request with such a method has the same effect whether it is sent once or twice (RFC 9110,
section 9.2.2)."""

_METHOD_SIGNS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")
"""Characters that a method may have: those of RFC 9110, section 5.6.2, except lower-case letters. A method in lower
case is probably a mistake, because methods are case-sensitive."""

RETRY_AFTER_MOST = 1e9
"""Maximum delay in seconds, about thirty years. It keeps sums of times finite, even if a server sends a huge number."""


class StatusRule(NamedTuple):
    """Meaning and classification of a status after which a request may be retried."""

    reason: str
    """Meaning of the status."""
    is_throttling: bool = False
    """Whether the server requests a lower rate. A strategy may then use a longer delay and another quota cost."""
    is_timeout: bool = False
    """Whether the server reports a timeout."""


# fmt: off
RETRIED_STATUSES: Mapping[int, StatusRule] = table_of((
    (408, StatusRule("the server timed out waiting for the request", is_timeout=True)),
    (425, StatusRule("the server does not process data sent before the TLS handshake was complete")),
    (429, StatusRule("too many requests from this client", is_throttling=True)),
    (502, StatusRule("a gateway received no valid response from the server behind it")),
    (503, StatusRule("the server is temporarily overloaded or in maintenance")),
    (504, StatusRule("a gateway received no response in time from the server behind it", is_timeout=True)),
))
"""Statuses of transient failures. The status 500 is not one of them: it reports an unexpected condition, so a retry is
likely to fail again, and the request may have changed data."""
# fmt: on

_OTHER_STATUS = StatusRule("a status that is not in the table")


@dataclass(frozen=True, slots=True)
class HttpRequestFacts:
    """Facts about a request that the rules use."""

    method: str
    """Method of the request, unchanged, because methods are case-sensitive."""
    has_idempotency_key: bool = False
    """Whether the request has an ``Idempotency-Key`` header."""
    is_replayable: bool = True
    """Whether the body can be sent again: True for bytes, False for a generator."""


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """Facts that the rules use about a request without a response."""

    is_unsent: bool = False
    """Whether it is certain that no part of the request was sent."""
    is_timeout: bool = False
    """Whether the failure is a timeout."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class HttpRetryRules:
    """Rules for requests that a :py:class:`triclinium.adapters.httpx.RetryTransport` may send again.

    Args:
        methods: methods of requests that may be sent again even if they may have reached the server.
        statuses: statuses of responses that count as transient failures.
        idempotency_key: whether a request with an ``Idempotency-Key`` header counts as idempotent, whatever its method.
            The service must honour this header; many services do not. Default: False.
        retry_after_max: maximum ``Retry-After`` of a response after which the request is retried. Default: None, for no
            maximum other than the deadline.

    Raises:
        ArgumentError: an argument is invalid.
    """

    methods: AbstractSet[str] = IDEMPOTENT_METHODS
    statuses: AbstractSet[int] = frozenset(RETRIED_STATUSES)
    idempotency_key: bool = False
    retry_after_max: float | None = None

    def __init__(
        self,
        *,
        methods: AbstractSet[str] = IDEMPOTENT_METHODS,
        statuses: AbstractSet[int] = frozenset(RETRIED_STATUSES),
        idempotency_key: bool = False,
        retry_after_max: Duration | None = None,
    ) -> None:
        for method in _members("methods", methods, 'a set of methods such as {"GET", "HEAD"}'):
            if not (isinstance(method, str) and method.isupper() and _METHOD_SIGNS.issuperset(method)):
                raise ArgumentError(
                    f"methods contains {shown(method)}; each must be the name of a method in capitals, such as 'GET'",
                    parameter="methods",
                )
        for status in _members("statuses", statuses, "a set of statuses such as {429, 503}"):
            if not (isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599):
                raise ArgumentError(
                    f"statuses contains {shown(status)}; each must be an error status, from 400 to 599",
                    parameter="statuses",
                )
        most = None if retry_after_max is None else check_duration(retry_after_max, "retry_after_max")
        object.__setattr__(self, "methods", methods)
        object.__setattr__(self, "statuses", statuses)
        object.__setattr__(self, "idempotency_key", check_flag(idempotency_key, "idempotency_key"))
        object.__setattr__(self, "retry_after_max", most)

    def is_success(self, status: int) -> bool:
        """Return whether a response with this status counts as a success, after which the quota regains units.

        Even 404 is a success, because the service works, unless ``statuses`` contains it. 500 is never a success,
        although by default the request is not retried.
        """
        return status < 500 and status not in self.statuses

    def judge_answer(
        self, request: HttpRequestFacts, status: int, retry_after: str | None, wall_seconds: float
    ) -> ErrorInfo:
        """Return the retry information for an unsuccessful response.

        Args:
            retry_after: value of the ``Retry-After`` header; None without this header.
            wall_seconds: wall-clock time, in seconds since 1970-01-01 UTC.
        """
        rule = RETRIED_STATUSES.get(status, _OTHER_STATUS)
        delay = parse_retry_after(retry_after, wall_seconds)
        too_long = delay is not None and self.retry_after_max is not None and delay > self.retry_after_max
        return ErrorInfo(
            is_retry_safe=status in self.statuses and self._may_be_repeated(request) and not too_long,
            retry_after=delay,
            is_throttling_error=rule.is_throttling,
            is_timeout_error=rule.is_timeout,
            # RFC 9110, section 15.5: 4xx, "the client seems to have erred".
            fault="client" if status < 500 else "server",
        )

    def judge_failure(self, request: HttpRequestFacts, failure: HttpFailure) -> ErrorInfo:
        """Return the retry information for a request without a response."""
        return ErrorInfo(
            # If no part of the request was sent, the server has not received it, and its body is still unread.
            is_retry_safe=failure.is_unsent or self._may_be_repeated(request),
            is_timeout_error=failure.is_timeout,
        )

    def _may_be_repeated(self, request: HttpRequestFacts) -> bool:
        idempotent = request.method in self.methods or (self.idempotency_key and request.has_idempotency_key)
        return idempotent and request.is_replayable


def parse_retry_after(text: str | None, wall_seconds: float) -> float | None:
    """Return the delay that a ``Retry-After`` header specifies, in seconds; None if the header is missing or invalid.

    Return 0 for a date in the past, and at most ``RETRY_AFTER_MOST``.

    Args:
        text: value of the header: digits, or a date in any of the forms of RFC 9110; None without this header.
        wall_seconds: wall-clock time, in seconds since 1970-01-01 UTC.
    """
    if text is None:
        return None
    text = text.strip(" \t")
    if text.isascii() and text.isdigit():
        return min(float(text), RETRY_AFTER_MOST)
    try:
        date = parsedate_to_datetime(text)
        # RFC 9110, section 5.6.7: a date without a time zone is in UTC.
        instant = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(instant - wall_seconds, 0.0), RETRY_AFTER_MOST)


def _members(name: str, value: object, wanted: str) -> AbstractSet[object]:
    if not isinstance(value, AbstractSet):
        raise ArgumentError(f"{name}={shown(value)} must be {wanted}", parameter=name)
    return value
