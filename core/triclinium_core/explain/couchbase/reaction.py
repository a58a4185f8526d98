"""Reaction of the client's retry machine to one event, for ``explain`` and for questions.

There is no rule here. The machine decides, and what it ordered is read.
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
"""Takes nothing off a jittered delay, so that the longest is told."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the machine made of it, and what becomes of the request."""

    machine: couchbase.RetryMachine
    outcome: Outcome
    retry: couchbase.RetryAfter | None
    error: errors.CouchbaseException | None
    """What the caller gets, now or at the end of a delay that was cut."""
    actions: Sequence[couchbase.RequestAction]
    """All that was ordered when the event came."""


def put_to_machine(
    happened: Happening,
    annotation: couchbase.RequestAnnotation,
    now: float,
    *,
    rng: Random,
    retry_attempts: int = 0,
    first_failure_at: float = 0.0,
) -> Reaction:
    """Return what the machine of a request orders when this happens at ``now``.

    Args:
        retry_attempts: retries that were already done.
        first_failure_at: instant of the first failure.
    """
    event = event_of(annotation.service, annotation.operation, happened)
    machine = couchbase.RetryMachine(
        annotation,
        rng=rng,
        state=next(state for state in _STAGES if type(event) in couchbase.events_heard(state)),
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
    """Return what the request fails with; None where it does not fail."""
    return next((action.error for action in actions if isinstance(action, couchbase.Fail)), None)


_STAGES = (couchbase.RetryState.PENDING, couchbase.RetryState.IN_FLIGHT)
"""Where a request may stand when something happens to it; the table of transitions tells at which stage."""

_OUTCOMES: dict[type[couchbase.RequestAction], Outcome] = {
    couchbase.RetryAfter: Outcome.RETRY,
    couchbase.Fail: Outcome.FAIL,
    couchbase.Complete: Outcome.COMPLETE,
    couchbase.AskStrategy: Outcome.CONSULT,
}
