"""What the machine that runs the tests offers."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}
"""Whether this run is the project's gate, where nothing may be missing."""


def missing(what: str, remedy: str) -> NoReturn:
    """End the running test because ``what`` is not installed: a skip at a desk, a failure in CI.

    Args:
        what: the program or package that a fixture looked for.
        remedy: how to get it, as a command.
    """
    message = f"{what} is missing; {remedy}"
    if IN_CI:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
