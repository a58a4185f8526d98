"""Reaction of the client's retry machine to one event, for ``explain`` and ``tools.vectors``.

This module contains no retry rules. The machine decides, and the reaction lists its actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triclinium_core import errors
from triclinium_core.explain.couchbase.happenings import NODE, Happening, KvAnswer, event_of
from triclinium_core.explain.explanation import Outcome
from triclinium_core.retry import couchbase
from triclinium_core.retry.backoff import ConstantRandom, Random

LONGEST_DELAYS = ConstantRandom(0.0)
"""Random source with which each jittered delay of an ``ExponentialBackoff`` has its maximum."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """Reaction of the machine, and outcome of the request."""

    machine: couchbase.RetryMachine
    outcome: Outcome
    retry: couchbase.RetryAfter | None
    error: errors.CouchbaseException | None
    """Error for the caller, immediately or after a delay that was cut; None without an error."""
    actions: Sequence[couchbase.RequestAction]
    """All actions that the machine returned for the event."""


def put_to_machine(
    happened: Happening,
    annotation: couchbase.RequestAnnotation,
    now: float,
    *,
    rng: Random,
    retry_attempts: int = 0,
    first_failure_at: float = 0.0,
) -> Reaction:
    """Return the reaction of a request's machine to a response or a failure at ``now``.

    Args:
        happened: the response or failure.
        annotation: the request.
        now: instant of the response or failure, in seconds.
        rng: random source for jittered delays.
        retry_attempts: number of previous retries.
        first_failure_at: instant of the first failure, in seconds.
    """
    event = event_of(annotation.service, annotation.operation, happened)
    machine = couchbase.RetryMachine(
        annotation,
        rng=rng,
        state=next(state for state in _STAGES if type(event) in couchbase.permitted_events(state)),
        retry_attempts=retry_attempts,
        first_failure_at=first_failure_at,
    )
    if isinstance(happened, KvAnswer) and happened.error_map_entry is not None:
        entries = {happened.status: happened.error_map_entry}
        machine.handle(
            couchbase.ErrorMapLoaded(NODE, couchbase.ErrorMap(couchbase.ERROR_MAP_VERSION_MAX, 1, entries)), now
        )
    actions = machine.handle(event, now)
    outcome = next(_OUTCOMES[type(action)] for action in actions if type(action) in _OUTCOMES)
    retry = next((action for action in actions if isinstance(action, couchbase.RetryAfter)), None)
    if retry is not None and not retry.dispatches:
        return Reaction(
            machine, outcome, retry, error_of(machine.handle(couchbase.WakeupReached(), machine.wakeup)), actions
        )
    return Reaction(machine, outcome, retry, error_of(actions), actions)


def error_of(actions: Sequence[couchbase.RequestAction]) -> errors.CouchbaseException | None:
    """Return the error of a failed request; None if the actions do not fail it."""
    return next((action.error for action in actions if isinstance(action, couchbase.Fail)), None)


_STAGES = (couchbase.RetryState.PENDING, couchbase.RetryState.IN_FLIGHT)
"""States in which a request may get an event. The table of transitions determines the state for each event."""

_OUTCOMES: dict[type[couchbase.RequestAction], Outcome] = {
    couchbase.RetryAfter: Outcome.RETRY,
    couchbase.Fail: Outcome.FAIL,
    couchbase.Complete: Outcome.COMPLETE,
    couchbase.AskStrategy: Outcome.CONSULT,
}
