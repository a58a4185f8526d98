"""What a codec is made of, and what may be said on one connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triclinium_core.kv.operation.body import Body
from triclinium_core.kv.operation.requests import Operation
from triclinium_core.kv.operation.results import Result
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame


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


@dataclass(frozen=True, slots=True)
class Codec:
    """How one operation travels."""

    encode: Callable[[Operation], Body]
    decode: Callable[[Operation, Frame, int], Result]
    bare_opcode: Opcode | None
    """Opcode for a plain memcached; None where it has nothing like it."""
