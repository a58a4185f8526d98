"""Rows of a request, as they arrive during the block of the request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import msgspec
import trio

from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.open_rows import OpenRows
from triclinium_core import decoder_faults, errors
from triclinium_core.error_context import ErrorContext
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.answer.decoded_limits import UNCOUNTED_SIZE_BYTES_MAX, TooManyParts, check_decodable
from triclinium_core.services.answer.surrogates import first_lone_surrogate
from triclinium_core.services.service_request import ServiceRequest, ServiceResult
from triclinium_core.shown import shown, total_repr
from triclinium_core.telemetry.tracing import RequestSpan, check_parent

if TYPE_CHECKING:
    # The default type of a row is object. Before 3.13, Python has no defaults for type variables.
    from typing_extensions import TypeVar as TypeVarWithDefault

    Row = TypeVarWithDefault("Row", default=object)
else:
    Row = TypeVar("Row")

MetaData = TypeVar("MetaData", bound=ServiceResult)


UNDECODABLE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""Exceptions of a decoder for a row that it cannot decode; hooks of user types may raise ValueError and TypeError."""


class RowsNotReadError(RuntimeError):
    """Error if the metadata is requested before all rows are read; the metadata follows the last row."""

    # Tracebacks show the module from which users import the class.
    __module__ = "triclinium.errors"


class RowResult(Generic[MetaData, Row]):
    """Rows of a request, in the order of the service: ``async for row in result``.

    Only the connection and a bounded buffer hold rows ahead of the loop, so a slow reader slows the service down. The
    loop is a checkpoint whenever it waits, and at least once for each piece in which rows arrive. There is no
    checkpoint between the rows of a piece.

    After the block, reading raises ``trio.ClosedResourceError``. Only one task may read at a time.
    """

    _has_own_decoder: ClassVar[bool] = False
    """Whether this library defines the row type, so that an unexpected exception of the decoder is a defect of the
    library."""
    _way_out: ClassVar[str] = "use row_type=bytes for its text, or request less in each row"
    """Next step after a row that is too large to be decoded."""

    _keeps_text: ClassVar[bool] = False
    """Whether the decoder keeps the rows as text, so that the number of parts in a row hardly affects the cost."""

    def __init__(self, driver: ClusterDriver, opened: OpenRows, decode: Callable[[bytes], Row]) -> None:
        self._driver = driver
        self._opened = opened
        self._decode = decode
        self._decode_any = decode
        """Decoder for rows of any size; ``_decode`` is the decoder for the newest rows."""
        self._choose_decoder()
        self._thread = get_ident()
        """Thread of the trio run that reads the rows."""
        self._position = 0
        """Index of the next row in the newest piece."""
        self._before = 0
        """Number of rows in earlier pieces."""
        self._is_left = False
        self._wait: trio.CancelScope | None = None
        """Cancel scope of the task that waits for rows; None if no task waits."""

    @total_repr
    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._opened.request!r}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Row:
        """Return the next row.

        Raises:
            StopAsyncIteration: there are no more rows.
            DecodingFailureException: the row is not of the requested type, has a lone surrogate, which only ``bytes``
                can hold, or is so large that decoding it would delay the event loop, which ``bytes`` avoids. The next
                call returns the following row, unless a defect in the client's own decoder ended the request.
            CouchbaseException: the reason why no more rows arrive.
            trio.ClosedResourceError: the block was left, the cluster is closed, or an earlier call failed or was
                cancelled.
            trio.BusyResourceError: another task waits for rows.
            RuntimeError: the caller is in another trio run.

        Cancellation: a cancelled wait abandons the request, and no more rows arrive.
        """
        if self._position == len(self._opened.rows) and not await self._wait_rows():
            raise StopAsyncIteration
        position = self._position
        self._position = position + 1
        try:
            return self._decode(self._opened.rows[position])
        except UNDECODABLE as error:
            raise self._undecodable(position, error) from error
        except Exception as error:
            if not self._has_own_decoder:
                raise
            raise self._failed(position, error) from error

    async def rows(self) -> list[Row]:
        """Return all remaining rows, for results that fit into memory.

        Exceptions and cancellation are those of ``async for``.
        """
        taken: list[Row] = []
        while await self._wait_rows():
            pending = self._opened.rows[self._position :]
            before = len(taken) - self._position
            try:
                taken.extend(map(self._decode, pending))
            except Exception as error:
                # ``extend`` has added the rows before the one that failed.
                failed = len(taken) - before
                self._position = failed + 1
                if not isinstance(error, UNDECODABLE):
                    if self._has_own_decoder:
                        raise self._failed(failed, error) from error
                    # A hook of the user's row type, such as ``__post_init__``, raised the error.
                    raise
                raise self._undecodable(failed, error) from error
            self._position = len(self._opened.rows)
        return taken

    async def metadata(self) -> MetaData:
        """Return the data that the service sends in addition to the rows.

        Raises:
            RowsNotReadError: rows are left; read them first.
            CouchbaseException: the request failed after its last row.
            trio.ClosedResourceError: as in ``async for``.

        Cancellation: a cancelled wait abandons the request.
        """
        if await self._wait_rows():
            raise RowsNotReadError(
                f"{self._opened.request.name} sends its metadata after the rows; first read all of them, as rows() does"
            )
        result = self._opened.result
        assert isinstance(result, ServiceResult), f"{self._opened.request.name} ended with {result!r}"
        return cast("MetaData", result)

    async def _wait_rows(self) -> bool:
        """Wait for more rows or for their end, and return whether there are more rows. A checkpoint if it returns."""
        if get_ident() != self._thread:
            self._driver.check_caller()
        self._check_block()
        if self._wait is not None:
            raise trio.BusyResourceError("another task is waiting for these rows; only one task may read at a time")
        opened = self._opened
        if self._position < len(opened.rows) or opened.result is not None:
            await trio.lowlevel.checkpoint()
        elif opened.is_over:
            raise trio.ClosedResourceError(
                "no more rows are available: an earlier call failed or was cancelled; send the request again"
            )
        else:
            try:
                with trio.CancelScope() as self._wait:
                    await self._driver.more_rows(opened)
            finally:
                self._wait = None
            self._before += self._position
            self._position = 0
            self._choose_decoder()
        if self._is_left:
            # The block was left meanwhile. If the rows had arrived already, the wait was not cancelled.
            self._driver.close_rows(opened)
            opened.rows = ()
            raise trio.ClosedResourceError(
                "the block was left while this call waited for rows; read its rows inside it"
            )
        return self._position < len(opened.rows)

    def _choose_decoder(self) -> None:
        """Choose a decoder that counts the parts of large rows first, or one that counts nothing if no row is large."""
        is_counted = not self._keeps_text and self._decode_any is not bytes
        is_large = is_counted and max(map(len, self._opened.rows), default=0) > UNCOUNTED_SIZE_BYTES_MAX
        self._decode = self._decode_large if is_large else self._decode_any

    def _decode_large(self, row: bytes) -> Row:
        check_decodable(row)
        return self._decode_any(row)

    def _check_block(self) -> None:
        if self._is_left:
            raise trio.ClosedResourceError("the block was left; read its rows inside it")

    def _undecodable(self, position: int, error: Exception) -> errors.DecodingFailureException:
        context: ErrorContext = self._opened.request.error_context()
        if isinstance(error, TooManyParts):
            what = f"row {self._before + position} has {error}: {self._way_out}"
            return errors.DecodingFailureException(what, context)
        lone = first_lone_surrogate(self._opened.rows[position])
        why = (
            f"does not have the requested type: {error}"
            if lone is None
            else f"cannot be decoded: {lone} (byte {lone.offset})"
        )
        return errors.DecodingFailureException(f"row {self._before + position} {why}", context)

    def _failed(self, position: int, error: Exception) -> errors.DecodingFailureException:
        """Abandon the request after its decoder failed on a row, and return the exception for the caller."""
        fault = decoder_faults.unexpected(decoder_faults.Decoder.ROW, error)
        self._driver.close_rows(self._opened, fault)
        self._opened.rows, self._position = (), 0
        return errors.DecodingFailureException(
            f"row {self._before + position}: {fault}", self._opened.request.error_context()
        )

    def _close(self) -> None:
        self._is_left = True
        if self._wait is not None:
            self._wait.cancel()
        self._driver.close_rows(self._opened)
        self._opened.rows, self._position = (), 0


