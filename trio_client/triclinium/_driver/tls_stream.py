"""TLS over a socket with ``ssl.SSLObject``: a trio stream that can also send without waiting.

``trio.SSLStream`` works over any stream, so it can neither send before the next turn of trio's loop nor receive the
data of a socket in one turn. Here all encryption is synchronous; only the waits for the socket are not. Encrypted
records stay in this object until the system accepts them, so a cancelled send leaves the stream intact. The
stream uses only the methods of ``SSLObject``, because contexts of other packages verify certificates in them.
"""

from __future__ import annotations

import errno
import socket
import ssl
from contextlib import suppress

import trio

from triclinium._driver.plain_stream import is_readable
from triclinium._driver.tls_records import DATALESS_SIZE_MAX, RECORDS_MAX, size_of_record
from triclinium_core.contract.neutral import LossCause
from triclinium_core.contract.neutral.outbox import WRITE_SIZE_MAX
from triclinium_core.work import PIECE_SIZE_BYTES_MAX

ENCRYPTED_SIZE_MAX = 64 * 1024
"""Size in bytes of the records that are sent before more data is encrypted: a ``MemoryBIO`` never releases memory."""

REPLIES_SIZE_MAX = 2 * ENCRYPTED_SIZE_MAX
"""Size in bytes of unsent records beyond which nothing more is decrypted: a peer that requests new keys and does not
read causes endless replies."""

RECORD_SIZE = 16 * 1024
"""Maximum number of bytes of data in one record (RFC 8446, section 5.1)."""


class TruncatedStreamError(trio.BrokenResourceError):
    """The peer has closed the connection without close_notify, so data may be missing."""


