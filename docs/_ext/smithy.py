"""Table of the AWS retry numbers, with a column for each set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from docs._ext.markdown import markdown
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers

_SETS = {name: value for name, value in vars(AwsRetryNumbers).items() if isinstance(value, AwsRetryNumbers)}

_WORDS: Mapping[str, str] = {
    "max_attempts": "attempts",
    "quota_capacity": "quota of a scope",
    "retry_cost": "a retry costs",
    "throttling_cost": "after a throttling error",
    "timeout_cost": "after a timeout",
    "backoff_base": "first backoff at most, s",
    "throttling_backoff_base": "after a throttling error, s",
    "backoff_max": "any backoff at most, s",
}


def aws_retry_numbers() -> str:
    """Return a table of each field of ``AwsRetryNumbers`` and its value in each shipped set of numbers."""
    return markdown(
        ("", *(f"`{name}`" for name in _SETS)),
        (
            (_WORDS[field.name], *(_figure(getattr(numbers, field.name)) for numbers in _SETS.values()))
            for field in dataclasses.fields(AwsRetryNumbers)
        ),
    )


def _figure(value: float | None) -> str:
    return "as any" if value is None else f"{value:g}"
