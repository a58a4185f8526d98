"""Classification of errors and results by the caller's ``on`` and ``retry_result``."""

from __future__ import annotations

import functools

import pytest

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.calls import RETRY_SAFE, RetryOn, check_info, retryable
from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, classify


class Speaking(Exception):
    """Error with retry attributes."""

    def __init__(self, *, is_retry_safe: bool | None = None, retry_after: float | None = None) -> None:
        super().__init__("speaking")
        self.is_retry_safe = is_retry_safe
        self.retry_after = retry_after
        self.is_throttling_error = True
        self.is_timeout_error = False


class Group(ExceptionGroup[Exception]):
    """Subclass of ExceptionGroup."""


def yes(_: object) -> bool:
    """Return True."""
    return True


def no(_: object) -> bool:
    """Return False."""
    return False


def later(_: object) -> ErrorInfo:
    """Return an ErrorInfo with a delay."""
    return ErrorInfo(is_retry_safe=True, retry_after=3.0)


GROUP = ExceptionGroup("several", [OSError()])


@rows(
    ("on", "error", "is_retry_safe"),
    [
        (None, OSError(), None),
        (None, Speaking(is_retry_safe=True), True),
        (OSError, OSError(), True),
        (OSError, ConnectionError(), True),
        (OSError, ValueError(), False),
        ((ValueError, OSError), OSError(), True),
        ((ValueError, OSError), KeyError(), False),
        (Speaking, Speaking(), True),
        (Speaking, Speaking(is_retry_safe=False), False),
        (OSError, Speaking(is_retry_safe=True), False),
        (yes, OSError(), True),
        (yes, Speaking(is_retry_safe=False), False),
        (no, Speaking(is_retry_safe=True), False),
        (lambda _: RETRY_SAFE, Speaking(is_retry_safe=False), True),
        (Exception, GROUP, False),
        ((Exception, OSError), GROUP, False),
        (ExceptionGroup, GROUP, True),
        ((OSError, ExceptionGroup), GROUP, True),
        (Group, GROUP, False),
        ((Exception, Group), GROUP, False),
        (yes, GROUP, True),
    ],
)
def test_retry_safe_errors(on: RetryOn, error: Exception, is_retry_safe: bool | None) -> None:
    """``on`` makes an error safe unless the error denies it; an ErrorInfo decides alone; only group types match groups."""
    assert is_retry_safe == retryable.info_of_error(on, error).is_retry_safe


def test_the_other_attributes_of_an_error() -> None:
    """If the type matches, the error's other attributes are kept; an ErrorInfo from the function replaces them."""
    said = Speaking(retry_after=2.0)

    assert ErrorInfo(is_retry_safe=True, retry_after=2.0, is_throttling_error=True) == retryable.info_of_error(
        Speaking, said
    )
    assert ErrorInfo(is_retry_safe=True, retry_after=3.0) == retryable.info_of_error(later, said)


def test_results() -> None:
    """A result is accepted for False, retried for True, and retried with the details of a returned ErrorInfo."""
    assert retryable.info_of_result(no, 1) is None
    assert RETRY_SAFE == retryable.info_of_result(yes, 1)
    assert later(1) == retryable.info_of_result(later, 1)


@rows("answer", [None, 1, "yes", 0.5, RuntimeError()])
def test_invalid_results_of_functions(answer: object) -> None:
    """If a function returns anything but True, False or an ErrorInfo, classification raises an error."""
    with refusal_of("on", "^on=.*True, False"):
        retryable.info_of_error(lambda _: answer, OSError())  # type: ignore[arg-type,return-value]
    with pytest.raises(ArgumentError, match="^retry_result=.*True, False"):
        retryable.info_of_result(lambda _: answer, 1)  # type: ignore[arg-type,return-value]


