"""Answers of commands of the fake node, and the exceptions of refused ones."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from triclinium_core.kv.wire.constants import Datatype, HelloFeature
from triclinium_core.retry.couchbase import Status


class CommandAnswer(msgspec.Struct, frozen=True):
    """A reply before it is fitted to the features of its connection.

    ``datatype`` says what the value is; bits that the connection has not been granted are left out. ``deflates_with``
    is the feature that permits the value to travel deflated.
    """

    status: int = Status.SUCCESS
    cas: int = 0
    extras: bytes = b""
    value: bytes = b""
    datatype: int = Datatype.RAW
    deflates_with: HelloFeature | None = None
    before: tuple[CommandAnswer, ...] = ()
    """What is answered before it, under the same opaque."""


class CommandRefused(Exception):
    """A command that is answered with a failure.

    ``context`` is a line for people, which travels where XERROR is granted; ``body`` is JSON that travels whatever is granted.
    """

    def __init__(self, status: Status, context: str = "", *, body: bytes = b"") -> None:
        super().__init__(status, context)
        self.status = status
        self.context = context
        self.body = body

    def answer(self, status: int, *, with_context: bool) -> CommandAnswer:
        """Return the reply, with the status that the client can be told.

        Source: kv_engine docs/BinaryProtocol.md, "Response" (extended error information).
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
    """Return the JSON that explains a failure, with further fields beside ``error``."""
    document: Mapping[str, object] = {"error": {"context": context}, **fields}
    return msgspec.json.encode(document)
