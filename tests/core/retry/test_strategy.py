"""The strategies, reason by reason, and what a strategy may answer."""

from __future__ import annotations

import functools
import inspect
import math

import pytest

from tests.core.retry.request_cases import Awaits, Fixed, Refusal, Says, map_entry, retry_request
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.errors import CouchbaseException, InvalidArgumentException
from triclinium_core.retry.backoff import RESOLUTION, Random, controlled, exponential
from triclinium_core.retry.error_map import ErrorMapEntry
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.strategy import (
    TERMINAL_ERRORS,
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
    is_async,
)

R = RetryReason

TERMINAL_TABLE_OF_THE_RFC = {
    "AUTHENTICATION_ERROR": "AuthenticationFailureException",
    "TLS_ERROR": "CouchbaseException",
    "BUCKET_ACCESS_ERROR": "CouchbaseException",
    "SCOPE_NOT_FOUND": "ScopeNotFoundException",
    "COLLECTION_NOT_FOUND": "CollectionNotFoundException",
}
"""SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)"."""

RAISED = TERMINAL_TABLE_OF_THE_RFC | {"TLS_ERROR": "TlsException", "BUCKET_ACCESS_ERROR": "BucketAccessException"}
"""Decision C32: where the RFC has the base, a class that can be caught by name."""

UNSAFE_FOR_WRITES = {"UNKNOWN", "SOCKET_CLOSED_WHILE_IN_FLIGHT"}

each_reason = rows("reason", RetryReason)
each_kind = rows("idempotent", [True, False])


def constant(retry_attempts: int, rng: Random, /) -> float:
    """Return 70 ms and the attempts as seconds."""
    return 0.07 + retry_attempts


@each_reason
@each_kind
@rows(("retry_attempts", "delay"), [(0, 0.001), (3, 0.008), (9, 0.5), (50, 0.5)])
def test_best_effort(reason: RetryReason, idempotent: bool, retry_attempts: int, delay: float) -> None:
    """Whatever is idempotent, or safe for a write, is retried with the exponential backoff (RFC 0049 "Best Effort")."""
    request = retry_request(idempotent=idempotent, retry_attempts=retry_attempts)
    safe = idempotent or reason.name not in UNSAFE_FOR_WRITES
    expected = RetryAction(delay) if safe else RetryAction(None)

    assert expected == BestEffortRetryStrategy().retry_after(request, reason)


@pytest.mark.parametrize(
    "strategy", [BestEffortRetryStrategy(constant), FastFailOnTerminalErrorRetryStrategy(constant)]
)
def test_the_backoff_can_be_replaced(strategy: BestEffortRetryStrategy) -> None:
    """A calculator of the user's own replaces the delays, and nothing else."""
    assert RetryAction(2.07) == strategy.retry_after(retry_request(retry_attempts=2), R.KV_LOCKED)
    assert RetryAction(None) == strategy.retry_after(retry_request(retry_attempts=2), R.UNKNOWN)


def test_the_controlled_backoff_fits() -> None:
    """The shipped calculators have one shape."""
    strategy = BestEffortRetryStrategy(controlled)

    assert RetryAction(0.05) == strategy.retry_after(retry_request(retry_attempts=2), R.KV_LOCKED)


def test_jitter_comes_from_the_request() -> None:
    """The randomness of a jittered backoff is the request's own, so a run can be repeated."""
    strategy = BestEffortRetryStrategy(exponential(jitter=1.0))
    request = retry_request(retry_attempts=4, rng=Fixed(0.75))

    assert RetryAction(0.004) == strategy.retry_after(request, R.KV_LOCKED)


@pytest.mark.parametrize("backoff", [0.5, "exponential", (0.001, 0.5)])
@pytest.mark.parametrize("strategy", [BestEffortRetryStrategy, FastFailOnTerminalErrorRetryStrategy])
def test_a_backoff_that_cannot_be_called(strategy: type[BestEffortRetryStrategy], backoff: object) -> None:
    """The mistake is told where it was made, not at the first failure in production."""
    with pytest.raises(InvalidArgumentException) as caught:
        strategy(backoff)  # type: ignore[arg-type]

    assert f"backoff={backoff!r} must be callable as backoff(retry_attempts, rng)" == str(caught.value)
    assert "backoff" == caught.value.parameter


def test_the_terminal_errors_are_those_of_the_rfc() -> None:
    """Five reasons with their classes, and none besides."""
    assert TERMINAL_TABLE_OF_THE_RFC == {
        reason.name: error.rfc_class.__name__ for reason, error in TERMINAL_ERRORS.items()
    }


@each_reason
@each_kind
def test_fast_fail_on_terminal_error(reason: RetryReason, idempotent: bool) -> None:
    """Five reasons fail at once with their class; any other gets what best effort says."""
    request = retry_request(idempotent=idempotent, retry_attempts=3)
    named = RAISED.get(reason.name)
    expected = BestEffortRetryStrategy().retry_after(request, reason)
    if named is not None:
        expected = RetryAction.no_retry(getattr(errors, named))

    assert expected == FastFailOnTerminalErrorRetryStrategy().retry_after(request, reason)


