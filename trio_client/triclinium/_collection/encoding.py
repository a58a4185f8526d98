"""How long the transcoder took for the payload of an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from triclinium._driver.driver import Driver
from triclinium._telemetry.call_spans import encoding_call
from triclinium_core.kv.operation.requests import Operation

V = TypeVar("V")
T = TypeVar("T")


def encoded(driver: Driver, kind: type[Operation], encode: Callable[[V], T], value: V) -> tuple[T, float]:
    """Return what ``encode`` makes of a value, and how many seconds that took; 0 if it is not measured.

    Args:
        kind: of the operation that the payload is for.
    """
    call = encoding_call.get()
    if call is None and not driver.measures_encoding:
        return encode(value), 0.0
    began_at = driver.current_time()
    payload = encode(value) if call is None else call.encode(kind.name, encode, value)
    return payload, driver.current_time() - began_at
