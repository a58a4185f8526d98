"""What callers give, checked as everywhere, for what serves anybody: misuse raises ArgumentError, and none of Couchbase's."""

from __future__ import annotations

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Checks

_CHECKS = Checks(ArgumentError)
check_duration = _CHECKS.check_duration
check_seconds = _CHECKS.check_seconds
check_number = _CHECKS.check_number
check_integer = _CHECKS.check_integer
check_flag = _CHECKS.check_flag
check_text = _CHECKS.check_text
check_type = _CHECKS.check_type
check_choice = _CHECKS.check_choice
check_method = _CHECKS.check_method
check_random = _CHECKS.check_random
