"""Objects that the parts of a client share: options, timers, randomness, and the output for actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from triclinium_core.contract.couchbase import Action, Gathering, TimerKind
from triclinium_core.contract.neutral import StreamId, Timers
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random


@dataclass(frozen=True, slots=True, eq=False)
class Toolkit:
    """Objects that the parts of one client share."""

    options: ClientOptions
    rng: Random
    timers: Timers[TimerKind]
    stream_ids: Callable[[], StreamId]
    """Source of new stream ids."""
    gathering: Gathering
    """Collector of the entries of the default telemetry."""
    emit: Callable[[Action], None]
    """Function to which the parts pass each action, in order."""
    recorder: DecisionRecorder | None = None
    """Recorder of the decision tape; None without one."""


def toolkit_of(
    options: ClientOptions,
    *,
    rng: Random,
    emit: Callable[[Action], None],
    recorder: DecisionRecorder | None = None,
) -> Toolkit:
    """Return the toolkit of a new client."""
    timers: Timers[TimerKind] = Timers()
    return Toolkit(
        options,
        rng,
        timers,
        map(StreamId, count(1)).__next__,
        Gathering(options.tracer, options.meter, options.orphans, timers=timers, emit=emit),
        emit,
        recorder,
    )
