"""What operations return.

Source: SDK-RFC 0053 "Return Types".
"""

from __future__ import annotations

from typing import NewType, TypeVar

import msgspec

from triclinium_core.transcoding.transcoder import Transcoder

T = TypeVar("T")

Cas = NewType("Cas", int)
"""Version of a document: opaque, unsigned 64 bit, different after every mutation."""


class MutationToken(msgspec.Struct, frozen=True, gc=False):
    """Where a mutation stands in the history of its vbucket."""

    bucket: str
    vbucket: int
    vbucket_uuid: int
    sequence_number: int


class GetResult(msgspec.Struct, frozen=True, gc=False):
    """A document that was read."""

    cas: Cas
    flags: int
    data: bytes
    """The stored bytes, inflated."""
    transcoder: Transcoder

    @property
    def content(self) -> object:
        """The document as its transcoder sees it.

        Raises:
            DecodingFailureException: the stored bytes are not what the transcoder expects.
        """
        return self.transcoder.decode(self.data, self.flags, object)

    def content_as(self, as_type: type[T]) -> T:
        """Return the document converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: it does not fit.
        """
        return self.transcoder.decode(self.data, self.flags, as_type)


class GetReplicaResult(GetResult, frozen=True, gc=False):
    """A document that was read from any of its copies; a replica may be behind the active one."""

    is_replica: bool
    """Whether it came from a replica, and not from the active copy."""


class MutationResult(msgspec.Struct, frozen=True, gc=False):
    """A mutation that was applied."""

    cas: Cas
    mutation_token: MutationToken | None = None
    """None where the server does not send one."""


class ExistsResult(msgspec.Struct, frozen=True, gc=False):
    """Whether a document exists; true and false like its ``exists``."""

    exists: bool
    cas: Cas
    """0 where it does not exist, or where a plain memcached cannot tell."""

    def __bool__(self) -> bool:
        return self.exists


class CounterResult(msgspec.Struct, frozen=True, gc=False):
    """A counter after its change."""

    content: int
    cas: Cas
    mutation_token: MutationToken | None = None


class Done(msgspec.Struct, frozen=True, gc=False):
    """Success of an operation that has nothing to return: unlock, and our own NOOP."""


Result = GetResult | MutationResult | ExistsResult | CounterResult | Done
