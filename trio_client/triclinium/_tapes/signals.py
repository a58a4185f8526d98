"""Signals that save tapes. One handler serves all clusters of a program, whatever the order in which they end.

``trio.open_signal_receiver`` does not fit: at its end, it raises a pending signal again, and restores the handler that
was current at its beginning. Both can cause the default action, which ends the program.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import trio

_listeners: dict[int, list[tuple[trio.lowlevel.TrioToken, Callable[[], None]]]] = {}
"""Listeners of each signal, in any trio run."""
_earlier: dict[int, Any] = {}
"""Handler of each signal before its first listener."""


def _handle(number: int, _: object) -> None:
    for token, notify in tuple(_listeners.get(number, ())):
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(notify, idempotent=True)


@contextmanager
def listening(number: signal.Signals, notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` in the loop of the current trio run at the signal, during the block and perhaps shortly after.

    The end of the last block restores the earlier handler, unless the program has replaced the handler of this
    module. Only the main thread can call this.

    Args:
        notify: function that raises nothing. Signals that arrive together may cause only one call.
    """
    listeners, listener = _listeners.setdefault(number, []), (trio.lowlevel.current_trio_token(), notify)
    listeners.append(listener)
    earlier = _earlier.setdefault(number, signal.getsignal(number))
    try:
        if len(listeners) == 1:
            signal.signal(number, _handle)
        yield
    finally:
        listeners.remove(listener)
        if not listeners:
            del _listeners[number], _earlier[number]
            if earlier is not None and signal.getsignal(number) is _handle:
                signal.signal(number, earlier)
