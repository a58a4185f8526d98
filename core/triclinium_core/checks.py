"""Checks of arguments, the same everywhere: whatever is wrong raises before anything is done (decision D31).

Every check raises an error with the parameter and the value in its message. The functions of this module are
Couchbase's, and raise InvalidArgumentException; ``retry.checks`` has the others.
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
"""A length of time: seconds, or a ``datetime.timedelta``. What is made of one keeps seconds."""


def is_number(value: object) -> bool:
    """Tell whether ``value`` is an int or a float; a bool is neither, nor is an int that no float can hold.

    Such an int raises OverflowError as soon as it is added to an instant.
    """
    if isinstance(value, float):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max


def in_seconds(duration: Duration) -> float:
    """Return the seconds of a duration. What is neither number nor duration comes back as it is, for its check."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def is_seconds(value: object) -> bool:
    """Tell whether ``value`` is a length of time that can be slept: a number, finite, at least 0."""
    return is_number(value) and 0 <= value < math.inf  # type: ignore[operator]


def is_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address, possibly with a zone: ``fe80::1%eth0``."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


class Checks:
    """All checks, raising one kind of error.

    Args:
        error: what they raise.
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
        """Return the seconds of a duration.

        Args:
            duration: as it was given.
            parameter: its name.
            above_zero: whether 0 is refused.
            most: seconds.
            endless: whether ``math.inf`` is taken, for no limit.
        """
        # Without this a retry takes 5 % more instructions: 53800 for 51000 (``python -m tests.bench --only core``).
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
        """Return a finite number of seconds of at least 0, as it was given."""
        if not is_seconds(value):
            raise self._refused(value, parameter, "a finite number of seconds of at least 0")
        return value

    def check_number(self, value: float, parameter: str, least: float, most: float = sys.float_info.max) -> float:
        """Return a number in range; NaN is in no range."""
        if not (is_number(value) and least <= value <= most):
            limits = f"of at least {least}, and finite" if most == sys.float_info.max else f"from {least} to {most}"
            raise self._refused(value, parameter, f"a number {limits}")
        return value

    def check_integer(self, value: object, parameter: str, least: int = 0, most: int | None = None) -> int:
        """Return an integer in range; a bool is refused."""
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
        """Return True or False; nothing else is accepted, whatever its truth value."""
        if not isinstance(value, bool):
            raise self._refused(value, parameter, "True or False")
        return value

    def check_text(self, value: object, parameter: str, *, empty: bool = False) -> str:
        """Return a string of Unicode that UTF-8 can store; ``empty`` tells whether one without characters is taken."""
        if not isinstance(value, str) or not (value or empty):
            raise self._refused(value, parameter, "a string" if empty else "a string that is not empty")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self._refused(value, parameter, "Unicode that UTF-8 can store") from error
        return value

    def check_type(self, value: object, parameter: str, *kinds: type) -> None:
        """Raise unless ``value`` is of one of the types."""
        if not isinstance(value, kinds):
            raise self._refused(value, parameter, f"of type {' or '.join(kind.__name__ for kind in kinds)}")

    def check_choice(self, value: object, parameter: str, choices: type[Enum]) -> None:
        """Raise unless ``value`` is a member of the enum."""
        if not isinstance(value, choices):
            names = ", ".join(f"{choices.__name__}.{choice.name}" for choice in choices)
            raise self._refused(value, parameter, f"one of {names}")

    def check_method(self, value: T, parameter: str, method: str, what: str) -> T:
        """Return ``value``, which has the method, and is not the class of what has it.

        Args:
            method: its name.
            what: how it is called and what it does, for the message.
        """
        if isinstance(value, type) or not callable(getattr(value, method, None)):
            raise self._error(f"{parameter}={shown(value)} must be an object with a method {what}", parameter=parameter)
        return value

    def check_random(self, rng: T) -> T:
        """Return a source of random numbers."""
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