class TlsStream(trio.abc.Stream):
    """Client side of TLS over a socket. Closing it sends no close_notify.

    Args:
        tcp: stream whose socket the new stream takes over, unless the context refuses the host name.
        context: settings of TLS.
        host: name that the certificate must have, as ASCII.

    Raises:
        ValueError: the host name is empty or begins with a dot. Other invalid names raise TypeError or SSLError.
    """

    def __init__(self, tcp: trio.SocketStream, context: ssl.SSLContext, host: bytes) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        theirs = tcp.socket
        self._socket = socket.socket(theirs.family, theirs.type, theirs.proto, fileno=theirs.detach())
        self._socket.setblocking(False)
        self._received, self._start = b"", 0
        """Received bytes. Those before ``_start`` were passed to OpenSSL."""
        self._record_size = 0
        """Size of the record at ``_start``, or 0 if it is incomplete."""
        self._is_partly_read = False
        """Whether OpenSSL may have data that did not fit into the result of the last call."""
        self._end: OSError | None = None
        """Reason why nothing more can be read; SSLZeroReturnError for a close_notify, SSLEOFError without one."""
        self._unsent: bytes | memoryview = b""
        """Records that the system did not accept. While it is empty, ``_outgoing`` has no records either."""
        self._send_error: OSError | None = None
        """Reason why nothing more can be sent."""
        self._flushing = trio.Lock()
        """Lock held by the task that waits until the socket accepts more."""
        self._awaits_peer = False
        """Whether data cannot be encrypted before the peer has sent more: TLS 1.2 is being renegotiated."""
        self._idle_sender = trio.lowlevel.ParkingLot()

    @property
    def is_behind(self) -> bool:
        """Whether there are records that the system did not accept."""
        return bool(self._unsent)

    def is_readable(self) -> bool:
        """Return whether a record or its rest, bytes in the socket, or the end of the stream can be read.

        Raises:
            OSError: the connection is lost. The socket raises this error only once.
        """
        return bool(self._is_partly_read or self._record_size or self._end) or is_readable(self._socket)

    def version(self) -> str | None:
        """Return the version of TLS, as ``ssl.SSLObject`` does."""
        return self._tls.version()

    async def do_handshake(self) -> None:
        """Perform the handshake. Data that arrives with the handshake is kept.

        Raises:
            trio.BrokenResourceError: the handshake failed; the cause is the reason.

        Cancellation: leaves a stream that can only be closed.
        """
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self.wait_send_all_might_not_block()
            except ssl.SSLError as error:
                # Send the alert, which gives the reason to the peer.
                self._flush_now()
                raise trio.BrokenResourceError("the TLS handshake failed") from error
            if not self._record_size:
                await self._receive()
            self._pass_on()
            if isinstance(self._end, ssl.SSLEOFError):
                self._incoming.write_eof()
            elif self._end is not None:
                raise trio.BrokenResourceError("the connection was lost") from self._end
        await self.wait_send_all_might_not_block()

    # -- Sending.

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        """Encrypt ``data``, at most ``WRITE_SIZE_MAX``, and send it as long as the system accepts all of it.

        Return the number of bytes encrypted, which may be less: for example 0 while records are unsent, or after an
        error. The next call to ``wait_send_all_might_not_block`` sends the unsent records, or raises the error.
        """
        encrypted, size = 0, min(len(data), WRITE_SIZE_MAX)
        try:
            while encrypted < size and not self._unsent and self._send_error is None:
                piece = (
                    data if size <= RECORD_SIZE else memoryview(data)[encrypted : min(size, encrypted + RECORD_SIZE)]
                )
                encrypted += self._tls.write(piece)
                if self._outgoing.pending >= ENCRYPTED_SIZE_MAX:
                    self._flush_now()
        except (ssl.SSLWantReadError, ssl.SSLEOFError):
            # OpenSSL reports an EOF if data from before the renegotiation was not read yet.
            self._awaits_peer, self._send_error = True, self._end
        except ssl.SSLError as error:
            # After an alert from the peer, OpenSSL reports only that nothing more can be sent; ``_end`` has the alert.
            self._send_error = self._end or error
        self._flush_now()
        return encrypted

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send the unsent records, and then ``data``. The exceptions are those of ``wait_send_all_might_not_block``.

        If TLS 1.2 is being renegotiated, another task must receive at the same time.

        Cancellation: part of ``data`` may have been encrypted. The next call that sends, or that has to wait for bytes to
        receive, sends this part.
        """
        await self.wait_send_all_might_not_block()
        left = memoryview(data)
        while left:
            left = left[self.send_now(left) :]
            await self.wait_send_all_might_not_block()
            if self._awaits_peer:
                await self._idle_sender.park()

    def _flush_now(self) -> None:
        """Send as many records as the system accepts without waiting."""
        if self._send_error is not None:
            return
        records = self._unsent or self._outgoing.read()
        while records:
            try:
                sent = self._socket.send(records)
            except BlockingIOError:
                break
            except OSError as error:
                self._send_error = error
                break
            records = memoryview(records)[sent:] if sent < len(records) else self._outgoing.read()
        self._unsent = records

    async def wait_send_all_might_not_block(self) -> None:
        """Send the unsent records, and wait until the system has accepted all of them.

        Raises:
            trio.BrokenResourceError: the connection is lost; the cause is the reason.
            trio.ClosedResourceError: this stream was closed.
        """
        async with self._flushing:
            while True:
                self._check_open()
                self._flush_now()
                if self._send_error is not None:
                    raise trio.BrokenResourceError("the connection was lost") from self._send_error
                if not self._unsent:
                    break
                await trio.lowlevel.wait_writable(self._socket)

    # -- Receiving.

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return received data, or wait for some; empty after a close_notify.

        Raises:
            TruncatedStreamError: the peer closed the connection without close_notify.
            trio.BrokenResourceError: the connection is lost; the cause is the reason.
            trio.ClosedResourceError: this stream was closed.

        Cancellation: loses nothing.
        """
        size_max = PIECE_SIZE_BYTES_MAX if max_bytes is None else max_bytes
        if size_max < 1:
            raise ValueError(f"max_bytes={size_max} must be at least 1")
        while self._end is None:
            self._check_open()
            if self._unsent and len(self._unsent) + self._outgoing.pending > REPLIES_SIZE_MAX:
                await self.wait_send_all_might_not_block()
            if self._record_size or self._is_partly_read:
                await trio.lowlevel.checkpoint()
            else:
                await self._receive()
            if self._awaits_peer:
                # The resumed task runs only after this task has decrypted the new records.
                self._awaits_peer = False
                self._idle_sender.unpark_all()
            if data := self._decrypt(size_max):
                return data
        await trio.lowlevel.checkpoint()
        self._check_open()
        if isinstance(self._end, ssl.SSLZeroReturnError):
            return b""
        if isinstance(self._end, ssl.SSLEOFError):
            raise TruncatedStreamError(LossCause.TRUNCATED.value)
        raise trio.BrokenResourceError("the connection was lost") from self._end

    def _decrypt(self, size_max: int) -> bytes:
        """Return the data of the next records, if they have any, and send the replies to them."""
        pieces: list[bytes] = []
        room, records, dataless_size = size_max, 0, 0
        try:
            while room and records < RECORDS_MAX and dataless_size < DATALESS_SIZE_MAX:
                size = 0 if self._is_partly_read else self._pass_on()
                if not size and not self._is_partly_read:
                    break
                records += 1
                try:
                    piece = self._tls.read(RECORD_SIZE if room > RECORD_SIZE else room)
                except ssl.SSLWantReadError:
                    self._is_partly_read = False
                    dataless_size += size
                    continue
                if not piece:
                    raise ssl.SSLZeroReturnError
                pieces.append(piece)
                room -= len(piece)
                self._is_partly_read = not room
        except ssl.SSLError as error:
            # Raise this error only after the reader has received the data before it.
            self._end = error
        if self._outgoing.pending:
            self._flush_now()
        return b"".join(pieces)

    def _pass_on(self) -> int:
        """Give OpenSSL the next record, if it is complete, and return its size."""
        size, start = self._record_size, self._start
        if size:
            self._incoming.write(memoryview(self._received)[start : start + size])
            self._start = start + size
            if self._start == len(self._received):
                # Release the processed bytes, so that an idle connection keeps none.
                self._received, self._start = b"", 0
            self._record_size = size_of_record(self._received, self._start)
        return size

    async def _receive(self) -> None:
        """Wait for bytes or for the end of the connection. The call may return without either."""
        if not self._unsent or self._flushing.locked():
            await trio.lowlevel.wait_readable(self._socket)
        else:
            await self._wait_readable_and_flush()
        try:
            data = self._socket.recv(PIECE_SIZE_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError as error:
            self._end = error
            return
        if not data:
            # A socket raises its error only once: sending may have received it.
            self._end = self._send_error or ssl.SSLEOFError()
        self._received, self._start = self._received[self._start :] + data, 0
        self._record_size = size_of_record(self._received, 0)

    async def _wait_readable_and_flush(self) -> None:
        """Wait for bytes and send at the same time: the peer may wait for a reply that the system has not accepted."""
        raised: BaseException | None = None
        flushing = trio.CancelScope(shield=True)

        @trio.lowlevel.enable_ki_protection
        async def flush() -> None:
            # Ignore the error: the next call that sends raises it.
            with flushing, suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self.wait_send_all_might_not_block()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flush)
            try:
                await trio.lowlevel.wait_readable(self._socket)
            except BaseException as error:
                raised = error
            flushing.cancel()
        # Raise the exception outside of the nursery, which would wrap it in a group.
        if raised is not None:
            raise raised

    # -- Closing.

    async def aclose(self) -> None:
        """Close the socket. Tasks that wait for it raise trio.ClosedResourceError. Closing again has no effect."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
            self._send_error = self._send_error or OSError(errno.EBADF, "this stream was closed")
            self._idle_sender.unpark_all()
        await trio.lowlevel.checkpoint()

    def _check_open(self) -> None:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError("this stream was closed")
