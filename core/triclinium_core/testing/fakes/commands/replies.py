"""Encoder of replies and of unsolicited notifications, according to the features of their connection.

Source: kv_engine docs/BinaryProtocol.md, "Data Types", 'Response header with "flexible framing extras"' and server
request 0x01; docs/ErrorMap.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from triclinium_core.kv.wire.compression import deflate
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import Frame, encode_response, encode_server_request
from triclinium_core.kv.wire.framing_extras import ResponseFrameInfo, encode_framing_extras, encode_server_duration_us
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.answers import CommandAnswer
from triclinium_core.testing.fakes.store.state import ClientConnection, NodeState

SERVER_DURATION_US = 25.0
"""Duration in microseconds that the node reports for every command; it adds the delay of a reply."""

_WITHOUT_XERROR: Mapping[int, Status | None] = {
    Status.LOCKED: Status.KEY_EXISTS,
    Status.NOT_LOCKED: Status.TEMPORARY_FAILURE,
    Status.NO_BUCKET: None,
    Status.NO_ACCESS: None,
    Status.DURABILITY_INVALID_LEVEL: None,
    Status.DURABILITY_IMPOSSIBLE: None,
    Status.SYNC_WRITE_IN_PROGRESS: Status.TEMPORARY_FAILURE,
    Status.SYNC_WRITE_AMBIGUOUS: Status.TEMPORARY_FAILURE,
    Status.SYNC_WRITE_RE_COMMIT_IN_PROGRESS: Status.TEMPORARY_FAILURE,
}
"""Statuses that require XERROR, with the status for older clients; None if the node closes the connection instead."""

_LOCK_OPCODES = frozenset((Opcode.GET_AND_LOCK, Opcode.UNLOCK))
_MANIFEST_STATUSES = frozenset((Status.UNKNOWN_COLLECTION, Status.UNKNOWN_SCOPE))


def visible_status(connection: ClientConnection, opcode: int, status: int) -> int | None:
    """Return the status that this client understands; None if the node can only close the connection."""
    if connection.has(HelloFeature.XERROR):
        return status
    if status == Status.LOCKED and opcode in _LOCK_OPCODES:
        return Status.TEMPORARY_FAILURE
    if status in _MANIFEST_STATUSES and not connection.has(HelloFeature.COLLECTIONS):
        return Status.INVALID_ARGUMENTS
    return _WITHOUT_XERROR.get(status, status)


def fitted(connection: ClientConnection, answer: CommandAnswer) -> CommandAnswer:
    """Return the answer with its value in a form that the connection accepts, deflated if negotiated and worthwhile."""
    value, datatype = answer.value, answer.datatype
    if not connection.has(HelloFeature.JSON):
        datatype &= ~Datatype.JSON
    if answer.deflates_with is not None and connection.has(answer.deflates_with):
        deflated = deflate(value)
        if deflated is not None:
            value, datatype = deflated, datatype | Datatype.SNAPPY
    return msgspec.structs.replace(answer, value=value, datatype=datatype)


def encode_reply(connection: ClientConnection, frame: Frame, answer: CommandAnswer, *, delay: float = 0.0) -> bytes:
    """Return the reply to ``frame``. If negotiated, the reply has the server duration, which includes ``delay``."""
    framing_extras = b""
    if connection.has(HelloFeature.TRACING):
        duration = encode_server_duration_us(SERVER_DURATION_US + delay * 1_000_000)
        framing_extras = encode_framing_extras({ResponseFrameInfo.SERVER_DURATION: duration.to_bytes(2, "big")})
    return encode_response(
        frame.opcode,
        opaque=frame.opaque,
        status=answer.status,
        cas=answer.cas,
        datatype=answer.datatype,
        framing_extras=framing_extras,
        extras=answer.extras,
        value=answer.value,
    )


def encode_answer(connection: ClientConnection, frame: Frame, answer: CommandAnswer, *, delay: float = 0.0) -> bytes:
    """Return all replies of an answer, each in a form that the connection accepts."""
    answers = (*answer.before, answer)
    return b"".join(encode_reply(connection, frame, fitted(connection, each), delay=delay) for each in answers)


_OPAQUE = 0xC0FF_EE00
"""Opaque of notifications; the node ignores the client's responses to them."""


def encode_notification(node: NodeState, connection: ClientConnection) -> bytes | None:
    """Return the notification of the current config, in the subscribed form.

    Return None if the client is not subscribed or not authenticated.
    """
    is_brief = connection.has(HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF)
    if not (is_brief or connection.has(HelloFeature.CLUSTERMAP_NOTIFICATION)) or not connection.is_authenticated:
        return None
    config = CommandAnswer()
    if not is_brief:
        answer = CommandAnswer(
            value=node.config_for(connection), datatype=Datatype.JSON, deflates_with=HelloFeature.SNAPPY_EVERYWHERE
        )
        config = fitted(connection, answer)
    return encode_server_request(
        ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION,
        opaque=_OPAQUE,
        datatype=config.datatype,
        extras=CONFIG_VERSION.pack(*node.map.version),
        key=(connection.bucket or "").encode(),
        value=config.value,
    )
