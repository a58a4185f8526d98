"""What the codecs of all operations share."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.kv.wire.frame import Frame

_TOKEN = struct.Struct(">QQ")


class Body(msgspec.Struct, frozen=True):
    """What of a request depends on its operation."""

    extras: bytes = b""
    value: bytes = b""
    cas: int = 0
    flags: int | None = None
    """Common flags of a whole document; None where the value is none."""
    preserve_expiry: bool = False
    document: Mapping[str, object] | None = None
    """What the value says as JSON, beside the id of the collection; None where ``value`` is all."""
    needs: tuple[tuple[HelloFeature, str], ...] = ()
    """Further features without which it cannot be asked for, each with what asks for it."""


NO_BODY = Body()
"""Of a request that is all key."""


def mutation_token(operation: Operation, frame: Frame, vbucket: int) -> MutationToken | None:
    """Return where a mutation stands in the history of its vbucket; None where the server does not tell.

    Raises:
        struct.error: the extras have an impossible length.
    """
    if not frame.extras:
        return None
    vbucket_uuid, sequence_number = _TOKEN.unpack(frame.extras)
    return MutationToken(operation.keyspace.bucket or "", vbucket, vbucket_uuid, sequence_number)
