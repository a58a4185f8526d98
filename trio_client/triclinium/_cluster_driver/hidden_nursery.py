"""A nursery that the user never sees: background work for the length of a block."""

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
"""What ``async with`` calls in the end: with the type of the block's exception, the exception, and its traceback."""


class BackgroundWork(Protocol):
    """Work that goes on while a block runs."""

    started: trio.Event
    """Set once the block may begin."""

    async def run(self) -> None:
        """Work until ``close``, shielded from the cancel scopes around it. Whatever it raises is a defect."""
        ...

    def close(self) -> None:
        """Have ``run`` end. What it waits for after that is reached by the cancel scopes around it."""
        ...


class _Leaving:
    """``__aexit__`` of ``in_background``, as a function and no method.

    Right after Python has called a bound ``__aexit__``, and before it awaits what that returned, it looks for signals in
    the frame of the block. Into a function it goes without a look.
    """

    def __get__(self, block: in_background[T] | None, kind: type[in_background[T]]) -> Leave:
        # An exit stack takes it from the class, and passes the block.
        return (lambda given, *ending: _leave(given)(*ending)) if block is None else _leave(block)


def _leave(block: in_background[T]) -> Leave:
    """Return the function that ends ``block``. The block does not keep it: a block and its function would form a cycle."""

    @trio.lowlevel.enable_ki_protection
    async def leave(
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await block._end(error)

    return leave


class in_background(Generic[T]):  # noqa: N801  # it reads as the function that it could be
    """Have ``service`` work while the block runs; the block is given ``gives``.

    The end of the block waits for what the service still has to do then, unless the block is left by an exception, which
    cancels that, as it cancels the tasks of a nursery.

    The block's exception is carried around the nursery, not through it: a nursery would put it into a group, and split
    and copy one that is a group already.

    It is a class, for Control-C must not strike between the end of the block and ``close``: it would leave a service that
    nobody ends. A generator is resumed by frames of the standard library, which nothing protects.

    Raises:
        InternalError: on leaving: the service crashed, which had cancelled the block.
        RuntimeError: on entering: this is not trio, or it was entered before.
    """

    def __init__(self, service: BackgroundWork, gives: T) -> None:
        self._service = service
        self._gives = gives
        self._nursery: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._scope: trio.CancelScope

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> T:
        if not trio.lowlevel.in_trio_task():
            raise not_on_trio("connections are tasks of trio; open them")
        if self._nursery is not None:
            raise RuntimeError("this block was entered before; make another one for the next time")
        self._nursery = trio.open_nursery()
        nursery = await self._nursery.__aenter__()
        self._scope = nursery.cancel_scope
        nursery.start_soon(self._service.run)
        try:
            await self._service.started.wait()
        except BaseException as error:
            await self._end(error)
            raise
        return self._gives

    __aexit__ = _Leaving()

    async def _end(self, body_error: BaseException | None) -> None:
        """End the service, and raise what leaves the block in the place of its own exception."""
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
            # Else the exception, its traceback and this frame would hold on to each other.
            del leaving, body_error, crash


def _leaving_after(crash: BaseExceptionGroup, body_error: BaseException | None) -> BaseException:
    """Return what leaves the block when the background has crashed, which had cancelled the block, or was cancelled."""
    if crash.split(trio.Cancelled)[1] is None:
        # By the scopes around the block, while its end waited.
        return _first(crash) if body_error is None else body_error
    if not isinstance(crash, Exception):
        # No defect: Control-C, or SystemExit. What ends a program arrives as itself, so that it can be caught.
        return _alone(crash)
    own = _without_cancelled(body_error)
    if own is not None:
        own.add_note(f"Meanwhile, a background task of triclinium crashed: {crash!r}")
        return own
    error = errors.InternalError("a background task of triclinium crashed; please report this with the cause")
    error.__cause__ = crash
    return error


def _alone(group: BaseExceptionGroup) -> BaseException:
    """Return the one exception that a group holds beside cancellations; the group where it holds several."""
    _, rest = group.split(trio.Cancelled)
    found: BaseException | None = rest
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return group if found is None or isinstance(found, BaseExceptionGroup) else found


def _first(group: BaseExceptionGroup) -> BaseException:
    """Return the first exception of a group, however deep it stands."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _without_cancelled(error: BaseException | None) -> BaseException | None:
    """Return what the block raised on its own account: the crash had cancelled it."""
    if isinstance(error, BaseExceptionGroup):
        cancelled, rest = error.split(trio.Cancelled)
        return rest if cancelled is not None else error
    return None if isinstance(error, trio.Cancelled) else error
