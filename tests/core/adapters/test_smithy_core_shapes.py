"""Adapter without smithy-core, on any Python: its protocols, tokens and errors.

Local copies of the package's error class and protocols replace the package.
"""

from __future__ import annotations

import copy
import importlib
import random
import sys
from collections.abc import Coroutine
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import pytest

from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, RetryError, RetryToken, StandardRetryStrategy
from triclinium_core.retry.smithy.asynchronous import AsyncShape

if TYPE_CHECKING:
    from triclinium_core.adapters.smithy_core import SmithyCoreRetryStrategy

MODULE = "triclinium_core.adapters.smithy_core"
T = TypeVar("T")

SAFE = ClassifiedError(OSError("gone"), ErrorInfo(is_retry_safe=True))
UNSAFE = ClassifiedError(OSError("gone"), ErrorInfo())


class TheirBackoffStrategy(Protocol):
    """Copy of the protocol ``RetryBackoffStrategy`` in ``smithy_core.interfaces.retries``."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the delay in seconds."""
        ...


class TheirToken(Protocol):
    """Copy of the package's token protocol, with the two properties that the pipeline reads."""

    @property
    def retry_count(self) -> int:
        """Number of attempts after the first."""
        ...

    @property
    def retry_delay(self) -> float:
        """Delay in seconds."""
        ...


@runtime_checkable
class TheirStrategy(Protocol):
    """Copy of the protocol in ``smithy_core.aio.interfaces.retries``, whose attributes resolvers check."""

    @property
    def backoff_strategy(self) -> TheirBackoffStrategy:
        """Backoff strategy that computes delays."""
        ...

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts."""
        ...

    async def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> TheirToken:
        """Return the first token."""
        ...

    async def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> TheirToken:
        """Return the next token."""
        ...

    async def record_success(self, *, token: RetryToken) -> None:
        """Record the success of the last attempt."""
        ...


class TheirRetryError(Exception):
    """Copy of the error class that the package's pipeline catches."""

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> type[SmithyCoreRetryStrategy]:
    """Return the adapter's class, imported with a local error class instead of the package."""
    package, exceptions = ModuleType("smithy_core"), ModuleType("smithy_core.exceptions")
    vars(exceptions)["RetryError"] = TheirRetryError
    monkeypatch.setitem(sys.modules, "smithy_core", package)
    monkeypatch.setitem(sys.modules, "smithy_core.exceptions", exceptions)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    found: type[SmithyCoreRetryStrategy] = importlib.import_module(MODULE).SmithyCoreRetryStrategy
    monkeypatch.delitem(sys.modules, MODULE)
    return found


