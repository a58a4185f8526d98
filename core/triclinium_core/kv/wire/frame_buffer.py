"""Receive buffer of a stream: it takes pieces of any size, and returns complete frames.

Theory of operation: the start of the buffer has the received bytes that were not returned yet, which are at most one
partial frame. ``receive`` appends new bytes, decodes all headers in one call, and moves the remainder to the front. The
remainder is then the first frame, and moves again only to a buffer of another size. So each byte is copied a bounded
number of times, even if a large value arrives in small pieces. The buffer grows by doubling, and only for received
bytes: an announced length allocates no memory.
"""

from __future__ import annotations

from triclinium_core._speedups import bind_scanner
from triclinium_core.kv.wire.constants import FRAME_SIZE_MAX, HEADER_SIZE, Magic
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.header import FIELDS_PER_FRAME, MalformedFrame

CLIENT_ACCEPTS = frozenset((Magic.CLIENT_RESPONSE, Magic.FLEXIBLE_CLIENT_RESPONSE, Magic.SERVER_REQUEST))
"""Magics that a server sends."""

SERVER_ACCEPTS = frozenset((Magic.CLIENT_REQUEST, Magic.FLEXIBLE_CLIENT_REQUEST, Magic.SERVER_RESPONSE))
"""Magics that a client sends."""

CAPACITY_MIN = 64 * 1024
"""Initial capacity in bytes: the size of a typical read from a socket."""

CAPACITY_KEPT = 1024 * 1024
"""Capacity in bytes above which the buffer is released once the frame that needed the capacity was returned."""

PIECE_SIZE = 256 * 1024
"""Size in bytes of the pieces into which ``receive`` splits data that does not fit into the buffer, so that many small
frames need no large buffer."""

CAPACITY_MAX = FRAME_SIZE_MAX + PIECE_SIZE
"""Maximum capacity in bytes: the largest partial frame and one piece."""


class FrameBuffer:
    """Receive buffer for one direction of one connection.

    ``malformed`` has the reason and position of an invalid frame; None before an invalid frame. Once it is set, close
    the connection. ``receive`` then ignores further data, because the start of the next frame is unknown.
    ``capacity`` is the size of the buffer in bytes.

    Args:
        accepts: magics that this side may receive. A frame with any other magic is invalid.
    """

    __slots__ = (
        "_buffer",
        "_pending_size",
        "_scanner",
        "_stream_offset",
        "_view",
        "_wrong_magics",
        "capacity",
        "malformed",
    )

    def __init__(self, accepts: frozenset[Magic]) -> None:
        self.malformed: MalformedFrame | None = None
        self._wrong_magics = frozenset(map(int, Magic)) - accepts
        self._pending_size = 0
        self._stream_offset = 0
        self._bind(bytearray(CAPACITY_MIN))

    def receive(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Return the frames that ``data`` completes, oldest first.

        Also return frames before an invalid frame. Check ``malformed`` after each call.
        """
        if self.malformed is not None:
            return []
        pending_size = self._pending_size
        end = pending_size + len(data)
        if end > self.capacity:
            if len(data) > PIECE_SIZE:
                return self._receive_in_pieces(data)
            self._resize(min(max(2 * self.capacity, end), CAPACITY_MAX))
        self._view[pending_size:end] = data
        fields = self._scan_pending(end)
        if not fields:
            return []
        # If no bytes were pending, the offsets in ``data`` and in the buffer are equal, so ``bytes`` need no copy.
        source = data if type(data) is bytes and not pending_size else self._view[: fields[-1]].tobytes()
        frames = self._build_frames(fields, source)
        if self.malformed is None:
            self._keep_tail(fields[-1], end)
        return frames

    def _receive_in_pieces(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        frames: list[Frame] = []
        for start in range(0, len(data), PIECE_SIZE):
            frames += self.receive(data[start : start + PIECE_SIZE])
        return frames

    def _scan_pending(self, size: int) -> list[int]:
        """Return the headers of the complete frames in the first ``size`` bytes. Without a frame, keep the bytes."""
        try:
            fields = self._scanner.scan(0, size)
        except MalformedFrame as error:
            # If the first byte shows that the frame has the wrong direction, report this instead of wrong lengths.
            if not self._refuses(self._buffer[0], 0):
                self._fail(error.reason, error.offset)
            return []
        if not fields:
            self._pending_size = size
            if size:
                self._refuses(self._buffer[0], 0)
        return fields

    def _build_frames(self, fields: list[int], source: bytes) -> list[Frame]:
        """Return the frames that ``fields`` describe, up to the first frame that this side does not accept."""
        wrong_magics = self._wrong_magics
        frames: list[Frame] = []
        frame_start = 0
        one_field = iter(fields)
        for magic, opcode, status, datatype, opaque, cas, extras_start, key_start, value_start, frame_end in zip(
            *(one_field,) * FIELDS_PER_FRAME, strict=True
        ):
            if magic in wrong_magics:
                self._refuses(magic, frame_start)
                break
            frames.append(
                Frame(
                    magic,
                    opcode,
                    status,
                    datatype,
                    opaque,
                    cas,
                    source[frame_start + HEADER_SIZE : extras_start],
                    source[extras_start:key_start],
                    source[key_start:value_start],
                    source[value_start:frame_end],
                )
            )
            frame_start = frame_end
        return frames

    def _keep_tail(self, frames_end: int, end: int) -> None:
        """Move the bytes after the complete frames, which are the start of the next frame, to the front."""
        tail_size = end - frames_end
        self._stream_offset += frames_end
        self._pending_size = tail_size
        if tail_size:
            self._view[:tail_size] = self._view[frames_end:end]
        if self.capacity > CAPACITY_KEPT and tail_size <= CAPACITY_MIN:
            self._resize(CAPACITY_MIN)
        if tail_size:
            self._scan_pending(tail_size)

    def _resize(self, capacity: int) -> None:
        """Switch to a new buffer, because a buffer to which the scanner and a view refer cannot change its size."""
        buffer = bytearray(capacity)
        buffer[: self._pending_size] = self._view[: self._pending_size]
        self._scanner.release()
        self._bind(buffer)

    def _bind(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._scanner = bind_scanner(buffer)
        self.capacity: int = len(buffer)

    def _refuses(self, magic: int, offset: int) -> bool:
        """Return whether this side does not accept a frame with this magic. If so, record the failure."""
        if magic not in self._wrong_magics:
            return False
        accepted = ", ".join(f"{right:#04x}" for right in sorted(set(Magic) - self._wrong_magics))
        self._fail(f"magic {magic:#04x} is not one of those that this side receives ({accepted})", offset)
        return True

    def _fail(self, reason: str, offset: int) -> None:
        self.malformed = MalformedFrame(reason, self._stream_offset + offset)
        self._pending_size = 0
        self._resize(0)