def test_the_default_is_documented_as_volatile() -> None:
    """The RFC asks to say so, and to tell users to copy the class."""
    words = inspect.getdoc(FastFailOnTerminalErrorRetryStrategy) or ""

    assert "Volatile" in words
    assert "Copy" in words


@each_reason
@each_kind
def test_fail_fast(reason: RetryReason, idempotent: bool) -> None:
    """It retries nothing; what is always retried never reaches it."""
    assert RetryAction(None) == FailFastRetryStrategy().retry_after(retry_request(idempotent=idempotent), reason)


def test_fail_fast_is_documented_as_internal() -> None:
    """The RFC asks that such a strategy be marked."""
    assert (inspect.getdoc(FailFastRetryStrategy) or "").startswith("Internal")


LINEAR = map_entry(
    "auto-retry", "temp", retry={"strategy": "linear", "interval": 10, "after": 5, "max-duration": 1500, "ceil": 200}
)
ENDLESS = map_entry("auto-retry", retry={"strategy": "exponential", "interval": 2, "after": 10, "max-duration": 0})
WITHOUT_SCHEDULE = map_entry("auto-retry", "temp")

ASKED = R.KV_ERROR_MAP_RETRY_INDICATED


@pytest.mark.parametrize(
    ("attempts_this_status", "delay"), [(0, 0.005), (1, 0.01), (2, 0.02), (19, 0.19), (20, 0.2), (21, 0.2)]
)
def test_error_map_follows_the_schedule(attempts_this_status: int, delay: float) -> None:
    """The delay is the schedule's, by the retries since the status last changed, within ``max-duration``."""
    request = retry_request(
        retry_attempts=77, attempts_this_status=attempts_this_status, since_first_failure=0.5, entry=LINEAR
    )

    assert RetryAction(delay, within=1.0) == ErrorMapRetryStrategy().retry_after(request, ASKED)


@pytest.mark.parametrize(
    ("since_first_failure", "expected"),
    [
        (0.0, RetryAction(0.01, within=1.5)),
        (1.499, RetryAction(0.01, within=1.5 - 1.499)),
        (1.5 - 2 * RESOLUTION, RetryAction(0.01, within=1.5 - (1.5 - 2 * RESOLUTION))),
        (1.5 - RESOLUTION / 2, RetryAction(None)),
        (1.5, RetryAction(None)),
        (1.501, RetryAction(None)),
        (99.0, RetryAction(None)),
    ],
)
def test_error_map_ends_with_max_duration(since_first_failure: float, expected: RetryAction) -> None:
    """Once ``max-duration`` has passed since the first failure, nothing is retried (decision C15)."""
    request = retry_request(retry_attempts=1, since_first_failure=since_first_failure, entry=LINEAR)

    assert expected == ErrorMapRetryStrategy().retry_after(request, ASKED)


def test_error_map_without_max_duration() -> None:
    """A ``max-duration`` of 0 leaves the end to the request's own deadline."""
    request = retry_request(retry_attempts=3, since_first_failure=99.0, entry=ENDLESS)

    assert RetryAction(0.008) == ErrorMapRetryStrategy().retry_after(request, ASKED)


@pytest.mark.parametrize("entry", [None, WITHOUT_SCHEDULE])
def test_error_map_without_a_schedule(entry: ErrorMapEntry | None) -> None:
    """Where the map has no usable schedule, the default strategy decides (decision C16)."""
    request = retry_request(retry_attempts=3, entry=entry)

    assert RetryAction(0.008) == ErrorMapRetryStrategy().retry_after(request, ASKED)


@rows("reason", [reason for reason in RetryReason if reason is not ASKED])
@each_kind
def test_error_map_leaves_other_reasons(reason: RetryReason, idempotent: bool) -> None:
    """For every other reason the default strategy decides, even where the entry has a schedule (decision C15)."""
    request = retry_request(idempotent=idempotent, retry_attempts=3, entry=LINEAR)
    expected = FastFailOnTerminalErrorRetryStrategy().retry_after(request, reason)

    assert expected == ErrorMapRetryStrategy().retry_after(request, reason)


def test_error_map_asks_the_strategy_it_wraps() -> None:
    """Another strategy may be given for everything else."""
    otherwise = Says(RetryAction.no_retry(Refusal))
    request = retry_request(entry=LINEAR)

    assert RetryAction.no_retry(Refusal) == ErrorMapRetryStrategy(otherwise).retry_after(request, R.KV_LOCKED)
    assert [(request, R.KV_LOCKED)] == otherwise.asked
    assert RetryAction(0.005, within=1.5) == ErrorMapRetryStrategy(otherwise).retry_after(request, ASKED)


