"""The policy protocol: five questions, one for each way a request can fail.

Source: the retry page of the Cassandra Java driver, "Behavior".
"""

from __future__ import annotations

from typing import Protocol

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CassandraError
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


class RetryPolicy(Protocol):
    """Who decides about a request that failed on a node. A policy keeps no state of a request, and answers at once.

    ``consistency`` is always the level that the error names, which may differ from the request's own; ``retry_count``
    is how often this execution was retried by a verdict, for whatever kind of error.
    """

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a read for which replicas were too slow. Asked for any statement.

        Args:
            block_for: answers that the level needs.
            received: answers that came in time.
            data_present: whether one of them carried the data and not only a digest.
        """
        ...

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a write for which replicas were too slow. Asked for idempotent statements only.

        Args:
            block_for: acknowledgements that the level needs.
            received: acknowledgements that came in time.
        """
        ...

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict on a request for which the coordinator knew too few live replicas. Asked for any statement.

        Args:
            required: replicas that the level needs.
            alive: replicas that the coordinator believed alive.
        """
        ...

    def on_request_aborted(self, *, error: CassandraError, retry_count: int) -> RetryVerdict:
        """Return the verdict on a request whose answer will not come, or cannot be read. Asked for idempotent ones only.

        Args:
            error: ``ClosedConnection`` or ``HeartbeatFailure``, or whatever else kept the answer from being read.
        """
        ...

    def on_error_response(self, *, error: CassandraError, retry_count: int) -> RetryVerdict:
        """Return the verdict on any other error that the coordinator answers. Asked for idempotent statements only.

        Args:
            error: such as ``Overloaded``, ``ServerError``, ``TruncateError``, ``ReadFailure`` or ``WriteFailure``.
        """
        ...
