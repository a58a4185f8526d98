"""Checks of arguments for the code that does not depend on Couchbase. They raise ArgumentError."""

from __future__ import annotations

from typing import Final

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Checks

_CHECKS = Checks(ArgumentError)
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
