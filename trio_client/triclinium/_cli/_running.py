"""Runs the asynchronous part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import click
import trio

from triclinium._cli._output import OutputLost

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_trio(work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Return what ``work(*args)`` returns.

    Two exceptions may leave a nursery in a group, where nobody would recognise them, and are taken out of it.

    Raises:
        click.Abort: Control-C.
        OutputLost: what the command prints cannot be written.
    """
    ending: Exception
    try:
        return trio.run(work, *args)
    except* KeyboardInterrupt:
        ending = click.Abort()
    except* OutputLost as group:
        ending = group
        while isinstance(ending, ExceptionGroup):
            ending = ending.exceptions[0]
    raise ending
