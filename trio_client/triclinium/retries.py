"""Interfaces for retry strategies, hooks and reports."""

from __future__ import annotations

from triclinium_core.retry.calls import (
    AttemptRecord,
    RetryEnding,
    RetryGivenUp,
    RetryHook,
    RetryOn,
    RetryReport,
    RetryScheduled,
    RetrySucceeded,
    attempts_of,
)
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import AsyncRetryStrategy, RetryAction, RetryReason, RetryRequest, RetryStrategy
from triclinium_core.retry.smithy import AwsRetryNumbers, ErrorInfo

__all__ = [
    "AnyRetryStrategy",
    "AsyncRetryStrategy",
    "AttemptRecord",
    "AwsRetryNumbers",
    "ErrorInfo",
    "FailedAttemptError",
    "RetryAction",
    "RetryEnding",
    "RetryGivenUp",
    "RetryHook",
    "RetryOn",
    "RetryReason",
    "RetryReport",
    "RetryRequest",
    "RetryScheduled",
    "RetryStrategy",
    "RetrySucceeded",
    "TokenScope",
    "attempts_of",
]
