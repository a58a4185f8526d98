"""Common parts of the codecs, and the features that one connection has negotiated."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import msgspec

from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.results import MutationToken, Result
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame

_TOKEN = struct.Struct(">QQ")


class MalformedResponse(ValueError):
    """A response with a body that cannot be, whatever it says."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What may be said on one connection."""

    features: frozenset[int] = frozenset()
    """HELLO features that the server granted."""
    bare: bool = False
    """A plain memcached: only opcodes and the header that it knows (decision C27)."""
    compression: bool = True
    json_datatype: int = field(init=False)
    """Datatype of a JSON value; 0 if the server did not grant the feature."""
    deflates: bool = field(init=False)
    """Whether values may be sent deflated."""

    def __post_init__(self) -> None:
        json_datatype = int(Datatype.JSON) if HelloFeature.JSON in self.features else 0
        object.__setattr__(self, "json_datatype", json_datatype)
        object.__setattr__(self, "deflates", self.compression and HelloFeature.SNAPPY in self.features)


class Body(msgspec.Struct, frozen=True):
    """What of a request depends on its operation."""

    extras: bytes = b""
    value: bytes = b""
    cas: int = 0
    document: Mapping[str, object] | None = None
    """What the value says as JSON, beside the id of the collection; None where ``value`` is all."""
    needs: tuple[tuple[HelloFeature, str], ...] = ()
    """Further features without which it cannot be asked for, each with what asks for it."""


class Payload(Enum):
    """Payload that needs no ``Body``."""

    WHOLE_DOCUMENT = "whole document"
    """Value, flags and expiry of a ``Store``."""


WHOLE_DOCUMENT = Payload.WHOLE_DOCUMENT


@dataclass(frozen=True, slots=True)
class Codec:
    """How one operation travels."""

    encode: Callable[..., Body] | Literal[Payload.WHOLE_DOCUMENT] | None
    """Takes the operation; None where its key says everything."""
    decode: Callable[..., Result]
    """Takes the operation, the answer and the vbucket."""
    bare_opcode: Opcode | None
    """Opcode for a plain memcached; None where it has nothing like it."""


def mutation_token(operation: Operation, frame: Frame, vbucket: int) -> MutationToken | None:
    """Return where a mutation stands in the history of its vbucket; None where the server does not tell.

    Raises:
        struct.error: the extras have an impossible length.
    """
    if not frame.extras:
        return None
    vbucket_uuid, sequence_number = _TOKEN.unpack(frame.extras)
    return MutationToken(operation.keyspace.bucket or "", vbucket, vbucket_uuid, sequence_number)
