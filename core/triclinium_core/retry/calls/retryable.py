"""Rules by which a caller selects the errors and results of a call that are retried."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_origin

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import is_seconds
from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, classify
from triclinium_core.shown import shown

T = TypeVar("T")

RetryOn = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool | ErrorInfo] | None
"""Rule that selects the errors to retry: one exception type, a tuple of types, or a function of the error. None selects
the errors whose own ``is_retry_safe`` is True."""

RETRY_SAFE = ErrorInfo(is_retry_safe=True)
"""Retry information that applies if a caller's rule returns True."""

_CODE_IS_COROUTINE = 0x80
"""Flag that the code object of an ``async def`` has."""

_ATTRIBUTES = ("is_retry_safe", "retry_after", "is_throttling_error")
"""Attributes of ``ErrorRetryInfo``, all of which a strategy may read."""


def check_retry_on(on: object) -> None:
    """Raise ArgumentError unless ``on`` is an exception type, a non-empty tuple of them, a plain function or None."""
    if on is None or (on.__class__ is type and issubclass(on, Exception)):
        return
    for kind in on if isinstance(on, tuple) else (on,):
        if isinstance(kind, type):
            if not issubclass(kind, Exception):
                raise _wrong_on(kind, "only subclasses of Exception are retried, never a cancellation or an exit")
        elif get_origin(kind) is not None:
            raise _wrong_on(
                kind,
                "an error does not carry the parameters of its type; pass the plain type or a function of the error",
            )
        elif isinstance(on, tuple) or not callable(kind) or isinstance(kind, BaseException):
            raise _wrong_on(
                kind, "on must be an exception type, a tuple of only exception types, a function of the error, or None"
            )
    if on == ():
        raise _wrong_on(on, "an empty tuple matches no error; omit it to use the retry information of each error")
    check_is_sync("on", on)


def check_is_sync(parameter: str, function: object) -> None:
    """Raise ArgumentError if ``function`` is an ``async def``."""
    # To call an object that is not a function, Python calls the ``__call__`` of its class.
    for called in (function, getattr(type(function), "__call__", None)):  # noqa: B004  # the method itself is examined below
        if getattr(getattr(called, "__code__", None), "co_flags", 0) & _CODE_IS_COROUTINE:
            raise ArgumentError(
                f"{parameter}={shown(function)} must return its result without awaiting: pass a plain function",
                parameter=parameter,
            )


def check_retry_result(retry_result: object) -> None:
    """Raise ArgumentError unless ``retry_result`` is a plain function or None."""
    if retry_result is None:
        return
    if not callable(retry_result):
        raise ArgumentError(
            f"retry_result={shown(retry_result)} must be a function of the result, or None", parameter="retry_result"
        )
    check_is_sync("retry_result", retry_result)


def _wrong_on(value: object, hint: str) -> ArgumentError:
    return ArgumentError(f"on={shown(value)}: {hint}", parameter="on")


def info_of_error(on: RetryOn, error: Exception) -> ErrorInfo:
    """Return the retry information about ``error``, from its attributes and the caller's rule.

    If a type matches or a function returns True, a retry is safe, unless the error's own ``is_retry_safe`` is False. If
    no type matches or a function returns False, a retry is not safe. The error's other attributes still apply. If a
    function returns an ``ErrorInfo``, it replaces all attributes. An exception group matches only types of exception
    groups, because it may contain any error.

    Raises:
        ArgumentError: the function returned neither a bool nor a valid ErrorInfo.
    """
    if on is None:
        return classify(error)
    if isinstance(on, type) or isinstance(on, tuple):  # noqa: SIM101 - a tuple of types is taken for RetryOn's own
        return _retry_safe(error) if _matches(error, on) else _but(classify(error), is_retry_safe=False)
    answer = on(error)
    if answer is True:
        return _retry_safe(error)
    if answer is False:
        return _but(classify(error), is_retry_safe=False)
    return _checked_info("on", on, answer)


def info_of_result(retry_result: Callable[[T], bool | ErrorInfo], result: T) -> ErrorInfo | None:
    """Return the retry information about a result from the caller's rule; None if the rule accepts the result.

    Raises:
        ArgumentError: the function returned neither a bool nor a valid ErrorInfo.
    """
    answer = retry_result(result)
    if answer is False:
        return None
    return RETRY_SAFE if answer is True else _checked_info("retry_result", retry_result, answer)


def _matches(error: Exception, on: type[Exception] | tuple[type[Exception], ...]) -> bool:
    if not isinstance(error, on):
        return False
    if not isinstance(error, ExceptionGroup):
        return True
    kinds = on if isinstance(on, tuple) else (on,)
    return any(issubclass(kind, ExceptionGroup) and isinstance(error, kind) for kind in kinds)


def _retry_safe(error: Exception) -> ErrorInfo:
    own = classify(error)
    return own if own.is_retry_safe is not None else _but(own, is_retry_safe=True)


def _but(info: ErrorInfo, *, is_retry_safe: bool) -> ErrorInfo:
    return ErrorInfo(is_retry_safe, info.retry_after, info.is_throttling_error, info.is_timeout_error, info.fault)


def _checked_info(parameter: str, function: object, answer: object) -> ErrorInfo:
    if not isinstance(answer, ErrorInfo):
        raise ArgumentError(
            f"{parameter}={shown(function)} returned {shown(answer)}; it must return True, False or an ErrorInfo",
            parameter=parameter,
        )
    return check_info(parameter, answer)


def check_info(parameter: str, info: ErrorInfo) -> ErrorInfo:
    """Return ``info`` if it is valid.

    Raises:
        ArgumentError: ``info`` is not an ErrorInfo, or its ``retry_after`` is not a finite number of at least 0.
    """
    if not isinstance(info, ErrorInfo):
        raise ArgumentError(f"{parameter}={shown(info)} must be an ErrorInfo", parameter=parameter)
    if info.retry_after is not None and not is_seconds(info.retry_after):
        raise ArgumentError(
            f"{parameter}: retry_after={shown(info.retry_after)} of an ErrorInfo must be a finite number of seconds of at "
            "least 0, or None",
            parameter=parameter,
        )
    return info


def for_strategy(error: Exception | None, info: ErrorInfo) -> Exception:
    """Return the error that the strategy receives: ``error`` if its attributes express ``info``, otherwise a wrapper.

    ``error`` is returned only if it has the three attributes of ``ErrorRetryInfo``. Defaults apply to other missing
    attributes.

    Args:
        error: error that the attempt raised; None if it returned a result that the caller's rule did not accept.
    """
    if error is None:
        return ClassifiedError(UnwelcomeResultError("the result requires a retry"), info)
    return error if _describes_itself(error, info) else ClassifiedError(error, info)


def _describes_itself(error: Exception, info: ErrorInfo) -> bool:
    try:
        # Look for one attribute first, because most errors have none of the three.
        has_all = getattr(error, "is_retry_safe", None) is not None and all(
            hasattr(error, name) for name in _ATTRIBUTES
        )
    except Exception:
        # A property raised an exception. Use a wrapper, so that the strategy need not read the property.
        return False
    return has_all and classify(error) == info


class UnwelcomeResultError(Exception):
    """The caller's rule did not accept a result. Only the strategy receives this error."""
