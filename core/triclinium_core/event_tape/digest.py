"""Digest of what a machine returned: one line for each action, without the values of documents.

The digest is text, not a hash, so that a change of behaviour shows as a readable difference. It omits the texts
of errors and reports, because a better wording does not change the behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triclinium_core.contract import couchbase, neutral
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.header import MalformedFrame, scan_headers
from triclinium_core.shown import printable

ENTRY_SIZE_MAX = 100_000
"""Maximum length of an entry in characters: a write of thousands of frames, each of which takes about 25."""

_OPCODES: Mapping[int, str] = {int(opcode): opcode.name.lower() for opcode in Opcode}


def digest_of(actions: Sequence[couchbase.Action], wakeup: float) -> tuple[str, ...]:
    """Return the digest of the actions of one event, and of ``wakeup`` after it."""
    due = {math.inf: "never", -math.inf: "now"}.get(wakeup, f"{wakeup!r}")
    return (*(printable(_DIGESTS[type(action)](action), ENTRY_SIZE_MAX) for action in actions), f"wakeup {due}")


def digest_of_context(context: ErrorContext | None) -> tuple[str, ...]:
    """Return the digest of an error context; one entry, "none", without one."""
    return ("none" if context is None else f"context {context.state or ''}{_context(context)}",)


def _context(context: ErrorContext) -> str:
    facts: dict[str, object] = {
        "status": None if context.status is None else f"0x{context.status:02x}",
        "http": context.http_status,
        "retries": context.retry_attempts or None,
        "reasons": ",".join(sorted(str(reason) for reason in context.retry_reasons)) or None,
        "opaque": context.opaque,
        "to": context.last_dispatched_to,
    }
    return "".join(f" {name}={fact}" for name, fact in facts.items() if fact is not None)


def _sent(action: neutral.SendBytes) -> str:
    only = " unless readable" if action.unless_readable else ""
    return f"send {action.stream}: {len(action.data)} bytes{only}: {_content(action.data)}"


def _content(data: bytes) -> str:
    """Return opcode, opaque and vbucket of each frame, or method and path of an HTTP request."""
    try:
        fields = scan_headers(data, 0, len(data))
    except MalformedFrame:
        method, _, rest = data.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        # The query string may contain values of the user.
        return f"{method} {rest.partition(' ')[0].partition('?')[0]}"
    frames = (fields[at : at + 10] for at in range(0, len(fields), 10))
    return ", ".join(f"{_opcode(opcode)} #{opaque} vb{vbucket}" for _, opcode, vbucket, _, opaque, *_ in frames)


def _opcode(opcode: int) -> str:
    return _OPCODES.get(opcode) or f"0x{opcode:02x}"


def _result(result: Any) -> str:
    """Return the class of a result, its CAS, and the number of its bytes."""
    cas, data = getattr(result, "cas", None), getattr(result, "data", None)
    shown_cas = f" cas={cas:x}" if isinstance(cas, int) else ""
    return f"{type(result).__name__}{shown_cas}{'' if data is None else f' {len(data)} bytes'}"


def _error(error: BaseException | None) -> str:
    context = getattr(error, "context", None)
    return f"{type(error).__name__}{_context(context) if isinstance(context, ErrorContext) else ''}"


def _topology(action: couchbase.PublishTopology) -> str:
    new = action.change.new
    return f"topology {new.bucket or 'of the cluster'} {new.revision}: {', '.join(node.name for node in new.nodes)}"


_DIGESTS: Mapping[type, Callable[[Any], str]] = {
    neutral.OpenStream: lambda it: f"open {it.stream}: {it.host}:{it.port}{' with TLS' if it.tls else ''}",
    neutral.SendBytes: _sent,
    neutral.CloseStream: lambda it: f"close {it.stream}: {it.reason}",
    neutral.PauseReading: lambda it: f"pause {it.stream}",
    neutral.ResumeReading: lambda it: f"resume {it.stream}",
    neutral.ConsultStrategy: lambda it: f"consult {it.token}: {it.reason} retries={it.request.retry_attempts}",
    neutral.AcquirePermit: lambda it: f"acquire {it.token}",
    neutral.RecordSuccess: lambda it: f"record {it.token}",
    neutral.ReportStrategyError: lambda it: f"strategy error {it.token}: {type(it.error).__name__}",
    neutral.ReportConnection: lambda it: f"report {it.level.value} {it.stream}: {it.node}",
    neutral.ReportDecoderFault: lambda it: f"decoder fault {it.stream}: {it.fault.kind[0].value}, {it.fault.kind[1]}",
    couchbase.LookUpService: lambda it: f"look up {it.service}",
    couchbase.RowsReceived: lambda it: f"rows {it.token}: {len(it.rows)}, {sum(map(len, it.rows))} bytes",
    couchbase.CompleteOperation: lambda it: f"complete {it.token}: {_result(it.result)}",
    couchbase.CompleteRequest: lambda it: f"complete {it.token}: {_result(it.result)}",
    couchbase.FailOperation: lambda it: f"fail {it.token}: {_error(it.error)}",
    couchbase.ReportRetry: lambda it: (
        f"retry {it.token}: {it.reason} after {it.delay!r}{'' if it.dispatches else ', not sent'} from {it.node}"
    ),
    couchbase.ReportRefusal: lambda it: f"refuse {it.token}: {it.reason} {it.error} from {it.node}",
    couchbase.ReportDispatch: lambda it: f"attempt {it.token} on {it.stream}",
    couchbase.ReportAnswer: lambda it: f"answer {it.token} on {it.stream}",
    couchbase.ReportEnd: lambda it: f"end {it.token}: {'success' if it.error is None else _error(it.error)}",
    couchbase.ReportTelemetry: lambda it: f"telemetry {it.kind.name.lower()}",
    couchbase.PublishTopology: _topology,
}
"""Function that returns the digest, for each class of action."""