@rows("retry_after", [float("nan"), -1.0, "soon"])
def test_an_invalid_retry_after(retry_after: object) -> None:
    """If the caller's ErrorInfo has an invalid ``retry_after``, classification raises an error."""
    info = ErrorInfo(is_retry_safe=True, retry_after=retry_after)  # type: ignore[arg-type]

    with pytest.raises(ArgumentError, match="retry_after="):
        retryable.info_of_error(lambda _: info, OSError())
    with pytest.raises(ArgumentError, match="must be an ErrorInfo"):
        check_info("info", True)  # type: ignore[arg-type]


async def slow(_: object) -> bool:
    """Return True, asynchronously."""
    return True


class Slow:
    """Object with an asynchronous ``__call__``."""

    async def __call__(self, _: object) -> bool:
        return True


@rows("on", [None, OSError, (OSError, ValueError), yes, functools.partial(yes), ExceptionGroup])
def test_valid_values_of_on(on: object) -> None:
    """``on`` may be None, exception types or a function."""
    retryable.check_retry_on(on)


@rows(
    ("on", "hint"),
    [
        (BaseException, "Exception"),
        (KeyboardInterrupt, "Exception"),
        (BaseExceptionGroup, "Exception"),
        (int, "Exception"),
        ((OSError, GeneratorExit), "GeneratorExit"),
        ((OSError, yes), "must be an exception type"),
        ((OSError, (ValueError,)), "must be an exception type"),
        ([OSError], "must be an exception type"),
        (OSError(), "must be an exception type"),
        ((), r"on=\(\)"),
        (slow, "on=<function slow"),
        (Slow(), "on=.*Slow object"),
        (ExceptionGroup[OSError], r"ExceptionGroup\[OSError\]"),
        ((ValueError, ExceptionGroup[OSError]), r"ExceptionGroup\[OSError\]"),
    ],
)
def test_invalid_values_of_on(on: object, hint: str) -> None:
    """An invalid ``on`` is refused with a hint."""
    with refusal_of("on", hint):
        retryable.check_retry_on(on)


@rows("retry_result", [True, slow])
def test_invalid_values_of_retry_result(retry_result: object) -> None:
    """``retry_result`` must be None or a synchronous function."""
    retryable.check_retry_result(None)
    retryable.check_retry_result(yes)

    with refusal_of("retry_result"):
        retryable.check_retry_result(retry_result)


def test_strategies_get_the_error_or_a_classified_one() -> None:
    """The strategy gets an error whose attributes give the info unchanged, and any other as the cause of a new one."""
    complete, plain = Speaking(is_retry_safe=True), OSError("plain")
    of_the_page, less, late = (Speaking(is_retry_safe=True) for _ in range(3))
    del of_the_page.is_timeout_error, less.is_throttling_error
    late_info = ErrorInfo(is_retry_safe=True, is_throttling_error=True, is_timeout_error=True)
    info = retryable.info_of_error(OSError, plain)
    shown = retryable.for_strategy(plain, info)

    assert complete is retryable.for_strategy(complete, classify(complete))
    assert of_the_page is retryable.for_strategy(of_the_page, classify(of_the_page))
    assert isinstance(retryable.for_strategy(late, late_info), ClassifiedError)
    assert isinstance(retryable.for_strategy(less, classify(less)), ClassifiedError)
    assert isinstance(retryable.for_strategy(None, RETRY_SAFE), ClassifiedError)
    assert (ClassifiedError, plain, info, "plain") == (type(shown), shown.__cause__, classify(shown), str(shown))


@rows("broken", ["is_retry_safe", "is_throttling_error"])
def test_an_attribute_that_raises(broken: str) -> None:
    """If reading an attribute raises an error, its default is used, and the strategy gets a classified error."""

    class Broken(Exception):
        is_retry_safe = True
        retry_after = None
        is_timeout_error = False

        def __getattribute__(self, name: str) -> object:
            if name == broken:
                raise LookupError(name)
            return super().__getattribute__(name)

    error = Broken()
    info = retryable.info_of_error(Broken, error)
    shown = retryable.for_strategy(error, info)

    assert ErrorInfo(is_retry_safe=True) == info
    assert (ClassifiedError, error, True) == (type(shown), shown.__cause__, classify(shown).is_retry_safe)
