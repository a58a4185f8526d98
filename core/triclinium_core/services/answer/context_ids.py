"""Client context ids: the client sends one with each statement, and compares it with the id in the response.

HTTP/1.1 matches responses to requests only by their order. The query and analytics services repeat the id of a request
in the response, so the client recognises a response to another request (decision D64).

Source: SDK-RFC 0056 "ICluster#Query", ``clientContextId``; Couchbase Server documentation, "Query Service REST API".
"""

from __future__ import annotations

from itertools import count
from typing import Final

import msgspec

from triclinium_core.json_depth import TooDeep, shallow
from triclinium_core.retry.backoff import Random
from triclinium_core.shown import one_line

MEMBER: Final = "clientContextID"
"""Name of the id in a response."""
COMPARED_SIZE_BYTES = 64
"""Length in bytes at which the services cut an id. They may cut a character in two."""

_DRAWN_BITS = 36
_DRAWN_MAX = (1 << _DRAWN_BITS) - 1
_CUT = "\ufffd"
"""Replacement for each byte of a character that was cut in two."""

_decode_text = msgspec.json.Decoder(str).decode


class ContextIds:
    """Distinct ids in the form of a random UUID: 72 random bits for each client, and a counter.

    Args:
        rng: source of random numbers. The first id takes two numbers from it.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._numbers = count(1)
        self._prefix = ""

    def new(self) -> str:
        """Return an id that this client has not used."""
        if not self._prefix:
            first, second = (int(self._rng.random() * _DRAWN_MAX) & _DRAWN_MAX for _ in range(2))
            drawn = f"{first:09x}{second:09x}"
            # RFC 9562, sections 4.1 and 5.4: variant and version of a random UUID.
            self._prefix = f"{drawn[:8]}-{drawn[8:12]}-4{drawn[12:15]}-8{drawn[15:]}"
        return f"{self._prefix}-{next(self._numbers):012x}"


def foreign_id(ours: str, theirs: bytes | bytearray) -> str | None:
    """Return the id in a response, as one line of text, if it is the id of another request; otherwise None.

    A response whose id is missing, empty or null may be the response to any request.

    Args:
        ours: the id of the request.
        theirs: the JSON text of the id in the response.
    """
    if theirs == b"null":
        return None
    try:
        text = _decode_text(shallow(theirs))
    except (msgspec.DecodeError, UnicodeDecodeError, TooDeep):
        # The id is not a string, or a character was cut in two.
        text = theirs.strip(b'"').decode(errors="replace")
    return one_line(text) if text and _compared(text) != _compared(ours) else None


def foreign_id_in(ours: str, body: bytes) -> str | None:
    """Return the foreign id in a whole response, like ``foreign_id``; None for a body that is not a JSON object."""
    try:
        theirs = msgspec.json.decode(shallow(body), type=_Identified).client_context_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TooDeep):
        return None
    return foreign_id(ours, bytes(theirs))


def _compared(text: str) -> str:
    """Return the part of an id that is compared: whole characters within the length that services keep."""
    return text.encode(errors="replace")[:COMPARED_SIZE_BYTES].decode(errors="ignore").rstrip(_CUT)


class _Identified(msgspec.Struct):
    client_context_id: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"), name=MEMBER)