@pytest.mark.parametrize(
    "strategy", [BestEffortRetryStrategy(), FastFailOnTerminalErrorRetryStrategy(), FailFastRetryStrategy()]
)
def test_shipped_strategies_ignore_the_schedule(strategy: BestEffortRetryStrategy | FailFastRetryStrategy) -> None:
    """``interval``, ``ceil`` and ``max-duration`` must not be used by them (RFC 0049 "KV Error Map Handling")."""
    plain = strategy.retry_after(retry_request(retry_attempts=3, since_first_failure=99.0), ASKED)
    mapped = strategy.retry_after(retry_request(retry_attempts=3, since_first_failure=99.0, entry=LINEAR), ASKED)

    assert plain == mapped


@rows(
    "strategy",
    [
        BestEffortRetryStrategy(),
        FastFailOnTerminalErrorRetryStrategy(),
        FailFastRetryStrategy(),
        ErrorMapRetryStrategy(),
    ],
)
@each_reason
def test_no_shipped_strategy_repeats_an_unsafe_write(strategy: AnyRetryStrategy, reason: RetryReason) -> None:
    """The strategies know the rule themselves, before the orchestrator enforces it."""
    assert not is_async(strategy)
    answer = strategy.retry_after(retry_request(entry=WITHOUT_SCHEDULE), reason)

    assert isinstance(answer, RetryAction)
    assert answer.delay is None or reason.allows_non_idempotent_retry


def test_after() -> None:
    """A retry has a delay and no error."""
    assert RetryAction(0.25, None, None) == RetryAction.after(0.25)
    assert RetryAction(0, None, 2.0) == RetryAction.after(0, within=2.0)


def test_no_retry() -> None:
    """A refusal has no delay, and an error where one is asked for."""
    assert RetryAction(None, None, None) == RetryAction.no_retry()
    assert RetryAction(None, Refusal, None) == RetryAction.no_retry(Refusal)
    assert RetryAction(None, CouchbaseException) == RetryAction.no_retry(CouchbaseException)


NONSENSE = [-0.001, -math.inf, math.nan, math.inf, True, "1", [], 1j]
"""None of them a length of time."""


def test_a_retry_after_nothing() -> None:
    """A calculator that forgot its return is not taken for a strategy that refuses."""
    with pytest.raises(InvalidArgumentException) as caught:
        RetryAction.after(None)  # type: ignore[arg-type]

    assert "delay" == caught.value.parameter


@pytest.mark.parametrize("value", [ValueError, Exception, object, "CouchbaseException", CouchbaseException("built"), 1])
def test_nonsensical_errors(value: object) -> None:
    """The caller gets an exception of ours, or of the application's own below ours."""
    for build in (RetryAction.no_retry, functools.partial(RetryAction, None)):
        with pytest.raises(InvalidArgumentException) as caught:
            build(value)  # type: ignore[arg-type]

        assert f"error={value!r} must be CouchbaseException or a subclass of it" == str(caught.value)
        assert "error" == caught.value.parameter


class Inherits(BestEffortRetryStrategy):
    """A strategy as the RFC's example writes one: looks at the context, and leaves the rest to best effort."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return no retry for robots."""
        if request.client_context.get("isRobotRequest"):
            return RetryAction.no_retry()
        return super().retry_after(request, reason)


def test_a_strategy_of_ones_own() -> None:
    """RFC 0049 "Accessible Context in the RetryStrategy"."""
    human = retry_request()
    robot = RetryRequest(
        service=human.service,
        operation="upsert",
        idempotent=False,
        rng=Fixed(),
        remaining=2.5,
        client_context={"isRobotRequest": True},
    )

    assert RetryAction(0.001) == Inherits().retry_after(human, R.KV_LOCKED)
    assert RetryAction(None) == Inherits().retry_after(robot, R.KV_LOCKED)


class Partial:
    """A strategy whose method is an ``async def`` with an argument filled in."""

    def __init__(self) -> None:
        self.retry_after = functools.partial(self._retry_after, None)

    async def _retry_after(self, nothing: None, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        return RetryAction.no_retry()


def test_is_async() -> None:
    """An ``async def`` is asynchronous, inherited or wrapped; a plain method is not, whatever it returns."""

    class Inherited(Awaits):
        pass

    assert is_async(Awaits())
    assert is_async(Inherited())
    assert is_async(Partial())
    assert not is_async(Says(None))
    assert not is_async(Inherits())
    assert not is_async(FailFastRetryStrategy())


class _Asks:
    async def retry_after(self, request: RetryRequest, reason: RetryReason) -> RetryAction:
        return RetryAction.no_retry()


@pytest.mark.parametrize("otherwise", [42, object(), _Asks()])
def test_error_map_strategy_wraps_a_strategy_that_answers_at_once(otherwise: object) -> None:
    """What cannot answer for the other reasons is refused when the strategy is made, not at the first failure."""
    with pytest.raises(InvalidArgumentException) as caught:
        ErrorMapRetryStrategy(otherwise)  # type: ignore[arg-type]

    assert "otherwise" == caught.value.parameter
