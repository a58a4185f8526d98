"""Parts that the codecs share, and the features that a connection has negotiated."""

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
    """The body of a response is invalid."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Features of one connection."""

    features: frozenset[int] = frozenset()
    """HELLO features that the server granted."""
    bare: bool = False
    """Whether the server is a plain memcached, which supports only the basic opcodes and header (decision C27)."""
    compression: bool = True
    json_datatype: int = field(init=False)
    """Datatype of a JSON value; 0 if the server did not grant ``HelloFeature.JSON``."""
    deflates: bool = field(init=False)
    """Whether the client may send values compressed with snappy."""

    def __post_init__(self) -> None:
        json_datatype = int(Datatype.JSON) if HelloFeature.JSON in self.features else 0
        object.__setattr__(self, "json_datatype", json_datatype)
        object.__setattr__(self, "deflates", self.compression and HelloFeature.SNAPPY in self.features)


class Body(msgspec.Struct, frozen=True):
    """Parts of a request that depend on its operation."""

    extras: bytes = b""
    value: bytes = b""
    cas: int = 0
    document: Mapping[str, object] | None = None
    """Value as a JSON object to which the encoder adds the collection id. None if ``value`` is the complete value."""
    needs: tuple[tuple[HelloFeature, str], ...] = ()
    """Features that the operation needs, each with the name of the operation or option that needs it."""


class Payload(Enum):
    """Payload for which an operation needs no ``Body``."""

    WHOLE_DOCUMENT = "whole document"
    """Value, flags and expiry of a ``Store``."""


WHOLE_DOCUMENT = Payload.WHOLE_DOCUMENT


@dataclass(frozen=True, slots=True)
class Codec:
    """Encoder and decoder of one type of operation."""

    encode: Callable[..., Body] | Literal[Payload.WHOLE_DOCUMENT] | None
    """Function from the operation to its ``Body``, or a ``Payload``. None if the request has at most a key."""
    decode: Callable[..., Result]
    """Function from the operation, the response and the vbucket to the result."""
    bare_opcode: Opcode | None
    """Opcode for a plain memcached; None if a plain memcached does not support the operation."""


def mutation_token(operation: Operation, frame: Frame, vbucket: int) -> MutationToken | None:
    """Return the token of a mutation from the extras of its response. Return None if the server sent no token.

    Raises:
        struct.error: the extras have an invalid length.
    """
    if not frame.extras:
        return None
    vbucket_uuid, sequence_number = _TOKEN.unpack(frame.extras)
    return MutationToken(operation.keyspace.bucket or "", vbucket, vbucket_uuid, sequence_number)
