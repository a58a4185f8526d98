"""Rules for HTTP requests that may be sent again, and their delays: tables and pure functions.

What they return is what a strategy reads off an error; the strategy decides.

Source: RFC 9110, sections 9.2.2 "Idempotent Methods", 10.2.3 "Retry-After", 15 "Status Codes"; RFC 6585, section 4;
RFC 8470, section 5.2; rows R of the project's decisions.
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
"""Methods whose requests do no more when they are sent twice. Source: RFC 9110, section 9.2.2."""

_METHOD_SIGNS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")
"""What a method is made of: RFC 9110, section 5.6.2, but for small letters, which are a mistake here."""

RETRY_AFTER_MOST = 1e9
"""Seconds, some thirty years, that stand for whatever is longer: no digits of a peer make a sum of instants infinite."""


class StatusRule(NamedTuple):
    """Why a status is retried, and as what."""

    reason: str
    """What it says of the server."""
    is_throttling: bool = False
    """Whether it asks for fewer requests: the strategy waits longer then, and its quota pays less."""
    is_timeout: bool = False
    """Whether it says that time ran out."""


# fmt: off
RETRIED_STATUSES: Mapping[int, StatusRule] = table_of((
    (408, StatusRule("the server gave up waiting for the request", is_timeout=True)),
    (425, StatusRule("the server does not act on data that came before the handshake was over")),
    (429, StatusRule("too many requests of this client", is_throttling=True)),
    (502, StatusRule("a gateway got no valid answer from the server behind it")),
    (503, StatusRule("the server is overloaded or in maintenance, for a while")),
    (504, StatusRule("a gateway got no answer in time from the server behind it", is_timeout=True)),
))
"""Statuses that pass by themselves. 500 is not one of them: the server does not know what went wrong, so it may well go wrong
again, and what it has done by then nobody knows."""
# fmt: on

_OTHER_STATUS = StatusRule("none of these, or chosen by the user")


@dataclass(frozen=True, slots=True)
class HttpRequestFacts:
    """What the rules see of a request."""

    method: str
    """As it is sent; methods are case-sensitive."""
    has_idempotency_key: bool = False
    """Whether it carries an ``Idempotency-Key`` header."""
    is_replayable: bool = True
    """Whether its body can be sent once more, as bytes can and a generator cannot."""


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """What the rules see of a request that was not answered."""

    is_unsent: bool = False
    """Whether it is certain that nothing of it was sent."""
    is_timeout: bool = False
    """Whether it failed because time ran out."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class HttpRetryRules:
    """Which requests a :py:class:`triclinium.adapters.httpx.RetryTransport` may send again.

    Args:
        methods: those of requests that may be sent again after they may have arrived.
        statuses: answers that count as failures which pass.
        idempotency_key: whether a request with an ``Idempotency-Key`` header may be sent again like an idempotent one,
            whatever its method. The service must honour that header; many do not.
        retry_after_max: an answer that asks for more in its ``Retry-After`` is not retried. None: whatever it asks for is
            waited for, as far as the deadline permits.

    Raises:
        ArgumentError: a value makes no sense.
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
                    f"methods holds {shown(method)}; a method is written in capitals, such as 'GET'",
                    parameter="methods",
                )
        for status in _members("statuses", statuses, "a set of statuses such as {429, 503}"):
            if not (isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599):
                raise ArgumentError(
                    f"statuses holds {shown(status)}; only errors are retried, 400 to 599", parameter="statuses"
                )
        most = None if retry_after_max is None else check_duration(retry_after_max, "retry_after_max")
        object.__setattr__(self, "methods", methods)
        object.__setattr__(self, "statuses", statuses)
        object.__setattr__(self, "idempotency_key", check_flag(idempotency_key, "idempotency_key"))
        object.__setattr__(self, "retry_after_max", most)

    def is_success(self, status: int) -> bool:
        """Tell whether an answer with this status is welcome, and gives a quota back what the request took.

        A service that answers 404 is well; one that answers 500 is not, although nothing is retried.
        """
        return status < 500 and status not in self.statuses

    def judge_answer(
        self, request: HttpRequestFacts, status: int, retry_after: str | None, wall_seconds: float
    ) -> ErrorInfo:
        """Return what a strategy reads off an answer that is no success.

        Args:
            retry_after: the value of the answer's header of that name; None: there is no such header.
            wall_seconds: the wall clock, in seconds since 1970-01-01 UTC.
        """
        rule = RETRIED_STATUSES.get(status, _OTHER_STATUS)
        delay = parse_retry_after(retry_after, wall_seconds)
        too_long = delay is not None and self.retry_after_max is not None and delay > self.retry_after_max
        return ErrorInfo(
            is_retry_safe=status in self.statuses and self._may_be_repeated(request) and not too_long,
            retry_after=delay,
            is_throttling_error=rule.is_throttling,
            is_timeout_error=rule.is_timeout,
            # RFC 9110, section 15: 4xx, "the client seems to have erred".
            fault="client" if status < 500 else "server",
        )

    def judge_failure(self, request: HttpRequestFacts, failure: HttpFailure) -> ErrorInfo:
        """Return what a strategy reads off a request that was not answered."""
        return ErrorInfo(
            # Nothing of the request has left, its body included: it is still the first time.
            is_retry_safe=failure.is_unsent or self._may_be_repeated(request),
            is_timeout_error=failure.is_timeout,
        )

    def _may_be_repeated(self, request: HttpRequestFacts) -> bool:
        idempotent = request.method in self.methods or (self.idempotency_key and request.has_idempotency_key)
        return idempotent and request.is_replayable


def parse_retry_after(text: str | None, wall_seconds: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for; None where there is none, or it is nonsense.

    A date that has passed means now. What is longer than ``RETRY_AFTER_MOST`` counts as that.

    Args:
        text: digits, or a date in any of the forms of RFC 9110.
        wall_seconds: the wall clock, in seconds since 1970-01-01 UTC.
    """
    if text is None:
        return None
    text = text.strip(" \t")
    if text.isascii() and text.isdigit():
        return min(float(text), RETRY_AFTER_MOST)
    try:
        date = parsedate_to_datetime(text)
        # RFC 9110, section 5.6.7: a date is in UTC, whether or not it says so.
        instant = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(instant - wall_seconds, 0.0), RETRY_AFTER_MOST)


def _members(name: str, value: object, wanted: str) -> AbstractSet[object]:
    if not isinstance(value, AbstractSet):
        raise ArgumentError(f"{name}={shown(value)} must be {wanted}", parameter=name)
    return value
