"""One connection to one node, through all its streams: bootstrap, requests in flight, keep-alive, circuit breaker.

It decides nothing about operations: it tells what happened as news, and the client machine draws the conclusions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from triclinium_core import decoder_faults
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

UNASKED_MAX = 16
"""Answers on one stream to requests that were never made. One may be a slip; who goes on speaks to somebody else."""

_AUTHENTICATION = Purpose.AUTHENTICATION
"""Member that each answer needs. ``kv.wire.constants`` has the figure of such names."""


class Connection:
    """One connection.

    Other classes call methods of the connection and of its attributes. They write neither.

    Args:
        bucket: what to select on it; None for the connection that belongs to no bucket.
        addresses: where the node may be.
        dialect: the one before HELLO is answered; with a plain memcached, the only one.
        sending: takes ``in_flight`` when the first frame of an event is ordered; shared by the connections of a client.
        earlier_failures: failed attempts at the bucket before the client forgot it.
    """

    _frames_came: bool = False
    """Whether the peer of the present stream has sent a whole frame."""
    _is_proven: bool = False
    """Whether a request was answered on the present stream, once it was ready."""
    _unasked: int = 0
    """Answers on the present stream to requests that were never made."""

    def __init__(
        self,
        bucket: str | None,
        addresses: AddressCycle,
        *,
        dialect: Dialect,
        circuit_breaker: CircuitBreakerOptions,
        sending: list[InFlightTable],
        earlier_failures: int = 0,
    ) -> None:
        self.bucket: str | None = bucket
        self.addresses: AddressCycle = addresses
        self.node: str = str(addresses.current)
        """Name of the node in logs and errors: ``host:port``."""
        self.state: ConnectionState = ConnectionState.LOST
        """Current state, by the table ``CONNECTION_TRANSITIONS``."""
        self.is_leaving: bool = False
        """Whether its node has left the map, so that nothing more is sent and no other stream opened."""
        self.history: AttemptHistory = AttemptHistory(earlier_failures=earlier_failures)
        self.link: Link = Link(0, self.node, None)
        """The stream that was opened last, as the operations that are sent on it remember it."""
        self.negotiated: Negotiated = Negotiated()
        self.dialect: Dialect = dialect
        self.breaker: CircuitBreaker = CircuitBreaker(circuit_breaker)
        self.in_flight: InFlightTable = InFlightTable(sending)
        self.waiting: WaitingLine = WaitingLine()
        """Operations queued until the connection is ready and has room."""
        self.own_requests: OwnRequests = OwnRequests()
        self.received: Received = Received()
        self._first_dialect = dialect
        self._nonces = ExchangeNonces(0)
        """Nonces of the current stream."""
        self._bootstrap: Bootstrap | None = None
        self._again: Reauthentication | None = None
        """The authentication that goes on while the connection is in use."""
        self._buffer: FrameBuffer | None = None
        """Of the present stream; a connection that has none keeps no room for what it would receive."""

    @property
    def address(self) -> Address:
        """Address of the current stream, of the next one, or of the last one."""
        return self.addresses.current

    @property
    def stream_number(self) -> int:
        """The current stream, or the last one, counted over all connections of the client."""
        return self.in_flight.stream

    @property
    def is_in_use(self) -> bool:
        """Whether the bootstrap of the current stream is over: it is ready, or authenticates again."""
        return self.state is ConnectionState.READY or self._again is not None

    @property
    def takes_operations(self) -> bool:
        """Whether an operation can be sent now: it is ready, has room, and its breaker is closed."""
        return self.state is ConnectionState.READY and not self.in_flight.is_full and self.breaker.allows_operations

    @property
    def has_spoken(self) -> bool:
        """Whether the peer of the present stream has answered anything."""
        return self.dialect.bare or self._bootstrap is None or self._bootstrap.has_heard

    @property
    def unanswered(self) -> Opcode | None:
        """The oldest question of the bootstrap that has no answer; None where none is under way."""
        return self._bootstrap.unanswered if self._bootstrap is not None else None

    def connect(self) -> Address:
        """Begin a new stream, and return where to."""
        self._move(ConnectionEvent.BACKOFF_OVER)
        self.history.begun()
        self._frames_came = self._is_proven = False
        self._unasked = 0
        self.negotiated = Negotiated()
        self.dialect = self._first_dialect
        return self.choose()

    def choose(self) -> Address:
        """Take the next one of the addresses for the stream that is to be opened, and return it."""
        address = self.addresses.advance()
        self.node = str(address)
        return address

    def leave(self) -> None:
        """Record that the node has left the map."""
        self.is_leaving = True

    def stream_opened(
        self, plan: BootstrapPlan | None, now: float, *, local: str | None = None, remote: str | None = None
    ) -> Sequence[News]:
        """Begin the bootstrap. Without a ``plan`` the connection is ready.

        Args:
            local, remote: addresses of the two ends of the stream, if the driver reported them.
        """
        self.addresses.explain("")
        self.history.opened()
        self.link = Link(self.stream_number, self.node, local, remote, plan.connection_id if plan is not None else None)
        self.received.at = now
        self._buffer = FrameBuffer(CLIENT_ACCEPTS)
        if plan is None:
            self._move(ConnectionEvent.NOTHING_TO_ASK)
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
        """Begin to speak for somebody else, on the stream that is ready: by a password or a token.

        The server carries out in order, so what was sent before is done with the old rights. What would be sent
        during SCRAM's two steps would have none, so everything waits until the exchange is over, and the bucket selected
        anew. Where one goes on, the new one begins if that is refused; if it succeeds, what has waited comes first.
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
        unusable = self._ask(self._again.start(), news)
        if unusable is not None:
            news.append(unusable)
        return news

    def bytes_received(self, data: bytes, now: float) -> Sequence[News]:
        """Take bytes, cut anywhere, and return what they mean. The last news may be that the peer made a mistake."""
        assert self._buffer is not None, "bytes come on a stream that is open"
        news: list[News] = []
        frames = self._buffer.receive(data)
        received = self.received
        received.work = PIECE_WORK + len(data) // BYTES_PER_UNIT + len(frames) * FRAME_WORK
        if frames:
            # Bytes alone are no sign of life: a wrong length swallows every answer that follows.
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
        """Record that the stream is gone, and return the requests that had no answer, oldest first.

        Args:
            lacks_bucket: whether the node does not have the bucket, or refuses it to the user.
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
        text = f"sent bytes that are no frame: {problem}"
        if hint is None:
            return BecameUnusable(text)
        text = f"{text}; {hint}"
        kind = FailureKind.TLS if data.startswith(TLS_ALERT) else FailureKind.PROTOCOL
        return BecameUnusable(text, BootstrapFailure(kind, text, advice=hint))

    def _on_server_request(self, frame: Frame, news: list[News]) -> None:
        """Hear of a new config; nothing else was asked for, and nothing else is heard."""
        is_news = frame.opcode == ServerOpcode.CLUSTERMAP_CHANGE_NOTIFICATION
        if is_news and len(frame.extras) == CONFIG_VERSION.size and self.is_in_use:
            self.own_requests.config_announced(*CONFIG_VERSION.unpack(frame.extras))
            news.append(ConfigAnnounced())

    def _on_response_to_authentication(self, frame: Frame, news: list[News]) -> BecameUnusable | None:
        assert self._again is not None
        return self._ask(self._again.receive(frame, news), news)

    def _on_stray(self, frame: Frame, news: list[News]) -> BecameUnusable | None:
        """Pass over an answer that nobody waits for (decision D27)."""
        news.append(Strayed())
        # The second answer to a request is one too many, and still an answer to something that was asked.
        is_second = self.in_flight.was_made(frame.opaque) and self.in_flight.get(frame.opaque) is None
        self._unasked += not is_second
        if self._unasked <= UNASKED_MAX:
            return None
        return BecameUnusable(
            f"answered {self._unasked} requests that were never made, the last of them with opcode "
            f"0x{frame.opcode:02x} and opaque {frame.opaque}"
        )

    def _ask(self, question: RequestParts | None, news: list[News]) -> BecameUnusable | None:
        """Order what comes next while the connection authenticates again; without a ``question`` that is over."""
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
            # Without what the others tell there is no connection; an error map is dispensable (decision C18).
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
        self.breaker.handle(BreakerEvent.RECONNECTED, now)
        return BecameReady(self.history.became_ready())

    def _move(self, event: ConnectionEvent) -> None:
        """Take a step of the table. Each step of the connection, also during its bootstrap, goes through here."""
        self.state = CONNECTION_TRANSITIONS[self.state][event]


def _inflated(frame: Frame) -> tuple[Frame, str | None]:
    """Return a frame with its value inflated; or without a value, and the reason why it cannot be inflated.

    Raises:
        DecoderFault: the decoder failed.
    """
    try:
        return msgspec.structs.replace(frame, value=inflate(frame.value)), None
    except MalformedCompression as error:
        return msgspec.structs.replace(frame, value=b""), f"a value that cannot be inflated: {error}"
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.COMPRESSED_VALUE, error) from None