def decoder_of(row_type: type[Row] | None) -> Callable[[bytes], Row]:
    """Return the decoder of rows: into ``row_type``, into built-in types for None, or into the text for ``bytes``.

    Raises:
        InvalidArgumentException: JSON cannot be decoded into this type.
    """
    if row_type is bytes:
        return bytes  # type: ignore[return-value]  # Row is bytes here
    try:
        decoder: msgspec.json.Decoder[Row] = msgspec.json.Decoder(object if row_type is None else row_type)
    except (TypeError, ValueError, NameError, RecursionError) as error:
        # To word its error, msgspec calls the repr of the type, which may raise. An unknown name in an annotation raises
        # NameError.
        raise errors.InvalidArgumentException(
            f"row_type={shown(row_type)} is not a type for decoding JSON: {error}", parameter="row_type"
        ) from error
    return decoder.decode


Result = TypeVar("Result", bound=RowResult[Any, Any])


class RowsBlock(AbstractAsyncContextManager[Result]):
    """Context manager that gives a block the rows of a request, once. Use without a block raises an error with a hint.

    Entering waits for the first rows or the end, and raises the error of a request that fails before that. Leaving
    abandons the remaining rows.

    Args:
        made: returns the object that the block gets.
    """

    def __init__(
        self,
        made: Callable[[OpenRows], Result],
        driver: ClusterDriver,
        request: ServiceRequest,
        strategy: AnyRetryStrategy | None,
        parent: RequestSpan | None,
    ) -> None:
        self._made = made
        self._driver = driver
        self._request = request
        self._strategy = strategy
        self._parent = parent if parent is None else check_parent(parent)
        self._result: Result | None = None
        self._is_entered = False

    @total_repr
    def __repr__(self) -> str:
        return f"<the rows of {self._request!r}, for `async with`>"

    async def __aenter__(self) -> Result:
        if self._is_entered:
            raise RuntimeError(f"this block was already entered; call {self._request.name} again")
        self._is_entered = True
        opened = await self._driver.open_rows(self._request, self._strategy, self._parent)
        self._result = result = self._made(opened)
        return result

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._result is not None:
            self._result._close()

    def __await__(self) -> Generator[object, None, Result]:
        raise TypeError(f"rows cannot be awaited; {self._hint}")

    def __aiter__(self) -> AsyncIterator[object]:
        raise TypeError(f"rows are available in a block only; {self._hint}")

    def __getattr__(self, name: str) -> object:
        if name == "_request":
            # The constructor has not set ``_request``, which the hint below needs.
            raise AttributeError("the block was not initialised", name=name, obj=self)
        raise AttributeError(f"no {name!r} outside a block; {self._hint}", name=name, obj=self)

    @property
    def _hint(self) -> str:
        return f"write `async with` around {self._request.name}, as in `async with … as result: rows = await result.rows()`"
