"""A policy that answers the same whatever it is asked, for scripts."""

from __future__ import annotations

from dataclasses import dataclass

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CoordinatorError, RequestAborted
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


class AskedPolicy(Exception):
    """A policy was asked that must not be."""


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """Answers ``verdict``, whatever it is asked; where that is None, being asked raises AskedPolicy."""

    verdict: RetryVerdict | None

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict."""
        return self._answer("a read timeout")

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict."""
        return self._answer("a write timeout")

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> RetryVerdict:
        """Return the verdict."""
        return self._answer("missing replicas")

    def on_request_aborted(self, *, error: RequestAborted, retry_count: int) -> RetryVerdict:
        """Return the verdict."""
        return self._answer("a request that was aborted")

    def on_error_response(self, *, error: CoordinatorError, retry_count: int) -> RetryVerdict:
        """Return the verdict."""
        return self._answer("an error response")

    def _answer(self, what: str) -> RetryVerdict:
        if self.verdict is None:
            raise AskedPolicy(f"it was asked about {what}")
        return self.verdict
