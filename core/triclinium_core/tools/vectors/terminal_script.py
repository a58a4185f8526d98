"""Script of terminal conditions, as lines of text with one event each.

Events: ``topology_conn:N`` or ``data_only_conn:N``, followed by ``sasl status 0xNN``, ``sasl ok``, ``tls certificate
untrusted``, ``tls handshake ok`` or ``removed``; ``bucket:B select_bucket``, followed by ``status 0xNN`` or ``ok``; ``no
manifest fetched yet``; ``manifest fetched without scope S``; ``manifest fetched with scope S, without collection C``.

Operations: ``kv_or_http``, ``query``, ``kv bucket B`` and ``kv S.C``.

Source: SDK-RFC 0049 rev 16 "Fail Fast (Terminal Errors)".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from triclinium_core.retry.couchbase import RetryReason, Service, Status, TerminalStates
from triclinium_core.tools.vectors.fields import MalformedQuestion, parse_status, quote

T = TypeVar("T")

EVENT_FORM = 'an event such as "topology_conn:1 sasl status 0x20" or "bucket:B select_bucket ok"'
OPERATION_FORM = "kv_or_http, query, kv bucket B or kv S.C"


def terminal_reason(events: Sequence[str], operation: str) -> RetryReason | None:
    """Return the terminal reason for ``operation`` after ``events``, or None.

    Raises:
        MalformedQuestion: an event or the operation is unknown. The message names it.
    """
    states = TerminalStates()
    for index, event in enumerate(events):
        where = f"events[{index}]"
        apply, match = _find(_EVENTS, event, where, EVENT_FORM)
        apply(states, match, where)
    service, match = _find(_OPERATIONS, operation, "op", OPERATION_FORM)
    return states.reason_for(service, **match.groupdict())


def _find(rows: Sequence[tuple[str, T]], text: str, where: str, form: str) -> tuple[T, re.Match[str]]:
    """Return the meaning of the first row whose pattern matches ``text``, with the match."""
    for pattern, meaning in rows:
        match = re.fullmatch(pattern, text)
        if match is not None:
            return meaning, match
    raise MalformedQuestion(f"{where} {quote(text)} is not known; expected {form}")


def _status(match: re.Match[str], where: str) -> int:
    text = match["status"]
    return Status.SUCCESS if text is None else parse_status(text, where)


def _tracks_topology(match: re.Match[str]) -> bool:
    return match["kind"] == "topology_conn"


_CONNECTION = r"(?P<connection>(?P<kind>topology_conn|data_only_conn):\S+)"
_OUTCOME = r"(?:ok|status (?P<status>\S+))"
_SCOPE, _COLLECTION = r"(?P<scope>[^\s.,]+)", r"(?P<collection>[^\s.,]+)"

_EVENTS: tuple[tuple[str, Callable[[TerminalStates, re.Match[str], str], None]], ...] = (
    (
        rf"{_CONNECTION} sasl {_OUTCOME}",
        lambda states, match, where: states.sasl_answered(
            match["connection"], _status(match, where), tracks_topology=_tracks_topology(match)
        ),
    ),
    (
        rf"{_CONNECTION} tls certificate untrusted",
        lambda states, match, _: states.tls_failed(match["connection"], tracks_topology=_tracks_topology(match)),
    ),
    (rf"{_CONNECTION} tls handshake ok", lambda states, match, _: states.tls_established(match["connection"])),
    (rf"{_CONNECTION} removed", lambda states, match, _: states.connection_removed(match["connection"])),
    (
        rf"bucket:(?P<bucket>\S+) select_bucket {_OUTCOME}",
        lambda states, match, where: states.bucket_selected(match["bucket"], _status(match, where)),
    ),
    # Without a manifest, missing scopes and collections are unknown.
    (r"no manifest fetched yet", lambda states, match, _: None),
    (rf"manifest fetched without scope {_SCOPE}", lambda states, match, _: states.scope_missing(None, match["scope"])),
    (
        rf"manifest fetched with scope {_SCOPE}, without collection {_COLLECTION}",
        lambda states, match, _: states.collection_missing(None, match["scope"], match["collection"]),
    ),
)

_OPERATIONS: tuple[tuple[str, Service], ...] = (
    (r"kv_or_http", Service.KV),
    (r"query", Service.QUERY),
    (r"kv bucket (?P<bucket>\S+)", Service.KV),
    (rf"kv {_SCOPE}\.{_COLLECTION}", Service.KV),
)
