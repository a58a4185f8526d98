"""Connection to one node, over all its streams: bootstrap, requests in flight, keep-alive, circuit breaker.

A connection decides nothing about operations: it returns events, and the client machine acts on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from triclinium_core import decoder_faults
from triclinium_core.decision_tape.recorder import DecisionRecorder
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.wire.compression import MalformedCompression, inflate
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import SERVER_REQUEST_MAGIC, SNAPPY_BIT, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.options import Authenticator
from triclinium_core.retry.couchbase import BreakerEvent, CircuitBreaker, CircuitBreakerOptions
from triclinium_core.runtime.kv.connection.address_cycle import AddressCycle
from triclinium_core.runtime.kv.connection.attempt_history import AttemptHistory
from triclinium_core.runtime.kv.connection.bootstrap import (
    Bootstrap,
    BootstrapFailure,
    BootstrapPlan,
    FailureKind,
    Negotiated,
)
from triclinium_core.runtime.kv.connection.connection_events import (
    Answered,
    AuthenticatedAgain,
    BecameReady,
    BecameUnusable,
    BucketSelected,
    ConfigAnnounced,
    News,
    SaslAnswered,
    Strayed,
)
from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.first_bytes import TLS_ALERT, recognise
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest, InFlightTable, Purpose
from triclinium_core.runtime.kv.connection.own_requests import OwnRequests
from triclinium_core.runtime.kv.connection.reauthentication import Reauthentication, RequestParts
from triclinium_core.runtime.kv.connection.received import Received
from triclinium_core.runtime.kv.connection.sasl import SaslExchange
from triclinium_core.runtime.kv.connection.scram import SaltedPasswords
from triclinium_core.runtime.kv.connection.states import CONNECTION_TRANSITIONS, ConnectionEvent, ConnectionState
from triclinium_core.runtime.kv.connection.waiting_line import WaitingLine
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.work import BYTES_PER_UNIT, FRAME_WORK, PIECE_WORK

UNSOLICITED_MAX = 16
"""Maximum number of unsolicited responses on one stream. After one more, the client closes the stream."""

_AUTHENTICATION = Purpose.AUTHENTICATION
"""Alias of an enum member used for each response; ``kv.wire.constants`` documents the cost of a lookup."""


class Connection:
    """Connection to one node.

    Other classes call the methods of the connection and of its attributes, but assign to none of its attributes.

    Args:
        bucket: bucket to select; None for a connection without a bucket.
        addresses: addresses to try in turn.
        dialect: dialect of a new stream. HELLO adds features to it. On a plain memcached, it does not change.
        sending: list to which ``in_flight`` is added when the first frame of an event is ordered; shared by the
            connections of a client.
        earlier_failures: number of failed attempts to open the bucket before the client forgot it.
        recorder: recorder of the decision tape; None without one.
    """

    _frames_came: bool = False
    """Whether the client has received a complete frame on the current stream."""
    _is_proven: bool = False
    """Whether the node has responded to a request on the current stream after the bootstrap."""
    _unsolicited: int = 0
    """Number of unsolicited responses on the current stream."""

    def __init__(
        self,
        bucket: str | None,
        addresses: AddressCycle,
        *,
        dialect: Dialect,
        circuit_breaker: CircuitBreakerOptions,
        sending: list[InFlightTable],
        earlier_failures: int = 0,
        recorder: DecisionRecorder | None = None,
    ) -> None:
        self.bucket: str | None = bucket
        self.addresses: AddressCycle = addresses
        self.node: str = str(addresses.current)
        """Name of the node in logs and errors: ``host:port``."""
        self.state: ConnectionState = ConnectionState.LOST
        """Current state. It changes according to the table ``CONNECTION_TRANSITIONS``."""
        self.is_leaving: bool = False
        """Whether the node has left the map. The client then sends no further operations on the connection, and opens
        no other stream for it."""
        self.history: AttemptHistory = AttemptHistory(earlier_failures=earlier_failures)
        self.link: Link = Link(0, self.node, None)
        """Facts about the stream that opened last. Each operation sent on the stream keeps a reference to them."""
        self.negotiated: Negotiated = Negotiated()
        self.dialect: Dialect = dialect
        self.breaker: CircuitBreaker = CircuitBreaker(circuit_breaker)
        self.in_flight: InFlightTable = InFlightTable(sending)
        self.waiting: WaitingLine = WaitingLine()
        """Operations queued until the connection is ready and has capacity."""
        self.own_requests: OwnRequests = OwnRequests()
        self.received: Received = Received()
        self._first_dialect = dialect
        self._recorder = recorder
        self._nonces = ExchangeNonces(0)
        """Nonces of the current stream."""
        self._bootstrap: Bootstrap | None = None
        self._again: Reauthentication | None = None
        """Reauthentication in progress, or None."""
        self._buffer: FrameBuffer | None = None
        """Receive buffer of the current stream; None without a stream, to save memory."""

    @property
    def address(self) -> Address:
        """Address of the current stream or, without one, of the stream to be opened or of the last stream."""
        return self.addresses.current

    @property
    def stream_number(self) -> int:
        """Number of the current stream or, without one, of the last stream; 0 before the first stream."""
        return self.in_flight.stream

    @property
    def is_in_use(self) -> bool:
        """Whether the bootstrap of the current stream is complete: the connection is ready or reauthenticates."""
        return self.state is ConnectionState.READY or self._again is not None

    @property
    def takes_operations(self) -> bool:
        """Whether the connection is ready, has capacity, and has a circuit breaker that permits operations."""
        return self.state is ConnectionState.READY and not self.in_flight.is_full and self.breaker.allows_operations

    @property
    def has_spoken(self) -> bool:
        """Whether no bootstrap waits for its first response; True also without a bootstrap."""
        return self.dialect.bare or self._bootstrap is None or self._bootstrap.has_responded

    @property
    def unanswered(self) -> Opcode | None:
        """Opcode of the oldest unanswered request of the bootstrap, or None if no such request is unanswered."""
        return self._bootstrap.unanswered if self._bootstrap is not None else None

    def connect(self) -> Address:
        """Begin a new stream, and return its address."""
        self._move(ConnectionEvent.BACKOFF_OVER)
        self.history.begun()
        self._frames_came = self._is_proven = False
        self._unsolicited = 0
        self.negotiated = Negotiated()
        self.dialect = self._first_dialect
        return self.choose()

    def choose(self) -> Address:
        """Choose the next address for the stream to be opened, and return it."""
        address = self.addresses.advance()
        self.node = str(address)
        return address

    def leave(self) -> None:
        """Record that the node has left the map."""
        self.is_leaving = True

    def stream_opened(
        self, plan: BootstrapPlan | None, now: float, *, local: str | None = None, remote: str | None = None
    ) -> Sequence[News]:
        """Begin the bootstrap, and return the events. Without a ``plan``, the connection is ready immediately.

        Args:
            local, remote: addresses of the two ends of the stream, if the driver reported them.
        """
        self.addresses.explain("")
        self.history.opened()
        self.link = Link(self.stream_number, self.node, local, remote, plan.connection_id if plan is not None else None)
        self.received.at = now
        self._buffer = FrameBuffer(CLIENT_ACCEPTS)
        if plan is None:
            self._move(ConnectionEvent.NO_BOOTSTRAP)
            return [self._become_ready(now)]
        self._nonces = ExchangeNonces(self.stream_number)
        self._bootstrap = Bootstrap(plan, self._move, self._nonces)
        self.negotiated = Negotiated(plan.authenticator)
        burst = self._bootstrap.start()
        if self._bootstrap.failure is not None:
            return [BecameUnusable(self._bootstrap.failure.text, self._bootstrap.failure)]
        self.in_flight.send_foreign(burst, self._bootstrap.last_opaque)
        return []

    def authenticate_again(
        self, authenticator: Authenticator, *, tls: bool, nonce: str, salted_passwords: SaltedPasswords | None = None
    ) -> Sequence[News]:
        """Reauthenticate the current stream with another password or token, and return the events.

        The server does not reorder requests across an authentication, so requests that were sent before it run with the
        old credentials. A request sent between the two steps of SCRAM would run without credentials. Therefore the
        client holds back all requests except NOOPs until the exchange is over and the bucket is selected again. If
        another exchange is in progress, the new exchange starts as soon as the old one or its SELECT_BUCKET fails. If
        they succeed, the client first sends the queued requests.
        """
        exchange = SaslExchange(
            authenticator,
            tls=tls,
            nonce=nonce,
            offered=self.negotiated.offered_mechanisms,
            salted_passwords=salted_passwords,
            nonces=self._nonces,
        )
        if self._again is not None:
            self._again.next_exchange = exchange
            return ()
        self._move(ConnectionEvent.CREDENTIALS_CHANGED)
        self._again = Reauthentication(exchange, self.bucket)
        news: list[News] = []
        unusable = self._send_authentication(self._again.start(), news)
        if unusable is not None:
            news.append(unusable)
        return news

    def bytes_received(self, data: bytes, now: float) -> Sequence[News]:
        """Process received bytes, in pieces of any size. Return the events; the last may report an unusable stream."""
        assert self._buffer is not None, "bytes are received on an open stream"
        news: list[News] = []
        frames = self._buffer.receive(data)
        received = self.received
        received.work = PIECE_WORK + len(data) // BYTES_PER_UNIT + len(frames) * FRAME_WORK
        if frames:
            # Count only complete frames as activity: after a frame with a wrong length, all further bytes seem to
            # belong to that frame.
            received.at = now
            self._frames_came = True
        for whole in frames:
            frame, problem = whole, None
            if frame.magic == SERVER_REQUEST_MAGIC:
                self._on_server_request(frame, news)
                continue
            if frame.datatype & SNAPPY_BIT:
                try:
                    frame, problem = _inflated(frame)
                except DecoderFault as fault:
                    news.append(BecameUnusable(str(fault), BootstrapFailure.of_fault(fault)))
                    return news
                received.work += len(frame.value) // BYTES_PER_UNIT
            if self._bootstrap is not None:
                unusable = self._on_response_to_bootstrap(frame, problem, now, news)
            elif (request := self.in_flight.answered(frame)) is None:
                unusable = self._on_stray(frame, news)
            else:
                if not self._is_proven:
                    self._is_proven = True
                    self.history.proven()
                if frame.framing_extras:
                    received.server_time.note(frame.framing_extras)
                if request.owner is not _AUTHENTICATION:
                    news.append(Answered(request, frame, problem))
                    continue
                unusable = self._on_response_to_authentication(frame, news)
            if unusable is not None:
                news.append(unusable)
                return news
        if self._buffer.malformed is not None:
            news.append(self._on_no_frame(data, str(self._buffer.malformed)))
        return news

    def lost(self, detail: str, *, lacks_bucket: bool = False, is_of_no_use: bool = False) -> Iterator[InFlightRequest]:
        """Record that the stream is lost. Return its unanswered requests, oldest first.

        Args:
            lacks_bucket: whether the node does not have the bucket, or does not permit the user to open it.
            is_of_no_use: whether the type of the bucket is unsupported.
        """
        if self.state is not ConnectionState.LOST:
            self._move(ConnectionEvent.STREAM_LOST)
            self.history.lost(
                detail,
                self._bootstrap.failure if self._bootstrap is not None else None,
                was_proven=self._is_proven,
                address_count=len(self.addresses),
                lacks_bucket=lacks_bucket,
                is_of_no_use=is_of_no_use,
            )
        self.own_requests.stream_lost()
        self._bootstrap = self._again = self._buffer = None
        return self.in_flight.clear()

    def _on_no_frame(self, data: bytes, problem: str) -> BecameUnusable:
        hint = None if self._frames_came else recognise(data)
        text = f"sent bytes that are not a valid frame: {problem}"
        if hint is None:
            return BecameUnusable(text)
        text = f"{text}; {hint}"
        kind = FailureKind.TLS if data.startswith(TLS_ALERT) else FailureKind.PROTOCOL
        return BecameUnusable(text, BootstrapFailure(kind, text, advice=hint))

    def _on_server_request(self, frame: Frame, news: list[News]) -> None:
        """Record a valid announcement of a config after the bootstrap. Ignore all other requests of the server."""
        is_announcement = frame.opcode == ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION
        if is_announcement and len(frame.extras) == CONFIG_VERSION.size and self.is_in_use:
            self.own_requests.config_announced(*CONFIG_VERSION.unpack(frame.extras))
            news.append(ConfigAnnounced())

    def _on_response_to_authentication(self, frame: Frame, news: list[News]) -> BecameUnusable | None:
        assert self._again is not None
        return self._send_authentication(self._again.receive(frame, news), news)

    def _on_stray(self, frame: Frame, news: list[News]) -> BecameUnusable | None:
        """Record a response that matches no unanswered request (decision D27).

        Return an event after more than ``UNSOLICITED_MAX`` unsolicited responses, otherwise None.
        """
        news.append(Strayed())
        # A second response to a request is not unsolicited, because the client has sent the request.
        is_second = self.in_flight.was_made(frame.opaque) and self.in_flight.get(frame.opaque) is None
        self._unsolicited += not is_second
        if self._unsolicited <= UNSOLICITED_MAX:
            return None
        return BecameUnusable(
            f"sent {self._unsolicited} unsolicited responses, the last with opcode "
            f"0x{frame.opcode:02x} and opaque {frame.opaque}"
        )

    def _send_authentication(self, question: RequestParts | None, news: list[News]) -> BecameUnusable | None:
        """Order the next request of the reauthentication. Without a ``question``, complete the reauthentication.

        Return an event if the reauthentication has failed, otherwise None.
        """
        again = self._again
        assert again is not None
        negotiated, exchange = self.negotiated, again.exchange
        negotiated.authenticator, negotiated.mechanism = exchange.authenticator, exchange.mechanism
        if again.failure is not None:
            return BecameUnusable(again.failure.text, again.failure)
        if question is None:
            self._again = None
            self._move(ConnectionEvent.AUTHENTICATED_AGAIN)
            news.append(AuthenticatedAgain())
            return None
        opcode, key, value = question
        data = encode_request(opcode, opaque=self.in_flight.next_opaque, key=key, value=value)
        self.in_flight.send(Purpose.AUTHENTICATION, data)
        return None

    def _on_response_to_bootstrap(
        self, frame: Frame, problem: str | None, now: float, news: list[News]
    ) -> BecameUnusable | None:
        bootstrap = self._bootstrap
        assert bootstrap is not None
        if not bootstrap.awaits(frame.opaque):
            return self._on_stray(frame, news)
        if problem is not None and frame.opcode != Opcode.GET_ERROR_MAP:
            # Tolerate an unreadable value only in the response with the error map, which is optional (decision C18).
            return BecameUnusable(f"sent {problem}")
        had_sasl, had_bucket = bootstrap.sasl_status, bootstrap.bucket_status
        data = bootstrap.receive(frame)
        if bootstrap.sasl_status != had_sasl and bootstrap.sasl_status is not None:
            news.append(SaslAnswered(bootstrap.sasl_status))
        if bootstrap.bucket_status != had_bucket and bootstrap.bucket_status is not None and self.bucket is not None:
            news.append(BucketSelected(self.bucket, bootstrap.bucket_status))
        if bootstrap.failure is not None:
            if bootstrap.failure.kind is FailureKind.CORRUPT_ERROR_MAP:
                self.history.map_is_corrupt()
            return BecameUnusable(bootstrap.failure.text, bootstrap.failure)
        if data:
            self.in_flight.send_foreign(data, bootstrap.last_opaque)
        if bootstrap.is_done:
            self.negotiated = bootstrap.negotiated
            self.dialect = replace(self.dialect, features=self.negotiated.features)
            news.append(self._become_ready(now))
        return None

    def _become_ready(self, now: float) -> BecameReady:
        self._bootstrap = None
        self.feed_breaker(BreakerEvent.RECONNECTED, now)
        return BecameReady(self.history.became_ready())

    def feed_breaker(self, event: BreakerEvent, now: float) -> bool:
        """Pass an event to the circuit breaker. Return whether the client must send a canary now."""
        before = self.breaker.state
        sends_canary = self.breaker.handle(event, now)
        if self._recorder is not None and self.breaker.state is not before:
            self._recorder.breaker(self.breaker.state, self.node, self.bucket)
        return sends_canary

    def _move(self, event: ConnectionEvent) -> None:
        """Change the state as the table prescribes. Connection and bootstrap change the state only with this method."""
        self.state = CONNECTION_TRANSITIONS[self.state][event]
        if self._recorder is not None and event is not ConnectionEvent.BACKOFF_OVER:
            # ``Streams.open`` records the opening, when the address is chosen.
            self._recorder.connection(self.state.value, self.stream_number, self.node, self.bucket)


def _inflated(frame: Frame) -> tuple[Frame, str | None]:
    """Return a frame with its value decompressed, and None.

    If decompression fails, return the frame with an empty value, and the reason.

    Raises:
        DecoderFault: the decoder failed.
    """
    try:
        return msgspec.structs.replace(frame, value=inflate(frame.value)), None
    except MalformedCompression as error:
        return msgspec.structs.replace(frame, value=b""), f"a value that cannot be decompressed: {error}"
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.COMPRESSED_VALUE, error) from None
