"""How long the transcoder took for the payload of an operation, for whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import trio

from triclinium._driver.driver import Driver
from triclinium._telemetry.call_spans import encoding_call
from triclinium_core.kv.operation.requests import Operation

P = ParamSpec("P")
T = TypeVar("T")


def encoded(
    driver: Driver, kind: type[Operation], encode: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[T, float]:
    """Return what ``encode`` makes of a value, and how many seconds that took; 0 where nobody wants to know.

    Args:
        kind: of the operation that the payload is for.
    """
    call = encoding_call.get()
    if call is None and not driver.measures_encoding:
        return encode(*args, **kwargs), 0.0
    began_at = trio.current_time()
    payload = encode(*args, **kwargs) if call is None else call.encode(kind.name, encode, *args, **kwargs)
    return payload, trio.current_time() - began_at
