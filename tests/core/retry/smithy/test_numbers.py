"""Presets with the numbers of AWS, and checks of custom numbers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import AwsRetryNumbers


@rows(
    ("numbers", "expected"),
    [
        (AwsRetryNumbers.OF_2020, (3, 500, 5, 5, 10, 1.0, 1.0, 20.0)),
        (AwsRetryNumbers.OF_2026, (3, 500, 14, 5, None, 0.05, 1.0, 20.0)),
        (AwsRetryNumbers.OF_2026_DYNAMODB, (4, 500, 14, 5, None, 0.025, 1.0, 20.0)),
    ],
)
def test_the_numbers(numbers: AwsRetryNumbers, expected: tuple[float | None, ...]) -> None:
    """The presets have the numbers of the AWS SDKs before and after November 2026, and of DynamoDB after that date."""
    assert expected == dataclasses.astuple(numbers)


@rows(
    ("field", "value"),
    [
        ("max_attempts", -1),
        ("quota_capacity", 1.5),
        ("retry_cost", 0),
        ("throttling_cost", True),
        ("timeout_cost", 0),
        ("backoff_base", math.nan),
        ("throttling_backoff_base", -0.1),
        ("backoff_max", math.inf),
    ],
)
def test_invalid_numbers(field: str, value: Any) -> None:
    """An invalid number raises an error with the name of the field and the value."""
    with pytest.raises(ArgumentError, match=f"{field}={value!r}") as caught:
        dataclasses.replace(AwsRetryNumbers.OF_2026, **{field: value})

    assert field == caught.value.parameter
