"""Checks of arguments. A function checks its arguments before it does anything else.

Each check raises an error whose message has the parameter and the value. The checks of this module raise the Couchbase
client's InvalidArgumentException. Those of ``retry.checks`` raise ArgumentError.
"""

from __future__ import annotations

import math
import sys
from datetime import timedelta
from enum import Enum
from ipaddress import AddressValueError, IPv6Address
from typing import Final, TypeVar

from triclinium_core import errors
from triclinium_core.argument_error import ArgumentError
from triclinium_core.shown import shown

T = TypeVar("T")

Duration = float | timedelta
"""Duration as an argument: seconds, or a ``datetime.timedelta``. Attributes contain the seconds (decision D31)."""


def is_number(value: object) -> bool:
    """Return whether ``value`` is a float, or an int within the range of floats. False for a bool.

    Adding a larger int to a time would raise OverflowError.
    """
    if isinstance(value, float):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max


def in_seconds(duration: Duration) -> float:
    """Return the seconds of a timedelta. Return any other value unchanged; the caller checks it."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def is_seconds(value: object) -> bool:
    """Return whether ``value`` is a duration for which a task can sleep: a finite number of at least 0."""
    return is_number(value) and 0 <= value < math.inf  # type: ignore[operator]


def is_ipv6(text: str) -> bool:
    """Return whether a string is an IPv6 address, possibly with a zone: ``fe80::1%eth0``."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


class Checks:
    """Checks of arguments. For an invalid argument, each check raises the same class of error.

    Args:
        error: exception that the checks raise.
    """

    def __init__(self, error: type[ArgumentError]) -> None:
        self._error = error

    def check_duration(
        self,
        duration: Duration,
        parameter: str,
        *,
        above_zero: bool = False,
        most: float = sys.float_info.max,
        endless: bool = False,
    ) -> float:
        """Return a duration in seconds if it is within the limits.

        Args:
            duration: duration to check.
            parameter: name of the parameter.
            above_zero: whether to refuse 0.
            most: maximum in seconds.
            endless: whether to accept ``math.inf``, for no limit.
        """
        # This shortcut for the usual case saves 3 % of the instructions of a retry: 50200 instead of 51600 (callgrind,
        # ``tests.bench --only core``).
        if type(duration) is float and 0.0 < duration <= most:
            return duration
        seconds = in_seconds(duration)
        is_long_enough = is_number(seconds) and (seconds > 0 or (seconds == 0 and not above_zero))
        if is_long_enough and (seconds <= most or (endless and seconds == math.inf)):
            return seconds
        limits = ["more than 0" if above_zero else "at least 0"]
        limits += ["finite"] if most == sys.float_info.max and not endless else []
        limits += [f"at most {most!r}"] if most < sys.float_info.max else []
        limits += ["or math.inf"] if endless else []
        raise self._refused(duration, parameter, f"a number of seconds or a timedelta: {', '.join(limits)}")

    def check_seconds(self, value: float, parameter: str) -> float:
        """Return ``value``, unchanged, if it is a finite number of seconds of at least 0."""
        if not is_seconds(value):
            raise self._refused(value, parameter, "a finite number of seconds of at least 0")
        return value

    def check_number(self, value: float, parameter: str, least: float, most: float = sys.float_info.max) -> float:
        """Return ``value`` if it is a number from ``least`` to ``most``. Refuse NaN."""
        if not (is_number(value) and least <= value <= most):
            limits = f"of at least {least}, and finite" if most == sys.float_info.max else f"from {least} to {most}"
            raise self._refused(value, parameter, f"a number {limits}")
        return value

    def check_integer(self, value: object, parameter: str, least: int = 0, most: int | None = None) -> int:
        """Return ``value`` if it is an integer from ``least`` to ``most``. Refuse a bool."""
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and least <= value
            and (most is None or value <= most)
        ):
            return value
        raise self._refused(
            value, parameter, f"an integer {f'of at least {least}' if most is None else f'from {least} to {most}'}"
        )

    def check_flag(self, value: object, parameter: str) -> bool:
        """Return ``value`` if it is True or False. Refuse any other value, such as 1 or None."""
        if not isinstance(value, bool):
            raise self._refused(value, parameter, "True or False")
        return value

    def check_text(self, value: object, parameter: str, *, empty: bool = False) -> str:
        """Return ``value`` if it is a string that UTF-8 can encode. Refuse an empty string unless ``empty`` is True."""
        if not isinstance(value, str) or not (value or empty):
            raise self._refused(value, parameter, "a string" if empty else "a string that is not empty")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self._refused(
                value, parameter, "a string without lone surrogates, which UTF-8 cannot encode"
            ) from error
        return value

    def check_type(self, value: object, parameter: str, *kinds: type) -> None:
        """Raise unless ``value`` is an instance of one of the types."""
        if not isinstance(value, kinds):
            raise self._refused(value, parameter, f"of type {' or '.join(kind.__name__ for kind in kinds)}")

    def check_choice(self, value: object, parameter: str, choices: type[Enum]) -> None:
        """Raise unless ``value`` is a member of the enum."""
        if not isinstance(value, choices):
            names = ", ".join(f"{choices.__name__}.{choice.name}" for choice in choices)
            raise self._refused(value, parameter, f"one of {names}")

    def check_method(self, value: T, parameter: str, method: str, what: str) -> T:
        """Return ``value`` if it has the method ``method`` and is not a class.

        Args:
            value: object to check.
            parameter: name of the parameter.
            method: name of the method.
            what: signature and description of the method, for the message.
        """
        if isinstance(value, type) or not callable(getattr(value, method, None)):
            raise self._error(
                f"{parameter}={shown(value)} must be an object, not a class, with a method {what}", parameter=parameter
            )
        return value

    def check_random(self, rng: T) -> T:
        """Return ``rng`` if it has a method ``random``."""
        return self.check_method(rng, "rng", "random", "random() that draws from [0, 1), as random.Random() has")

    def _refused(self, value: object, parameter: str, wanted: str) -> ArgumentError:
        return self._error(f"{parameter}={shown(value)} must be {wanted}", parameter=parameter)


_CHECKS = Checks(errors.InvalidArgumentException)
check_duration: Final = _CHECKS.check_duration
check_seconds: Final = _CHECKS.check_seconds
check_number: Final = _CHECKS.check_number
check_integer: Final = _CHECKS.check_integer
check_flag: Final = _CHECKS.check_flag
check_text: Final = _CHECKS.check_text
check_type: Final = _CHECKS.check_type
check_choice: Final = _CHECKS.check_choice
check_method: Final = _CHECKS.check_method
check_random: Final = _CHECKS.check_random
