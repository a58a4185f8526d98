"""Replies to commands of the fake node, and the exception for refused commands."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from triclinium_core.kv.wire.constants import Datatype, HelloFeature
from triclinium_core.retry.couchbase import Status


class CommandAnswer(msgspec.Struct, frozen=True):
    """A reply before it is adapted to the features of its connection.

    ``datatype`` describes the value; bits that the connection has not negotiated are omitted. ``deflates_with`` is the
    feature that permits a deflated value; None if no feature does.
    """

    status: int = Status.SUCCESS
    cas: int = 0
    extras: bytes = b""
    value: bytes = b""
    datatype: int = Datatype.RAW
    deflates_with: HelloFeature | None = None
    before: tuple[CommandAnswer, ...] = ()
    """Replies with the same opaque that the node sends before this reply."""


class CommandRefused(Exception):
    """Exception for a command that the node answers with a failure.

    ``context`` is a human-readable line, sent if XERROR is negotiated and ``body`` is empty; ``body`` is always sent.
    """

    def __init__(self, status: Status, context: str = "", *, body: bytes = b"") -> None:
        super().__init__(status, context)
        self.status = status
        self.context = context
        self.body = body

    def answer(self, status: int, *, with_context: bool) -> CommandAnswer:
        """Return the reply, with a status that the client understands.

        Source: kv_engine docs/ErrorMap.md, "Protocol"; daemon/cookie.cc (the JSON body).
        """
        body = self.body
        if not body and with_context and self.context:
            body = error_body(self.context)
        return CommandAnswer(
            status,
            value=body,
            datatype=Datatype.JSON if body else Datatype.RAW,
            deflates_with=HelloFeature.SNAPPY_EVERYWHERE,
        )


def error_body(context: str, **fields: object) -> bytes:
    """Return the JSON that explains a failure, with further fields next to ``error``."""
    document: Mapping[str, object] = {"error": {"context": context}, **fields}
    return msgspec.json.encode(document)
