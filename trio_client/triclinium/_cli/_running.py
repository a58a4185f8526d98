"""Runs the asynchronous part of a command."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import click
import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_trio(work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Return what ``work(*args)`` returns.

    Two exceptions may leave a nursery in a group, where nobody would recognise them, and are taken out of it.

    Raises:
        click.Abort: Control-C.
        BrokenPipeError: nobody reads what the command prints.
    """
    ending: Exception
    try:
        return trio.run(work, *args)
    except* KeyboardInterrupt:
        ending = click.Abort()
    except* BrokenPipeError:
        ending = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    raise ending
