"""Measurement of the time that the transcoder takes for an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._telemetry.call_spans import encoding_call
from triclinium_core.client.call_attributes import attributes_of_mutation
from triclinium_core.kv.operation.document_operations import Keyspace, Operation
from triclinium_core.kv.operation.durability import DurabilityLevel

V = TypeVar("V")
T = TypeVar("T")


def encoded(
    driver: ClusterDriver,
    kind: type[Operation],
    encode: Callable[[V], T],
    value: V,
    *,
    keyspace: Keyspace,
    durability: DurabilityLevel,
) -> tuple[T, float]:
    """Return the result of ``encode``, and the seconds that it took, or 0 if they are not measured.

    Args:
        kind: type of the operation with this payload.
        keyspace: keyspace of the operation.
        durability: durability of the operation. It may still be invalid.
    """
    call = encoding_call.get()
    if call is None and not driver.measures_encoding:
        return encode(value), 0.0
    # Use the clock itself, because each call to trio.current_time() looks it up.
    now = trio.lowlevel.current_clock().current_time
    began_at = now()
    if call is not None:
        attributes = attributes_of_mutation(keyspace, durability)
        return call.encode(kind.name, attributes, encode, value), now() - began_at
    return encode(value), now() - began_at
