"""Handling of unreadable responses: the errors of their requests, and the reports in the log.

The client does not retry a request with an unreadable response. If a decoder failed, the client closes the connection
on which the response arrived, unless the connection carries another request.

Source: decision D62.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triclinium_core import decoder_faults, errors
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import actions
from triclinium_core.contract.couchbase.fault_reports import FaultReports
from triclinium_core.retry.couchbase import failures
from triclinium_core.runtime.lifecycle.lifecycle import Lifecycle
from triclinium_core.runtime.services.live_request import LiveRequest
from triclinium_core.runtime.services.pool import Endpoint, Pool
from triclinium_core.services.query.query_request import PrepareRequest


class UnreadableAnswers:
    """Handler of unreadable responses. It fails their requests, and reports the exceptions of decoders."""

    def __init__(self, lifecycle: Lifecycle, pool: Pool, *, emit: Callable[[actions.Action], None]) -> None:
        self._lifecycle = lifecycle
        self._pool = pool
        self._emit = emit
        self._faults = FaultReports(emit=emit)

    def fail(self, live: LiveRequest, text: str, now: float) -> None:
        """Fail a request with an unreadable response. The error has the status of the response, if it has arrived."""
        # A request that only prepares a statement changes no data.
        is_harmless = live.request.idempotent or isinstance(live.message, PrepareRequest)
        applied = "" if is_harmless else "; it may have been applied"
        context = self._lifecycle.machine_of(live).error_context(now)
        if live.answer.status:
            context = replace(context, http_status=live.answer.status)
        text = f"{failures.subject(context)}: {live.secrets.conceal(text)}{applied}"
        self._lifecycle.fail(live, errors.DecodingFailureException(text, context), now)

    def fail_undecoded(self, live: LiveRequest, fault: decoder_faults.DecoderFault, now: float) -> None:
        """Fail a request after a decoder failed on its response. Close the connection of the response if it is idle."""
        stream = live.answered_on
        if stream is not None and live.endpoint is not None:
            self.report_fault(stream, live.endpoint, fault)
            # Close the connection only if it is idle: it may already carry another request.
            if stream in live.endpoint.idle:
                self._pool.close(stream, str(fault))
        self.fail(live, f"the response cannot be decoded: {fault}", now)

    def rows_undecoded(self, token: int, fault: decoder_faults.DecoderFault) -> None:
        """Report that the reader could not decode a row. Close the connection of the row if it is idle."""
        live = self._lifecycle.open.get(token)
        if not isinstance(live, LiveRequest):
            return
        stream = live.stream if live.stream is not None else live.answered_on
        if stream is not None and live.endpoint is not None:
            self.report_fault(stream, live.endpoint, fault)
            if stream in live.endpoint.idle:
                self._pool.close(stream, str(fault))

    def report_fault(self, stream: neutral.StreamId, endpoint: Endpoint, fault: decoder_faults.DecoderFault) -> None:
        """Report the exception of a decoder that failed on the bytes of an endpoint."""
        endpoint.last_error = f"{endpoint.node}: {fault}"
        self._faults.report(stream, endpoint.node, fault)

    def report_incomplete(self, live: LiveRequest, count: int) -> None:
        """Report that the client left ``count`` rows out of a list, because it cannot read them."""
        node = live.endpoint.node if live.endpoint is not None else "a node"
        text = f"{live.request.name}: invalid rows omitted from the list: {count}"
        self._emit(neutral.ReportConnection(neutral.StreamId(0), node, text, neutral.ReportLevel.WARNING))
