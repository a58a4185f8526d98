"""Hidden nursery, whose background work runs while a block of the user runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, Protocol, TypeVar

import trio

from triclinium._trio_run import not_on_trio
from triclinium_core import errors

T = TypeVar("T")

Leave = Callable[..., Coroutine[object, object, None]]
"""Function that ``async with`` calls at its end with the type, the value and the traceback of the block's exception."""


class BackgroundWork(Protocol):
    """Work in the background of a block."""

    started: trio.Event
    """Event that is set when the block may begin."""

    async def run(self) -> None:
        """Work until ``close``, shielded from the cancel scopes around it. Any ``Exception`` it raises is a defect."""
        ...

    def close(self) -> None:
        """Let ``run`` end after its remaining waits, which the cancel scopes around it can now cancel."""
        ...


class Leavable(Protocol):
    """Block whose ``__aexit__`` is ``Leaving()``."""

    async def leave(self, body_error: BaseException | None) -> None:
        """End the block. If another exception replaces ``body_error``, raise it."""
        ...


class Leaving:
    """``__aexit__`` of a block as a plain function instead of a method.

    After Python calls a bound ``__aexit__``, and before it awaits the result, it checks for signals in the frame of the
    block. Python enters a plain function without this check.
    """

    def __get__(self, block: Leavable | None, kind: type[Leavable]) -> Leave:
        # An exit stack gets the attribute from the class, and passes the block.
        return (lambda given, *ending: _leave(given)(*ending)) if block is None else _leave(block)


def _leave(block: Leavable) -> Leave:
    """Return the function that ends ``block``. The block does not store it: both would form a cycle."""

    @trio.lowlevel.enable_ki_protection
    async def leave(
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await block.leave(error)

    return leave


class in_background(Generic[T]):  # noqa: N801  # it reads as the function that it could be
    """Context manager that runs ``service`` while its block runs, and gives the block the object ``gives``.

    At its end, the block waits for the remaining work of the service. An exception of the block cancels this work, as
    it cancels the tasks of a nursery.

    The block's exception passes around the nursery, not through it: a nursery would wrap it in a group, and would split
    and copy an exception that is already a group.

    This is a class and not a generator, because Control-C must not be raised between the block's end and ``close``:
    the service would keep running. The standard library resumes generators in its own frames, which are not protected.

    Raises:
        InternalError: on leaving: the service crashed and cancelled the block.
        RuntimeError: on entering: the event loop is not trio's, or the object was entered before.
    """

    def __init__(self, service: BackgroundWork, gives: T) -> None:
        self._service = service
        self._gives = gives
        self._nursery: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._scope: trio.CancelScope

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> T:
        if not trio.lowlevel.in_trio_task():
            raise not_on_trio("connections run as trio tasks; open them")
        if self._nursery is not None:
            raise RuntimeError("this block was already entered; create a new one each time")
        self._nursery = trio.open_nursery()
        nursery = await self._nursery.__aenter__()
        self._scope = nursery.cancel_scope
        nursery.start_soon(self._service.run)
        try:
            await self._service.started.wait()
        except BaseException as error:
            await self.leave(error)
            raise
        return self._gives

    __aexit__: Leaving = Leaving()

    async def leave(self, body_error: BaseException | None) -> None:
        """End the service. If another exception replaces that of the block, raise it."""
        assert self._nursery is not None
        self._service.close()
        if body_error is not None:
            self._scope.cancel()
        crash: BaseExceptionGroup | None = None
        try:
            await self._nursery.__aexit__(None, None, None)
        except BaseExceptionGroup as group:
            crash = group
        leaving = body_error if crash is None else _leaving_after(crash, body_error)
        try:
            if leaving is not None and leaving is not body_error:
                raise leaving
        finally:
            # Otherwise the exception, its traceback and this frame would form a cycle.
            del leaving, body_error, crash


def _leaving_after(crash: BaseExceptionGroup, body_error: BaseException | None) -> BaseException:
    """Return the exception with which the block ends after its background work crashed or was cancelled."""
    if crash.split(trio.Cancelled)[1] is None:
        # Nothing crashed: a scope around the block was cancelled.
        return _first(crash) if body_error is None else body_error
    if not isinstance(crash, Exception):
        # For example Control-C, not a defect. Raise a lone exception without its group, so that ``except`` catches it.
        return _alone(crash)
    own = _without_cancelled(body_error)
    if own is not None:
        own.add_note(f"Meanwhile, a background task of triclinium crashed: {crash!r}")
        return own
    error = errors.InternalError("a background task of triclinium crashed; please report this with the cause")
    error.__cause__ = crash
    return error


def _alone(group: BaseExceptionGroup) -> BaseException:
    """Return the only exception of a group besides cancellations; the group if it has several."""
    _, rest = group.split(trio.Cancelled)
    found: BaseException | None = rest
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return group if found is None or isinstance(found, BaseExceptionGroup) else found


def _first(group: BaseExceptionGroup) -> BaseException:
    """Return the first exception of a group, at any depth."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _without_cancelled(error: BaseException | None) -> BaseException | None:
    """Return the block's exception without the ``Cancelled`` that the crash caused; None if nothing is left."""
    if isinstance(error, BaseExceptionGroup):
        cancelled, rest = error.split(trio.Cancelled)
        return rest if cancelled is not None else error
    return None if isinstance(error, trio.Cancelled) else error
