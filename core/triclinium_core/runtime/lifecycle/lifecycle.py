"""Life cycle of operations and requests: submission, permits, attempts, retries and settlement.

Each operation or request is settled exactly once. A carrier sends the attempts and receives the responses. This module
passes failures to the retry machine of the operation or request, and executes the orders of the retry machine. A
successful response of the key-value service needs no retry machine.

The methods are in the order of an operation's life. In their docstrings, "operation" includes requests.

Source: SDK-RFC 0049 "Retry Orchestration"; the Smithy Python retry design, "Example Usage"; decisions C6, C25, T1, T5.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, assert_never, cast

from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import AbandonReason, ReportRefusal, ReportRetry, TimerKind
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry import couchbase
from triclinium_core.retry.combined.permits import AsyncPermit, is_healthy_response
from triclinium_core.retry.couchbase import actions, events
from triclinium_core.runtime.lifecycle.carrier import Carrier, Departure, Refused, Undispatched
from triclinium_core.runtime.lifecycle.live import Live
from triclinium_core.runtime.lifecycle.stages import Stage
from triclinium_core.runtime.toolkit import Toolkit
from triclinium_core.telemetry.span_names import SPAN_NAMES


class Lifecycle:
    """All open operations and requests of a client, by token.

    Args:
        error_maps: error maps of the nodes, shared by the retry machines.
    """

    def __init__(
        self,
        error_maps: couchbase.ErrorMapStore,
        tools: Toolkit,
    ) -> None:
        self._timers = tools.timers
        self._rng = tools.rng
        self._error_maps = error_maps
        self._gathering = tools.gathering
        self._emit = tools.emit
        self._recorder = tools.recorder
        self.open: dict[int, Live[Any]] = {}
        """Open operations and requests in the order of submission. Deadlines without a timer are in the same order."""
        self.carriers: dict[type[Live[Any]], Carrier[Any, Any]] = {}
        """Carrier for each type of operation. An operation does not refer to its carrier: a request in flight, which the
        garbage collector does not track, would otherwise keep the complete client alive."""
        self.next_deadline: float = math.inf
        """Earliest deadline without a timer. The operation with this deadline may be settled already."""
        self.retries_by_reason: Counter[couchbase.RetryReason] = Counter()
        """Number of retries whose delay is over, by reason, also of settled operations. The client never retries its own
        requests."""

    # -- Start and dispatch.

    def begin(self, live: Live[Any], now: float) -> None:
        """Dispatch the first attempt of an operation. With a token strategy, request a permit before that."""
        permit = live.permit
        if permit is None:
            self.dispatch(live, now)
            return
        live.stage = Stage.ACQUIRING
        if isinstance(permit, AsyncPermit):
            self._emit(neutral.AcquirePermit(neutral.Token(live.token), permit))
            return
        try:
            delay = permit.acquire()
        except Exception as error:
            self._refuse_to_begin(live, error, now)
        else:
            self._begin_after(live, delay, now)

    def _begin_after(self, live: Live[Any], delay: float, now: float) -> None:
        """Dispatch an operation after the delay that its permit requires, unless the deadline passes first."""
        assert live.permit is not None, "only a token strategy requests a delay"
        delay_left = live.permit.postpone(delay, live.deadline - now)
        if delay_left == 0.0:
            live.stage = Stage.WAITING
            self.dispatch(live, now)
            return
        live.stage = Stage.HELD
        if delay_left is not None:
            live.retry_timer = self._timers.schedule(now + delay_left, TimerKind.RETRY, live)

    def _refuse_to_begin(self, live: Live[Any], cause: BaseException | None, now: float) -> None:
        self.fail(live, couchbase.not_begun(self._context(live, now), cause), now)

    def dispatch(self, live: Live[Any], now: float) -> None:
        """Send or queue an attempt. Retry or fail the operation if its carrier can do neither."""
        undispatched = self.carriers[type(live)].dispatch(live, now)
        if undispatched is not None:
            self.not_dispatched(live, undispatched, now)

    def not_dispatched(self, live: Live[Any], undispatched: Undispatched, now: float) -> None:
        """Retry or fail an operation whose attempt was not sent."""
        if isinstance(undispatched, Refused):
            self.fail_for_good(live, undispatched.error, undispatched.text, now)
        else:
            self.feed(live, undispatched, now)

    # -- Decisions, delays and deadlines.

    def strategy_decided(self, event: neutral.StrategyDecided, now: float) -> None:
        """Apply the decision of an asynchronous strategy. Ignore an unknown token."""
        live = self.open.get(event.token)
        if live is None:
            return
        answer = cast("couchbase.RetryAction | None", event.answer)
        permit = live.permit
        if not (isinstance(permit, AsyncPermit) and permit.is_acquiring):
            self.feed(live, events.StrategyAnswered(answer, event.raised), now)
            return
        permit.is_acquiring = False
        if answer is None or answer.delay is None:
            self._refuse_to_begin(live, event.raised, now)
        else:
            self._begin_after(live, answer.delay, now)

    def backoff_over(self, live: Live[Any], now: float) -> None:
        """Dispatch an operation whose delay is over, or fail the operation if a limit has cut the delay."""
        if live.permit is not None and live.permit.hold_is_over():
            live.stage = Stage.WAITING
            self.dispatch(live, now)
        else:
            self.feed(live, events.WakeupReached(), now)

    def deadlines_passed(self, event: neutral.TimePassed, now: float) -> None:
        """Fail the operations whose deadlines have passed, except those that have a timer for the deadline."""
        self.next_deadline = math.inf
        due = list[Live[Any]]()
        for live in self.open.values():
            if live.deadline_timer is not None:
                continue
            if live.deadline > now:
                self.next_deadline = live.deadline
                break
            due.append(live)
        for live in due:
            if live.token in self.open:
                self.deadline_passed(live, event, now)

    def deadline_passed(self, live: Live[Any], event: neutral.TimePassed, now: float) -> None:
        """Fail an operation at its deadline. Count a missing response against the circuit breaker of the server."""
        carrier = self.carriers[type(live)]
        debtor = carrier.debtor(live, event)
        undispatched = carrier.give_up_waiting(live)
        if undispatched is not None:
            self.not_dispatched(live, undispatched, now)
        else:
            self.feed(live, carrier.out_of_time(live), now)
        if debtor is not None:
            carrier.blame(debtor, now)

    # -- The retry machine and its orders.

    def machine_of(self, live: Live[Any]) -> couchbase.RetryMachine:
        """Return the retry machine of an operation. A new machine records the facts of the current attempt."""
        return live.retry or live.make_retry_machine(
            rng=self._rng, error_maps=self._error_maps, recorder=self._recorder
        )

    def feed(self, live: Live[Any], event: events.RequestEvent, now: float, origin: object = None) -> None:
        """Feed the retry machine of an operation, and execute its orders.

        Args:
            origin: source of the response, for ``Carrier.carry_out``.
        """
        carrier, machine = self.carriers[type(live)], self.machine_of(live)
        for order in machine.handle(event, now):
            match order:
                case actions.Dispatch():
                    self.retries_by_reason[cast(couchbase.RetryReason, machine.last_reason)] += 1
                    live.stage = Stage.WAITING
                    self.dispatch(live, now)
                case actions.RetryAfter(delay, dispatches):
                    if live.permit is not None and not dispatches:
                        live.permit.release_unused()
                    carrier.attempt_failed(live)
                    live.stage = Stage.BACKING_OFF
                    live.retry_timer = self._timers.schedule(now + delay, TimerKind.RETRY, live)
                case actions.Fail(error):
                    self.fail(live, error, now)
                case actions.Complete(response):
                    carrier.succeeded(live, response, now)
                case actions.AskStrategy(strategy, request, reason):
                    carrier.attempt_failed(live)
                    live.stage = Stage.CONSULTING
                    self._emit(neutral.ConsultStrategy(neutral.Token(live.token), strategy, request, reason))
                case actions.ReportRetry(request, reason, delay, dispatches, node):
                    carrier.retry_decided(live, reason)
                    self._emit(ReportRetry(neutral.Token(live.token), request, reason, delay, dispatches, node))
                case actions.ReportRefusal(request, reason, error_class, node):
                    carrier.retry_decided(live, reason)
                    if not live.is_own:
                        self._emit(ReportRefusal(neutral.Token(live.token), request, reason, error_class, node))
                case actions.RefreshTopology() | actions.RefreshCollection() | actions.CloseConnection():
                    carrier.carry_out(live, order, origin, now)
                case actions.Ignore():
                    pass
                case _:
                    assert_never(order)

    # -- Completion.

    def fail_for_good(self, live: Live[Any], error: type[errors.CouchbaseException], text: str, now: float) -> None:
        """Fail an operation that cannot succeed, without consulting its strategy."""
        context = self._context(live, now)
        self.fail(live, error(f"{couchbase.subject(context)}: {text}", context), now)

    def fail(self, live: Live[Any], error: errors.CouchbaseException, now: float) -> None:
        """Fail an operation at any stage."""
        if not live.is_own:
            self.measure(live, now)
        self.end_permit(
            live, succeeded=live.retry is not None and live.retry.is_answered and is_healthy_response(error)
        )
        carrier = self.carriers[type(live)]
        carrier.leave(live, Departure.FAILED, now)
        carrier.fail(live, error, now)

    def abandon(self, token: int, now: float, reason: AbandonReason) -> None:
        """Forget an operation that its caller has abandoned. Measure it first if necessary. Ignore an unknown token."""
        live = self.open.get(token)
        if live is None:
            return
        is_needed = reason is not AbandonReason.NOT_NEEDED
        if live.is_measured_if_left(reason):
            self.measure(live, now, abandoned=reason if is_needed else None)
        # If the caller has received rows, the server has responded, so the operation counts as a success.
        self.end_permit(live, succeeded=live.has_given_rows)
        self.record(live, now, abandoned=reason)
        self.carriers[type(live)].leave(live, Departure.CALLER_LEFT if is_needed else Departure.NOT_NEEDED, now)
        self.forget(live)

    def record(
        self, live: Live[Any], now: float, outcome: object = None, *, abandoned: AbandonReason | None = None
    ) -> None:
        """Add an operation that ends now to the decision tape, if there is one, unless it is the client's own.

        Args:
            outcome: result or error for the caller; None for an abandoned operation.
        """
        if self._recorder is not None and not live.is_own:
            error = type(outcome) if isinstance(outcome, errors.CouchbaseException) else None
            self._recorder.add(live.recorded(now, error, abandoned))

    def measure(self, live: Live[Any], now: float, *, abandoned: AbandonReason | None = None) -> None:
        """Record the duration of an operation that ends now. Its caller may still have rows to read."""
        took, service = live.seconds_taken(now), live.request.service
        durations, thresholds = self._gathering.durations, self._gathering.thresholds
        if durations is not None and not live.is_part:
            durations.count(service, SPAN_NAMES[live.request.name], took, now)
        if thresholds is not None and took >= thresholds[service]:
            self._gathering.slow(live.measured().facts(now, abandoned=abandoned), now)

    def end_permit(self, live: Live[Any], *, succeeded: bool) -> None:
        """End the permit of an operation, if a token strategy has issued one."""
        permit = live.permit
        if permit is None:
            return
        if isinstance(permit, AsyncPermit):
            if permit.end(succeeded=succeeded):
                self._emit(neutral.RecordSuccess(neutral.Token(live.token), permit))
            return
        try:
            permit.end(succeeded=succeeded)
        except Exception as error:
            self._emit(neutral.ReportStrategyError(neutral.Token(live.token), error))

    def forget(self, live: Live[Any]) -> None:
        """Remove a settled operation, and cancel its timers."""
        live.stage = Stage.SETTLED
        del self.open[live.token]
        self.cancel_timers(live)

    def cancel_timers(self, live: Live[Any]) -> None:
        """Cancel the timers of an operation."""
        self._timers.cancel(live.deadline_timer)
        self._timers.cancel(live.retry_timer)

    # -- Queries.

    def use(self, bucket: str) -> bool:
        """Return whether an open operation needs the nodes of a bucket."""
        return any(live.bucket == bucket for live in self.open.values())

    def is_ambiguous(self, token: int) -> bool:
        """Return whether the operation, if abandoned now, may have been or may still be applied.

        Return False for an unknown token.
        """
        live = self.open.get(token)
        return live is not None and live.is_ambiguous

    def error_context(self, token: int, now: float) -> ErrorContext | None:
        """Return the error context of an operation that is abandoned now; None for an unknown token."""
        live = self.open.get(token)
        if live is None:
            return None
        machine = self.machine_of(live)
        context = replace(machine.error_context(now), state=machine.state.value)
        if live.obstacle is not None:
            context = replace(context, last_dispatch_error=live.obstacle)
        return self.carriers[type(live)].context(live, context)

    def _context(self, live: Live[Any], now: float) -> ErrorContext:
        return self.machine_of(live).error_context(now)
