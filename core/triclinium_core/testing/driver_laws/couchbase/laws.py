"""Laws about operations, rows and lookups. Each law is a function, and its docstring states the law."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from triclinium_core import errors
from triclinium_core.contract import couchbase
from triclinium_core.services.query.result import QueryMetaData, QueryStatus
from triclinium_core.testing.driver_laws.couchbase.bench import CouchbaseBench
from triclinium_core.testing.driver_laws.couchbase.cluster_driver_under_test import OpenDriver
from triclinium_core.testing.driver_laws.couchbase.reading import abandonments_of, ask, count_of, requested
from triclinium_core.testing.driver_laws.neutral.laws import NEUTRAL_LAWS, NeutralLaw
from triclinium_core.testing.driver_laws.neutral.scripted_machine import on
from triclinium_core.testing.driver_laws.neutral.trial import ensure, on_trial

Law = Callable[[OpenDriver], Awaitable[None]]
"""Function that raises ``LawBroken`` if the driver does not keep a law."""

METADATA = QueryMetaData(request_id="1", client_context_id="", status=QueryStatus.SUCCESS)
"""Result that follows the rows."""


async def look_ups_are_answered_once(open_driver: OpenDriver) -> None:
    """For each ``LookUpService``, the driver feeds one ``ServiceLookedUp``, even if the service does not exist."""
    async with on_trial(CouchbaseBench(open_driver)) as trial:
        looked_up = couchbase.ServiceLookedUp("_couchbase._tcp.cluster.invalid")
        await trial.order(couchbase.LookUpService(looked_up.service))
        count = await count_of(trial, looked_up, 1, "the driver did not answer LookUpService with ServiceLookedUp")
        ensure(count == 1, f"the driver answered LookUpService {count} times")


async def readers_are_settled_at_the_close(open_driver: OpenDriver) -> None:
    """After the driver closes, a reader that requests more rows gets an error, and so does a new request."""
    async with on_trial(CouchbaseBench(open_driver)) as trial:
        reader, _ = await ask(trial, lambda token: couchbase.RowsReceived(token, [b"1"]))
        await trial.until(lambda: bool(reader.rows), "the machine returned RowsReceived, but its reader got nothing")
        asked = len(requested(trial))
        await trial.driver.close()
        reader.read_on()
        for each in (reader, trial.driver.ask()):
            outcome = await trial.outcome_of(each, "after the driver closed, a reader still waits")
            ensure(isinstance(outcome, Exception), f"the closed driver gave a reader {outcome!r}, not an error")
        ensure(len(requested(trial)) == asked, "the closed driver fed a request to the machine")


async def rows_come_as_they_are_wanted(open_driver: OpenDriver) -> None:
    """A reader gets the rows in order, then the result or the error.

    The driver feeds ``RowsWanted`` once for each piece of rows, after the reader has taken the piece.
    """
    async with on_trial(CouchbaseBench(open_driver)) as trial:
        reader, token = await ask(trial, lambda token: couchbase.RowsReceived(token, [b"1", b"2"]))
        wanted = couchbase.RowsWanted(token)
        await trial.until(lambda: bool(reader.rows), "the machine returned RowsReceived, but its reader got nothing")
        await trial.quiet()
        ensure(wanted not in trial.machine.events, "the driver fed RowsWanted before the reader had taken its rows")

        answers: Sequence[couchbase.Action] = (
            couchbase.RowsReceived(token, [b"3"]),
            couchbase.CompleteRequest(token, METADATA),
        )
        for pieces, answer in enumerate(answers, start=1):
            trial.machine.answer = on(couchbase.RowsWanted, answer)
            reader.read_on()
            count = await count_of(trial, wanted, pieces, "the reader continued, but the driver fed no RowsWanted")
            ensure(count == pieces, f"the reader continued {pieces} times, but the driver fed RowsWanted {count} times")
        outcome = await trial.outcome_of(reader, "a completed request has not returned")
        ensure([*reader.rows] == [b"1", b"2", b"3"], f"rows 1, 2 and 3 were handed out, but {[*reader.rows]!r} arrived")
        ensure(outcome == METADATA, f"the reader of a completed request got {outcome!r}")
        ensure(not trial.abandonments_of(token), "the driver abandoned a completed request")

        error = errors.RequestCanceledException("query: cancelled")
        refused, _ = await ask(trial, lambda token: couchbase.FailOperation(token, error))
        outcome = await trial.outcome_of(refused, "a failed request has not returned")
        ensure(outcome is error, f"the reader of a failed request got {outcome!r}")


async def a_reader_that_leaves_is_reported(open_driver: OpenDriver) -> None:
    """If a reader leaves while it waits or holds rows, the driver feeds exactly one ``OperationAbandoned``."""
    async with on_trial(CouchbaseBench(open_driver)) as trial:
        waiting, first = await ask(
            trial,
        )
        reading, second = await ask(trial, lambda token: couchbase.RowsReceived(token, [b"1"]))
        await trial.until(lambda: bool(reading.rows), "the machine returned RowsReceived, but its reader got nothing")
        for reader, token in ((waiting, first), (reading, second)):
            reader.leave()
            await trial.outcome_of(reader, "a cancelled reader does not end")
            count = await abandonments_of(trial, token, "a reader left, but the driver fed no OperationAbandoned")
            ensure(count == 1, f"{count} events report that one reader left; expected 1")


def _of_the_client(law: NeutralLaw) -> Law:
    """Return a neutral law as a law for drivers of the client machine."""

    @wraps(law)
    async def bound(open_driver: OpenDriver) -> None:
        await law(CouchbaseBench(open_driver))

    return bound


LAWS: Sequence[Law] = (
    *map(_of_the_client, NEUTRAL_LAWS),
    look_ups_are_answered_once,
    readers_are_settled_at_the_close,
    rows_come_as_they_are_wanted,
    a_reader_that_leaves_is_reported,
)
"""All laws of a driver of the client machine."""