def now(coroutine: Coroutine[object, None, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("the coroutine waits")


def standard(*, quota_capacity: int = 500) -> StandardRetryStrategy:
    """Return a strategy that permits three attempts."""
    return StandardRetryStrategy(rng=random.Random(7), quota_capacity=quota_capacity)


def test_adapter_has_the_protocols_shape(adapter: type[SmithyCoreRetryStrategy]) -> None:
    """The adapter satisfies the package's strategy protocol, both for type checkers and for isinstance."""
    strategy: TheirStrategy = adapter(standard())

    assert isinstance(strategy, TheirStrategy)
    assert 3 == strategy.max_attempts
    assert 0.0 == strategy.backoff_strategy.compute_next_backoff_delay(0)
    assert "SmithyCoreRetryStrategy(" in repr(strategy)


def test_a_copy_is_the_same_object(adapter: type[SmithyCoreRetryStrategy]) -> None:
    """A copied or deep-copied adapter is the same object, because clients copy their configuration for each call."""
    strategy = adapter(standard())

    assert strategy is copy.copy(strategy)
    assert strategy is copy.deepcopy([strategy])[0]


def test_tokens_are_the_strategys_own(adapter: type[SmithyCoreRetryStrategy]) -> None:
    """The adapter returns the strategy's tokens, with their counts and delays, and the quota pays for the retry."""
    bare = standard()
    strategy = adapter(bare)
    first = now(strategy.acquire_initial_retry_token(token_scope="orders"))
    second = now(strategy.refresh_retry_token_for_retry(token_to_renew=first, error=SAFE))
    paid = bare.available_quota("orders")
    now(strategy.record_success(token=second))

    assert [(0, 0.0), (1, 0.016)] == [(token.retry_count, round(token.retry_delay, 3)) for token in (first, second)]
    assert (486, 500, 500) == (paid, bare.available_quota("orders"), bare.available_quota())


@pytest.mark.parametrize(
    ("expected", "error", "capacity", "said"),
    [(None, UNSAFE, 500, "is not retried: its is_retry_safe is"), (0.016, SAFE, 0, "is not retried: .*quota")],
    ids=["unsafe", "quota"],
)
def test_refusal_is_a_smithy_core_error(
    adapter: type[SmithyCoreRetryStrategy], expected: float | None, error: Exception, capacity: int, said: str
) -> None:
    """RetryError has the strategy's reason, the attempt's error as cause, and the delay if the quota is empty."""
    strategy = adapter(standard(quota_capacity=capacity))
    token = now(strategy.acquire_initial_retry_token())
    with pytest.raises(TheirRetryError, match=said) as caught:
        now(strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error))

    assert error is caught.value.__cause__
    assert expected == (caught.value.retry_after and round(caught.value.retry_after, 3))


class Refusing(StandardRetryStrategy):
    """Strategy that issues no first token."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:  # type: ignore[override]
        """Raise RetryError."""
        raise RetryError("no retry is permitted", retry_after=2.0)


def test_a_request_without_a_token_is_sent_once(adapter: type[SmithyCoreRetryStrategy]) -> None:
    """If the strategy refuses a first token, the request gets a token for one attempt, and a retry is refused."""
    strategy = adapter(Refusing(rng=random.Random(7)))
    token = now(strategy.acquire_initial_retry_token())
    now(strategy.record_success(token=token))
    with pytest.raises(TheirRetryError, match="no retry is permitted") as caught:
        now(strategy.refresh_retry_token_for_retry(token_to_renew=token, error=SAFE))

    assert (0, 0.0, 2.0) == (token.retry_count, token.retry_delay, caught.value.retry_after)
    assert SAFE is caught.value.__cause__


def test_used_token_is_an_argument_error(adapter: type[SmithyCoreRetryStrategy]) -> None:
    """A token that was used before raises ArgumentError instead of RetryError."""
    strategy = adapter(standard())
    token = now(strategy.acquire_initial_retry_token())
    now(strategy.record_success(token=token))
    with pytest.raises(ArgumentError, match="has been used"):
        now(strategy.record_success(token=token))


class Bare:
    """Object that has the methods of a strategy and nothing else."""

    acquire_initial_retry_token = StandardRetryStrategy.acquire_initial_retry_token
    refresh_retry_token_for_retry = StandardRetryStrategy.refresh_retry_token_for_retry
    record_success = StandardRetryStrategy.record_success


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (None, "strategy=None must be .* it lacks acquire_initial_retry_token, "),
        (Bare(), "lacks max_attempts"),
        (StandardRetryStrategy, "is a class"),
        (AsyncShape(StandardRetryStrategy(rng=random.Random(7))), "AsyncShape"),
    ],
)
def test_invalid_strategy_is_refused(adapter: type[SmithyCoreRetryStrategy], strategy: object, said: str) -> None:
    """An invalid strategy raises ArgumentError when the adapter is made."""
    with pytest.raises(ArgumentError, match=said) as caught:
        adapter(strategy)  # type: ignore[arg-type]

    assert "strategy" == caught.value.parameter


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, importing the adapter raises ImportError, which names the extra to install."""
    monkeypatch.setitem(sys.modules, "smithy_core", None)
    monkeypatch.setitem(sys.modules, "smithy_core.exceptions", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(
        ImportError, match=r"on Python 3\.12 or newer, run: pip install 'triclinium-core\[smithy-core\]'"
    ):
        importlib.import_module(MODULE)
