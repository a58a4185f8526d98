"""Conversion between the words of the driver's page and triclinium's errors and decisions."""

from __future__ import annotations

from tests.core.retry.cassandra.page import Answer, PageFailure
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors


def error_of(failure: PageFailure) -> cassandra.CassandraError:
    """Return the error that ``failure`` describes."""
    if failure.error:
        error: type[cassandra.CassandraError] = getattr(errors, failure.error)
        return error()
    level = cassandra.ConsistencyLevel[failure.level]
    if failure.event == "read_timeout":
        return cassandra.ReadTimeout(
            consistency=level, block_for=failure.needed, received=failure.replicas, data_present=failure.data_present
        )
    if failure.event == "write_timeout":
        write_type = cassandra.WriteType(failure.write_type)
        return cassandra.WriteTimeout(
            consistency=level, write_type=write_type, block_for=failure.needed, received=failure.replicas
        )
    return cassandra.Unavailable(consistency=level, required=failure.needed, alive=failure.replicas)


def in_words(verdict: cassandra.RetryVerdict) -> Answer:
    """Return the names of the decision and the consistency level of ``verdict``."""
    return verdict.decision.name, verdict.consistency.name if verdict.consistency is not None else None
