"""Checks that a call runs on trio, and in the trio run of its object."""

from __future__ import annotations

import trio


def not_on_trio(what: str) -> RuntimeError:
    """Return the error of a call outside of trio. ``what`` is the reason and a next step, without ``in trio.run``."""
    return RuntimeError(f"{what} in trio.run, or in anyio.run(backend='trio')")


class TrioRun:
    """Trio run in which this object is created. Other runs have other schedulers and cannot use its objects.

    Raises:
        RuntimeError: the object is created outside of a trio run.
    """

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()

    def check_caller(self) -> None:
        """Return if the caller is in this run.

        Raises:
            RuntimeError: the caller is in another run, such as that of another thread, or in none. Nothing has
                happened.
        """
        try:
            here = trio.lowlevel.current_trio_token()
        except RuntimeError:
            here = None
        if here is not self._token:
            raise RuntimeError(
                "the cluster was opened in another trio.run; open one in each run, or make the call in that run "
                "with trio.from_thread"
            )
