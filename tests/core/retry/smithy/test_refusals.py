"""When a retry is out of the question, and how long a server's wish makes it wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.retry.smithy.cases import Failure
from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.smithy.classification import ErrorInfo
from triclinium_core.retry.smithy.protocols import RetryError
from triclinium_core.retry.smithy.refusals import at_least_retry_after, refuse_hopeless, require_error
from triclinium_core.retry.smithy.tokens import SingleUseToken


@rows(
    ("safe", "retries", "reason"),
    [
        (True, 0, None),
        (True, 1, None),
        (True, 2, "attempt 3 was the last of max_attempts=3"),
        (True, 9, "attempt 10 was the last of max_attempts=3"),
        (False, 0, "its is_retry_safe is False, and only True permits it"),
        (None, 0, "its is_retry_safe is None, and only True permits it"),
        (False, 2, "its is_retry_safe is False, and only True permits it"),
    ],
)
def test_hopeless(safe: bool | None, retries: int, reason: str | None) -> None:
    """The error comes before the number of attempts; a refusal uses up the token."""
    token, error = SingleUseToken(object(), None, retries), Failure(safe)

    try:
        refuse_hopeless(token, error, require_error(error), 3)
    except RetryError as refusal:
        assert f"Failure is not retried: {reason}" == str(refusal)
        assert (error, None) == (refusal.__cause__, refusal.retry_after)

    assert token.is_used is (reason is not None)


@rows(
    ("delay", "retry_after", "clamped", "expected"),
    [
        (1.0, None, False, 1.0),
        (1.0, 0.0, False, 1.0),
        (1.0, 1.0, True, 1.0),
        (1.0, 4.0, False, 4.0),
        (1.0, 4.0, True, 4.0),
        (1.0, 6.0, True, 6.0),
        (1.0, 60.0, True, 6.0),
        (1.0, 60.0, False, 60.0),
        (1.0, None, True, 1.0),
    ],
)
def test_retry_after(delay: float, retry_after: float | None, clamped: bool, expected: float) -> None:
    """Never less than the backoff, never less than the wish unless that is clamped."""
    assert expected == at_least_retry_after(delay, retry_after, clamped=clamped)


def test_errors_speak_for_themselves() -> None:
    """Any exception is an error; what it does not say is not known."""
    assert ErrorInfo() == require_error(ValueError())
    assert ErrorInfo(is_retry_safe=True) == require_error(Failure())


@rows("error", [None, "it failed", Failure, object()])
def test_what_is_no_error(error: Any) -> None:
    """What an attempt failed with is an exception, and no class of them."""
    with pytest.raises(InvalidArgumentException, match="^error=") as caught:
        require_error(error)

    assert "error" == caught.value.parameter
