"""Failures of Cassandra requests as errors of ours, and policies that answer what they are told."""

from __future__ import annotations

from tests.core.retry.cassandra.page import Answer, Failure
from triclinium_core.retry.cassandra import errors
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CassandraError, ReadTimeout, Unavailable, WriteTimeout
from triclinium_core.retry.cassandra.verdicts import RetryVerdict


def error_of(failure: Failure) -> CassandraError:
    """Return the error that stands for ``failure``."""
    if failure.error:
        error: type[CassandraError] = getattr(errors, failure.error)
        return error()
    level = ConsistencyLevel[failure.level]
    if failure.event == "read_timeout":
        return ReadTimeout(
            consistency=level, block_for=failure.needed, received=failure.replicas, data_present=failure.data_present
        )
    if failure.event == "write_timeout":
        write_type = WriteType(failure.write_type)
        return WriteTimeout(
            consistency=level, write_type=write_type, block_for=failure.needed, received=failure.replicas
        )
    return Unavailable(consistency=level, required=failure.needed, alive=failure.replicas)


def in_words(verdict: RetryVerdict) -> Answer:
    """Return the names of what ``verdict`` says."""
    return verdict.decision.name, verdict.consistency.name if verdict.consistency is not None else None


class Answers:
    """A policy that answers whatever it was given, and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, object]]] = []

    def _answer(self, method: str, **asked: object) -> RetryVerdict:
        self.asked.append((method, asked))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]

    def on_read_timeout(
        self, *, consistency: ConsistencyLevel, block_for: int, received: int, data_present: bool, retry_count: int
    ) -> RetryVerdict:
        """Answer."""
        return self._answer(
            "on_read_timeout",
            consistency=consistency,
            block_for=block_for,
            received=received,
            data_present=data_present,
            retry_count=retry_count,
        )

    def on_write_timeout(
        self, *, consistency: ConsistencyLevel, write_type: WriteType, block_for: int, received: int, retry_count: int
    ) -> RetryVerdict:
        """Answer."""
        return self._answer(
            "on_write_timeout",
            consistency=consistency,
            write_type=write_type,
            block_for=block_for,
            received=received,
            retry_count=retry_count,
        )

    def on_unavailable(
        self, *, consistency: ConsistencyLevel, required: int, alive: int, retry_count: int
    ) -> RetryVerdict:
        """Answer."""
        return self._answer(
            "on_unavailable", consistency=consistency, required=required, alive=alive, retry_count=retry_count
        )

    def on_request_aborted(self, *, error: errors.RequestAborted, retry_count: int) -> RetryVerdict:
        """Answer."""
        return self._answer("on_request_aborted", error=error, retry_count=retry_count)

    def on_error_response(self, *, error: errors.CoordinatorError, retry_count: int) -> RetryVerdict:
        """Answer."""
        return self._answer("on_error_response", error=error, retry_count=retry_count)
