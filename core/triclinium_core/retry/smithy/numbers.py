"""Retry parameters of the AWS clients: those of 2020 and those of 2026.

Source: smithy-core 0.2 and 0.9, botocore's standard mode before and after ``AWS_NEW_RETRIES_2026``; decision S4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from triclinium_core.retry.checks import check_integer, check_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsRetryNumbers:
    """Parameters of a standard strategy. Delays are in seconds, costs in units of the quota.

    Raises:
        ArgumentError: a value is not a number, or is out of range.
    """

    OF_2020: ClassVar[AwsRetryNumbers]
    """Parameters of the AWS SDKs from 2020 until November 2026, and of smithy-core until 0.7."""
    OF_2026: ClassVar[AwsRetryNumbers]
    """Parameters of the AWS SDKs since November 2026, and of smithy-core since 0.8."""
    OF_2026_DYNAMODB: ClassVar[AwsRetryNumbers]
    """Parameters of 2026 for DynamoDB and DynamoDB Streams, whose requests take only a few milliseconds."""

    max_attempts: int
    """Maximum number of attempts of one request, including the first."""
    quota_capacity: int
    """Initial and maximum quota of each scope."""
    retry_cost: int
    """Cost of a retry, unless one of the next two costs applies."""
    throttling_cost: int
    """Cost of a retry after a throttling error."""
    timeout_cost: int | None
    """Cost of a retry after a timeout, even if the timeout is also a throttling error; None if timeouts have no
    separate cost."""
    backoff_base: float
    """Base delay before the first retry, in seconds, before jitter."""
    throttling_backoff_base: float
    """Base delay after a throttling error, in seconds, before jitter."""
    backoff_max: float
    """Maximum backoff delay, in seconds."""

    def __post_init__(self) -> None:
        check_integer(self.max_attempts, "max_attempts")
        check_integer(self.quota_capacity, "quota_capacity")
        check_integer(self.retry_cost, "retry_cost", least=1)
        check_integer(self.throttling_cost, "throttling_cost", least=1)
        if self.timeout_cost is not None:
            check_integer(self.timeout_cost, "timeout_cost", least=1)
        check_seconds(self.backoff_base, "backoff_base")
        check_seconds(self.throttling_backoff_base, "throttling_backoff_base")
        check_seconds(self.backoff_max, "backoff_max")


# botocore 1.43, standard mode; smithy-core 0.2 to 0.7.
AwsRetryNumbers.OF_2020 = AwsRetryNumbers(
    max_attempts=3,
    quota_capacity=500,
    retry_cost=5,
    throttling_cost=5,
    timeout_cost=10,
    backoff_base=1.0,
    throttling_backoff_base=1.0,
    backoff_max=20.0,
)
# botocore 1.44, standard mode; smithy-core 0.8 and 0.9.
AwsRetryNumbers.OF_2026 = AwsRetryNumbers(
    max_attempts=3,
    quota_capacity=500,
    retry_cost=14,
    throttling_cost=5,
    timeout_cost=None,
    backoff_base=0.05,
    throttling_backoff_base=1.0,
    backoff_max=20.0,
)
# Parameters of 2026, for the services dynamodb and dynamodbstreams.
AwsRetryNumbers.OF_2026_DYNAMODB = replace(AwsRetryNumbers.OF_2026, max_attempts=4, backoff_base=0.025)
