"""Presets with the numbers of AWS."""

from __future__ import annotations

import dataclasses

from tests.rows import rows
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
