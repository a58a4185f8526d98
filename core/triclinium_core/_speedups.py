"""Choice between two header decoders: Python or ``triclinium_c``. No other module of the core imports the latter."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from triclinium_core.kv.wire.header import malformed_frame, scan_headers

Implementation = Literal["python", "c"]


class Scanner(Protocol):
    """Interface of a header decoder that reads one buffer."""

    def scan(self, start: int, end: int, /) -> list[int]:
        """Return ten unsigned ints for every complete frame in ``buffer[start:end]``, as ``scan_headers`` does.

        Raises:
            MalformedFrame: the first frame is invalid.
            ValueError: ``start`` or ``end`` is outside the buffer. Do not call this after ``release``.
        """
        ...

    def release(self) -> None:
        """Release the buffer, so that it can change its size. The scanner is unusable afterwards."""
        ...


class PythonScanner:
    """Header decoder in Python: ``scan_headers`` over one buffer."""

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer

    def scan(self, start: int, end: int, /) -> list[int]:
        return scan_headers(self._buffer, start, end)

    def release(self) -> None:
        self._buffer = bytearray()


class CScanner:
    """Header decoder in C: ``triclinium_c.HeaderScanner`` over one buffer. It raises the errors of ``scan_headers``.

    Raises:
        ImportError: ``triclinium_c`` cannot be loaded.
    """

    def __init__(self, buffer: bytearray) -> None:
        import triclinium_c

        self._buffer = buffer
        self._scanner = triclinium_c.HeaderScanner(buffer)
        self._malformed_header = triclinium_c.MalformedHeader

    def scan(self, start: int, end: int, /) -> list[int]:
        try:
            return self._scanner.scan(start, end)
        except self._malformed_header as error:
            raise malformed_frame(error.code, self._buffer, error.offset) from None

    def release(self) -> None:
        self._scanner.release()
        self._buffer = bytearray()


def default_implementation() -> Implementation:
    """Return "c" if ``triclinium_c`` can be loaded, else "python"."""
    return "c" if _why_not_c() is None else "python"


def _why_not_c() -> ImportError | None:
    try:
        import triclinium_c  # noqa: F401
    except ImportError as error:
        return error
    return None


_implementation: Implementation = default_implementation()


def implementation() -> Implementation:
    """Return the name of the decoder that new connections use."""
    return _implementation


def use_implementation(name: Implementation) -> None:
    """Choose the decoder that new connections use.

    Raises:
        ImportError: ``name`` is "c" and ``triclinium_c`` cannot be loaded. The choice does not change.
        ValueError: ``name`` is neither "python" nor "c".
    """
    global _implementation
    if name not in get_args(Implementation):
        raise ValueError(f'name={name!r} must be "python" or "c"')
    if name == "c" and (cause := _why_not_c()) is not None:
        raise ImportError(
            f'triclinium_c cannot be loaded ({cause}): install the folder c_ext of the repository, or choose "python"'
        ) from cause
    _implementation = name


def bind_scanner(buffer: bytearray) -> Scanner:
    """Return a scanner of the chosen implementation over ``buffer``, which must keep its size until ``release``."""
    return CScanner(buffer) if _implementation == "c" else PythonScanner(buffer)
