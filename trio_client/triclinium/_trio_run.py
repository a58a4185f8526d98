"""Checks that a call is made on trio, and in the run of trio that its object belongs to."""

from __future__ import annotations

import trio


def not_on_trio(what: str) -> RuntimeError:
    """Return the error of a call on another event loop, or on none; ``what`` says what to call there, and why."""
    return RuntimeError(f"{what} in trio.run, or in anyio.run(backend='trio')")


class TrioRun:
    """The run of trio that it is made in. What lives in one run cannot be used from another: they share no scheduler.

    Raises:
        RuntimeError: it is made outside of any.
    """

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def check_caller(self) -> None:
        """Let callers of this run pass.

        Raises:
            RuntimeError: the caller is in another run, such as that of another thread, or in none. Nothing has happened.
        """
        try:
            here = trio.lowlevel.current_trio_token()
        except RuntimeError:
            here = None
        if here is not self._token:
            raise RuntimeError(
                "the cluster was opened in another trio.run; open one in each run, or have that run make the call, with "
                "trio.from_thread.run"
            )
