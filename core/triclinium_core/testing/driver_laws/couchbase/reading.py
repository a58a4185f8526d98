"""Steps of the laws that use a reader of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triclinium_core.contract.couchbase import Action, Event, RequestSubmitted
from triclinium_core.contract.neutral import Token
from triclinium_core.testing.driver_laws.couchbase.cluster_driver_under_test import ClusterDriverUnderTest, Reader
from triclinium_core.testing.driver_laws.neutral.scripted_machine import nothing
from triclinium_core.testing.driver_laws.neutral.trial import Trial

ClusterTrial = Trial[Event, Action, ClusterDriverUnderTest]


def requested(trial: ClusterTrial) -> list[RequestSubmitted]:
    """Return the service requests among the events."""
    return [event for event in trial.machine.events if isinstance(event, RequestSubmitted)]


async def ask(trial: ClusterTrial, *actions: Callable[[Token], Action]) -> tuple[Reader, Token]:
    """Start a task whose service request the machine answers with ``actions``. Return the task and its token."""

    def answer(event: Event) -> Sequence[Action]:
        return [make(event.token) for make in actions] if isinstance(event, RequestSubmitted) else ()

    trial.machine.answer = answer
    count = len(requested(trial))
    reader = trial.driver.ask()
    await trial.until(lambda: len(requested(trial)) > count, "the driver did not submit a request to a service")
    trial.machine.answer = nothing
    return reader, requested(trial)[-1].token


async def count_of(trial: ClusterTrial, event: Event, least: int, otherwise: str) -> int:
    """Wait until ``event`` was fed ``least`` times, and return the total; ``otherwise`` describes a breach."""
    await trial.until(lambda: trial.machine.events.count(event) >= least, otherwise)
    await trial.quiet()
    return trial.machine.events.count(event)


async def abandonments_of(trial: ClusterTrial, token: Token, otherwise: str) -> int:
    """Wait for the report that a reader left, and return the number of reports; ``otherwise`` describes a breach."""
    await trial.until(lambda: trial.abandonments_of(token) > 0, otherwise)
    await trial.quiet()
    return trial.abandonments_of(token)
