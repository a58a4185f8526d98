"""From the options of ``triclinium explain cassandra`` to a case that the core explains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from triclinium._cli._wrong_input import WrongInput, choose
from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS, aborted, answered, is_aborted, is_answered
from triclinium_core.explain.cassandra.explain import Case
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel, WriteType
from triclinium_core.retry.cassandra.errors import (
    CoordinatorError,
    FrameTooLong,
    ReadTimeout,
    RequestAborted,
    Unavailable,
    WriteTimeout,
)
from triclinium_core.retry.cassandra.policies import POLICIES

LEVELS: Mapping[str, ConsistencyLevel] = ConsistencyLevel.__members__
WRITE_TYPES: Mapping[str, WriteType] = WriteType.__members__

OTHER = "other"
"""Any other error."""

LEVEL_DEFAULT = ConsistencyLevel.QUORUM
"""A level at which the counts mean something: at LOCAL_ONE, the driver's own, one answer is enough."""


class CassandraOptions(TypedDict):
    """The options of the command; None for one that was not given."""

    policy: str
    consistency: str | None
    received: int | None
    block_for: int | None
    data_present: bool | None
    write_type: str | None
    required: int | None
    alive: int | None
    error: str | None
    retry_count: int
    idempotent: bool


Failure = RequestAborted | FrameTooLong | CoordinatorError


@dataclass(frozen=True, slots=True)
class Event:
    """What may befall a statement, the options that have to tell of it, and those that may."""

    build: Callable[[CassandraOptions], Failure]
    needs: tuple[str, ...]
    details: frozenset[str] = frozenset()


def build_case(event_name: str, options: CassandraOptions) -> Case:
    """Return the case.

    Raises:
        WrongInput: a name is not known, or options are missing or do not go together.
    """
    event = choose(event_name, EVENTS, "event")
    named = event_name.casefold().replace("_", "-")
    given = [name for name, value in options.items() if name in TELLING and value is not None]
    for name in given:
        if name not in event.needs and name not in event.details:
            raise WrongInput(f"{_spelled(name)} says nothing about {named}; leave it out")
    missing = [_spelled(name) for name in event.needs if name not in given]
    if missing:
        raise WrongInput(f"{named} needs {' and '.join(missing)}; --help says what they are")
    return Case(
        error=event.build(options),
        policy=choose(options["policy"], POLICIES, "policy")(),
        idempotent=options["idempotent"],
        retry_count=options["retry_count"],
    )


def _level(options: CassandraOptions) -> ConsistencyLevel:
    name = options["consistency"]
    return LEVEL_DEFAULT if name is None else choose(name, LEVELS, "consistency level")


def _read_timeout(options: CassandraOptions) -> ReadTimeout:
    return ReadTimeout(
        consistency=_level(options),
        block_for=options["block_for"] or 0,
        received=options["received"] or 0,
        data_present=bool(options["data_present"]),
    )


def _write_timeout(options: CassandraOptions) -> WriteTimeout:
    write_type = options["write_type"]
    return WriteTimeout(
        consistency=_level(options),
        write_type=WriteType.SIMPLE if write_type is None else choose(write_type, WRITE_TYPES, "write type"),
        block_for=options["block_for"] or 0,
        received=options["received"] or 0,
    )


def _unavailable(options: CassandraOptions) -> Unavailable:
    return Unavailable(consistency=_level(options), required=options["required"] or 0, alive=options["alive"] or 0)


def _request_aborted(options: CassandraOptions) -> RequestAborted | FrameTooLong:
    name = options["error"] or ""
    return aborted(name) if is_aborted(name) else choose(name, _ABORTED, "error that aborts a request")()


def _error_response(options: CassandraOptions) -> CoordinatorError:
    name = options["error"] or ""
    return answered(name) if is_answered(name) else choose(name, _ANSWERED, "error that a coordinator answers")()


_ABORTED: Mapping[str, Callable[[], RequestAborted | FrameTooLong]] = {
    **ABORTS,
    "FrameTooLong": FrameTooLong,
    OTHER: lambda: RequestAborted("any other reason"),
}
_ANSWERED: Mapping[str, Callable[[], CoordinatorError]] = {
    **ANSWERS,
    OTHER: lambda: CoordinatorError("a code that is not known"),
}

EVENTS: Mapping[str, Event] = {
    "read-timeout": Event(_read_timeout, ("received", "block_for"), frozenset({"consistency", "data_present"})),
    "write-timeout": Event(_write_timeout, ("received", "block_for"), frozenset({"consistency", "write_type"})),
    "unavailable": Event(_unavailable, ("required", "alive"), frozenset({"consistency"})),
    "request-aborted": Event(_request_aborted, ("error",)),
    "error-response": Event(_error_response, ("error",)),
}

TELLING = frozenset[str]().union(*(event.details.union(event.needs) for event in EVENTS.values()))
"""All options that tell what happened."""


def _spelled(option: str) -> str:
    return f"--{option.replace('_', '-')}"
