"""Measurement of the time that the transcoder takes for an operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._telemetry.call_spans import encoding_call
from triclinium_core.client.call_attributes import attributes_of, name_of
from triclinium_core.kv.operation.document_operations import Mutation

V = TypeVar("V")
T = TypeVar("T")


def encoded(
    driver: ClusterDriver, encode: Callable[[V], T], value: V, without_payload: Callable[[], Mutation]
) -> tuple[T, float]:
    """Return the result of ``encode``, and the seconds that it took, or 0 if they are not measured.

    Args:
        without_payload: returns the operation with an empty payload, and raises for an invalid argument. It is called
            before the span of the call begins, or if ``encode`` raises.
    """
    # Use the clock itself, because each call to trio.current_time() looks it up.
    now = trio.lowlevel.current_clock().current_time
    call = encoding_call.get()
    if call is not None:
        operation = without_payload()
        call.begin(name_of(operation), attributes_of(operation))
        began_at = now()
        return call.encode_payload(partial(encode, value)), now() - began_at
    try:
        if not driver.measures_encoding:
            return encode(value), 0.0
        began_at = now()
        return encode(value), now() - began_at
    except Exception:
        # An invalid argument takes precedence over the value, as in a call with a span.
        without_payload()
        raise
