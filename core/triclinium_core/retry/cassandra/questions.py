"""Questions about Cassandra: what each asks, the fields that it has beside its ``ask``, and what answers it.

::

    verdict     policy (default, downgrading), event, and what it brings along:
                    read_timeout     cl, block_for, received, data_present
                    write_timeout    cl, write_type, block_for, received
                    unavailable      cl, required, alive
                    request_aborted  error; one that is not known is any other
                    error_response   error; the same
                retry_count
                -> decision, consistency; null where the request's own stays
    request     idempotent, verdict, script (see ``script``)
                -> result ("rows" or "empty"), coordinator and errors, or error and execution_info_errors;
                   retry_count_used, speculative_count, successful_execution_index

``verdict`` is what the policy answers whenever it is asked; null: it must not be asked.

Source: the retry page of the Cassandra Java driver; decisions A1 to A9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import CassandraError, ReadTimeout, Unavailable, WriteTimeout
from triclinium_core.retry.cassandra.names import aborted, answered
from triclinium_core.retry.cassandra.policies import POLICIES
from triclinium_core.retry.cassandra.policy import verdict_on
from triclinium_core.retry.question_fields import (
    Answer,
    Ask,
    require_choice,
    require_count,
    require_flag,
    require_text,
)

LEVELS: Mapping[str, ConsistencyLevel] = ConsistencyLevel.__members__
WRITE_TYPES: Mapping[str, WriteType] = WriteType.__members__


def _answer_verdict(question: Mapping[str, object]) -> Answer:
    policy = require_choice(question, "policy", POLICIES)()
    error = require_choice(question, "event", EVENTS)(question)
    verdict = verdict_on(policy, error, retry_count=require_count(question, "retry_count"))
    consistency = verdict.consistency
    return {"decision": str(verdict.decision), "consistency": None if consistency is None else consistency.name}


def _read_timeout(question: Mapping[str, object]) -> CassandraError:
    return ReadTimeout(
        consistency=require_choice(question, "cl", LEVELS),
        block_for=require_count(question, "block_for"),
        received=require_count(question, "received"),
        data_present=require_flag(question, "data_present"),
    )


def _write_timeout(question: Mapping[str, object]) -> CassandraError:
    return WriteTimeout(
        consistency=require_choice(question, "cl", LEVELS),
        write_type=require_choice(question, "write_type", WRITE_TYPES),
        block_for=require_count(question, "block_for"),
        received=require_count(question, "received"),
    )


def _unavailable(question: Mapping[str, object]) -> CassandraError:
    return Unavailable(
        consistency=require_choice(question, "cl", LEVELS),
        required=require_count(question, "required"),
        alive=require_count(question, "alive"),
    )


EVENTS: Mapping[str, Callable[[Mapping[str, object]], CassandraError]] = MappingProxyType(
    {
        "read_timeout": _read_timeout,
        "write_timeout": _write_timeout,
        "unavailable": _unavailable,
        "request_aborted": lambda question: aborted(require_text(question, "error")),
        "error_response": lambda question: answered(require_text(question, "error")),
    }
)
"""What a policy is asked about, and how its error is read."""

ASKS: Mapping[str, Ask] = MappingProxyType({"verdict": _answer_verdict})
"""All that may be asked."""
