"""C decoder of memcached binary headers, many in one call. It does not depend on triclinium."""

from __future__ import annotations

from triclinium_c._scan import ffi, lib
from triclinium_c._version import __version__

__all__ = ["FIELDS_PER_FRAME", "FRAMES_PER_CALL", "HeaderScanner", "MalformedHeader", "__version__"]

FIELDS_PER_FRAME: int = lib.TRICLINIUM_FIELDS_PER_FRAME

FRAMES_PER_CALL = 256
"""Maximum number of frames per call into C: 20 KiB of output, enough to make the cost of the call negligible."""

_scan_headers = lib.triclinium_scan_headers
_unpack = ffi.unpack


class MalformedHeader(ValueError):
    """The header of the first frame is invalid.

    Args:
        code: -1 for an unknown magic, -2 for a frame larger than 30 MiB, -3 for lengths that exceed the body.
        offset: offset of the frame in bytes.
    """

    def __init__(self, code: int, offset: int) -> None:
        super().__init__(code, offset)
        self.code = code
        self.offset = offset

    def __str__(self) -> str:
        return f"impossible header at byte {self.offset} (code {self.code})"


class HeaderScanner:
    """Header decoder for one buffer. Not thread-safe.

    Args:
        buffer: buffer to read. It must keep its size until ``release``: resizing it raises BufferError.
    """

    __slots__ = ("_bytes", "_out", "_size")

    def __init__(self, buffer: bytearray) -> None:
        self._bytes = ffi.from_buffer("uint8_t[]", buffer)
        self._size = len(buffer)
        self._out = ffi.new("uint64_t[]", FRAMES_PER_CALL * FIELDS_PER_FRAME)

    def scan(self, start: int, end: int, /) -> list[int]:
        """Return ten unsigned ints for every complete frame in ``buffer[start:end]``, oldest first.

        Layout: flat ``[magic, opcode, status, datatype, opaque, cas, extras_start, key_start, value_start, frame_end]``
        per frame; a request has its vbucket in ``status``. Offsets count from the start of the buffer. A trailing
        partial frame is not consumed. Its magic is checked, and its lengths once its header is complete.

        Args:
            start: offset of the first frame in bytes.
            end: offset in bytes of the end of the received data, ``0 <= start <= end <= len(buffer)``.

        Raises:
            MalformedHeader: the header of the first frame is invalid. A later invalid header only ends the list.
            ValueError: ``0 <= start <= end <= len(buffer)`` does not hold, or the scanner was released.

        Source: kv_engine docs/BinaryProtocol.md, "Packet Structure".
        """
        # The C code does not check these offsets.
        if not 0 <= start <= end <= self._size:
            raise self._out_of_range(start, end)
        frames = _scan_headers(self._bytes, start, end, self._out, FRAMES_PER_CALL)
        if frames < 0:
            raise MalformedHeader(frames, start)
        fields: list[int] = _unpack(self._out, frames * FIELDS_PER_FRAME)
        while frames == FRAMES_PER_CALL:
            frames = _scan_headers(self._bytes, fields[-1], end, self._out, FRAMES_PER_CALL)
            if frames > 0:
                fields += _unpack(self._out, frames * FIELDS_PER_FRAME)
        return fields

    def release(self) -> None:
        """Release the buffer, which may then change its size. The scanner cannot be used again."""
        self._size = -1
        ffi.release(self._bytes)

    def _out_of_range(self, start: int, end: int) -> ValueError:
        if self._size < 0:
            return ValueError("the scanner was released: bind a new one")
        return ValueError(f"start={start!r}, end={end!r} must satisfy 0 <= start <= end <= {self._size}")
