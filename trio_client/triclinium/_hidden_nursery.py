"""A nursery that the user never sees: background work for the length of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from triclinium_core.errors import InternalError


class Service(Protocol):
    """Work that goes on while a block runs."""

    started: trio.Event
    """Set once the block may begin."""

    async def run(self) -> None:
        """Work until ``close``, shielded from the cancel scopes around it. Whatever it raises is a defect."""
        ...

    def close(self) -> None:
        """Have ``run`` end at once."""
        ...


@asynccontextmanager
@trio.lowlevel.enable_ki_protection
async def in_background(service: Service) -> AsyncIterator[None]:
    """Have ``service`` work while the block runs.

    The block's exception is carried around the nursery, not through it: a nursery would put it into a group, and split
    and copy one that is a group already.

    Raises:
        InternalError: the service crashed, which had cancelled the block.
    """
    # Protected from Control-C: between the end of the block and ``close`` it would leave a service that nobody ends.
    body_error: BaseException | None = None
    crash: BaseExceptionGroup | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.run)
            try:
                await service.started.wait()
                yield
            except BaseException as error:
                body_error = error
            service.close()
    except BaseExceptionGroup as group:
        crash = group
    leaving = body_error if crash is None else _leaving_after(crash, body_error)
    if leaving is not None:
        try:
            raise leaving
        finally:
            # Else the exception, its traceback and this frame would hold on to each other.
            del leaving, body_error, crash


def _leaving_after(crash: BaseExceptionGroup, body_error: BaseException | None) -> BaseException:
    """Return what leaves the block when the background has crashed, which had cancelled the block."""
    if not isinstance(crash, Exception):
        # No defect: Control-C, or SystemExit.
        crash.__context__ = body_error
        return crash
    own = _without_cancelled(body_error)
    if own is not None:
        own.add_note(f"Meanwhile, a background task of triclinium crashed: {crash!r}")
        return own
    error = InternalError("a background task of triclinium crashed; please report this with the cause")
    error.__cause__ = crash
    return error


def _without_cancelled(error: BaseException | None) -> BaseException | None:
    """Return what the block raised on its own account: the crash had cancelled it."""
    if isinstance(error, BaseExceptionGroup):
        cancelled, rest = error.split(trio.Cancelled)
        return rest if cancelled is not None else error
    return None if isinstance(error, trio.Cancelled) else error
