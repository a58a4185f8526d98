"""One connection to one node, through all its streams: bootstrap, requests in flight, keep-alive, circuit breaker.

It decides nothing about operations: it tells what happened as news, and the client machine draws the conclusions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from triclinium_core import decoder_faults
from triclinium_core.decoder_faults import Decoder, DecoderFault
from triclinium_core.kv.address import Address
from triclinium_core.kv.operation.codec_parts import Dialect
from triclinium_core.kv.wire.compression import MalformedCompression, inflate
from triclinium_core.kv.wire.config_version import CONFIG_VERSION
from triclinium_core.kv.wire.constants import Datatype, HelloFeature, Magic, Opcode, ServerOpcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.options import Authenticator
from triclinium_core.retry.couchbase.circuit_breaker import BreakerEvent, CircuitBreaker, CircuitBreakerOptions
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
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
    BytesOrdered,
    ConfigAnnounced,
    News,
    SaslAnswered,
    Strayed,
)
from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.first_bytes import TLS_ALERT, recognise
from triclinium_core.runtime.kv.connection.grace_period import GracePeriod
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest, InFlightTable, Purpose
from triclinium_core.runtime.kv.connection.reauthentication import Reauthentication, RequestParts
from triclinium_core.runtime.kv.connection.sasl import SaslExchange
from triclinium_core.runtime.kv.connection.scram import SaltedPasswords
from triclinium_core.runtime.kv.connection.server_time import ServerTime
from triclinium_core.runtime.kv.connection.states import CONNECTION_TRANSITIONS, ConnectionEvent, ConnectionState
from triclinium_core.runtime.kv.connection.waiting_line import WaitingLine
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.work import BYTES_PER_UNIT, FRAME_WORK, PIECE_WORK

UNASKED_MAX = 16
"""Answers on one stream to requests that were never made. One may be a slip; who goes on speaks to somebody else."""

_SNAPPY, _SERVER_REQUEST, _AUTHENTICATION = int(Datatype.SNAPPY), int(Magic.SERVER_REQUEST), Purpose.AUTHENTICATION
"""Plain numbers: looking at a member of an enumeration takes far longer."""


class Connection:
    """One connection.

    Args:
        bucket: what to select on it; None for the connection that belongs to no bucket.
        addresses: where the node may be; tried in turn, one for each stream.
        bare: whether the peer is a plain memcached.
        is_seeking: whether any node of the cluster will do.
    """

    work: int = 0
    """Units of work of the newest bytes. The parser of a config in them adds its own."""
    address_remark: str = ""
    """Addition to the errors of a stream that is not open yet: why the client uses its address. Often empty."""
    faulty_streams: int = 0
    """Number of consecutive streams that were closed because a decoder failed on their bytes."""
    lacks_bucket: bool = False
    """Whether the last stream ended because the node does not have the bucket, or refuses it to the user."""
    earlier_failures: int = 0
    """Failed attempts at the bucket before the client forgot it. They count for the backoff."""
    is_refused: bool = False
    """Whether all addresses were tried and the client refused to authenticate with the last node (decision C6)."""
    _frames_came: bool = False
    """Whether the peer of the present stream has sent a whole frame."""
    _is_proven: bool = False
    """Whether a request was answered on the present stream, once it was ready."""
    _unasked: int = 0
    """Answers on the present stream to requests that were never made."""

    def __init__(
        self,
        bucket: str | None,
        addresses: Sequence[Address],
        *,
        bare: bool,
        compression: bool,
        circuit_breaker: CircuitBreakerOptions,
        is_seeking: bool = False,
    ) -> None:
        self.bucket: str | None = bucket
        self.address: Address = addresses[0]
        self.node: str = str(self.address)
        """The node's name in logs and errors: ``host:port``."""
        self.state: ConnectionState = ConnectionState.LOST
        self.is_in_use: bool = False
        """Whether the bootstrap of the present stream is over: it is ready, or authenticates again."""
        self.dialect: Dialect = Dialect(bare=bare)
        self.negotiated: Negotiated = Negotiated()
        self.breaker: CircuitBreaker = CircuitBreaker(circuit_breaker)
        self.in_flight: InFlightTable = InFlightTable()
        self.waiting: WaitingLine = WaitingLine()
        """Who waits until the connection is ready and has room."""
        self.outgoing: list[bytes] = []
        """Frames that go out when the present event is handled."""
        self.last_heard: float = -math.inf
        """When the newest whole frame came, or the stream was opened."""
        self.last_error: str | None = None
        self.link: Link = Link(0, self.node, None)
        """The present stream, or the last one, as the operations that are sent on it remember it."""
        self.server_time: ServerTime = ServerTime()
        self.questions: GracePeriod = GracePeriod()
        """With our own questions, of which some may get lost, but not all."""
        self.config_asked_at: float = -math.inf
        """When a cluster config was asked for that has not come yet."""
        self.config_polled_at: float = -math.inf
        """When a cluster config was asked for last, answered or not."""
        self.announced: tuple[int, int] | None = None
        """Epoch and revision of the config that the node said it has, until it was asked for that."""
        self.xerror: bool = True
        """False after a corrupt error map, where renegotiation was asked for."""
        self.is_leaving: bool = False
        """Whether its node has left the map, so that nothing more is sent and no other stream opened."""
        self.was_reached: bool = False
        """Whether any stream to the node was ever opened."""
        self.was_ready: bool = False
        """Whether the connection was ever ready."""
        self.authenticator: Authenticator | None = None
        """Who the present stream speaks for, or is just saying that it does; None where nobody is asked."""
        self.attempts: int = 0
        """Streams that were begun."""
        self.stream_number: int = 0
        """The present stream, or the last one, counted over all connections of the client."""
        self.failed_attempts: int = 0
        """Streams that were lost one after the other before a request was answered on them."""
        self.losses: int = 0
        """How often a stream was lost, or could not be opened, since the connection was last ready."""
        self.is_unsupported: bool = False
        """Whether all addresses were tried and the last peer speaks another protocol, or the bucket is of no use."""
        self.is_seeking: bool = is_seeking
        """Whether it may be to any node of the cluster, so that the addresses to try are those of the seeds."""
        self._addresses, self._attempts = addresses, 0
        self._compression = compression
        self._nonces = ExchangeNonces(0)
        """Nonces of the current stream."""
        self._bootstrap: Bootstrap | None = None
        self._again: Reauthentication | None = None
        """The authentication that goes on while the connection is in use."""
        self._buffer: FrameBuffer | None = None
        """Of the present stream; a connection that has none keeps no room for what it would receive."""

    @property
    def address_count(self) -> int:
        """At how many addresses the node may be."""
        return len(self._addresses)

    @property
    def has_to_be_polled(self) -> bool:
        """Whether the node of the present stream will not say of itself that it has a new cluster config."""
        return not self.dialect.bare and HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF not in self.negotiated.features

    @property
    def tells_only_news(self) -> bool:
        """Whether the node of the present stream, told which cluster config is known, leaves that one out."""
        return HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION in self.negotiated.features

    @property
    def has_tried_all(self) -> bool:
        """Whether no address is left that was not tried since a request was answered last."""
        return self.failed_attempts >= len(self._addresses)

    @property
    def unavailable_reason(self) -> RetryReason:
        """The reason why nothing can be dispatched to it now, as far as this connection alone decides it."""
        if self.is_refused:
            return RetryReason.AUTHENTICATION_ERROR
        return RetryReason.SOCKET_NOT_AVAILABLE if self.was_reached else RetryReason.NODE_NOT_AVAILABLE

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
        self.attempts += 1
        self.choose()
        self._frames_came = self._is_proven = False
        self._unasked = 0
        self.negotiated = Negotiated()
        self.dialect = Dialect(bare=self.dialect.bare, compression=self._compression)
        return self.address

    def choose(self) -> Address:
        """Take the next one of the addresses for the stream that is to be opened, and return it."""
        self.address = self._addresses[self._attempts % len(self._addresses)]
        self.node = str(self.address)
        self._attempts += 1
        return self.address

    def look_at(self, addresses: Sequence[Address]) -> None:
        """Try these addresses in turn from now on, beginning with the one after the present one."""
        if addresses != self._addresses:
            self._attempts = addresses.index(self.address) + 1 if self.address in addresses else 0
            self._addresses = addresses

    def stay(self) -> None:
        """Try no other address from now on than the present one."""
        self._addresses = (self.address,)
        self.is_seeking = False

    def stream_opened(self, plan: BootstrapPlan | None, now: float) -> Sequence[News]:
        """Begin the bootstrap; without a ``plan`` there is none, and the connection is ready."""
        self.last_heard = now
        self.was_reached = True
        self._buffer = FrameBuffer(CLIENT_ACCEPTS)
        if plan is None:
            self._move(ConnectionEvent.NOTHING_TO_ASK)
            return [self._become_ready(now)]
        self._nonces = ExchangeNonces(self.stream_number)
        self._bootstrap = Bootstrap(plan, self._nonces)
        self.authenticator = plan.authenticator
        burst = self._bootstrap.start()
        self.state = self._bootstrap.state
        if self._bootstrap.failure is not None:
            return [BecameUnusable(self._bootstrap.failure.text, self._bootstrap.failure)]
        self.in_flight.skip(len(burst), self._bootstrap.last_opaque)
        return [BytesOrdered(burst)]

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
        return news if unusable is None else [*news, unusable]

    def bytes_received(self, data: bytes, now: float) -> Sequence[News]:
        """Take bytes, cut anywhere, and return what they mean. The last news may be that the peer made a mistake."""
        assert self._buffer is not None, "bytes come on a stream that is open"
        news: list[News] = []
        frames = self._buffer.receive(data)
        self.work = PIECE_WORK + len(data) // BYTES_PER_UNIT + len(frames) * FRAME_WORK
        if frames:
            # Bytes alone are no sign of life: a wrong length swallows every answer that follows.
            self.last_heard = now
            self._frames_came = True
        for received in frames:
            frame, problem = received, None
            if frame.magic == _SERVER_REQUEST:
                self._on_server_request(frame, news)
                continue
            if frame.datatype & _SNAPPY:
                try:
                    frame, problem = _inflated(frame)
                except DecoderFault as fault:
                    news.append(BecameUnusable(str(fault), BootstrapFailure.of_fault(fault)))
                    return news
                self.work += len(frame.value) // BYTES_PER_UNIT
            if not self.is_in_use:
                unusable = self._on_response_to_bootstrap(frame, problem, now, news)
            elif (request := self.in_flight.answered(frame)) is None:
                unusable = self._on_stray(frame, news)
            else:
                if not self._is_proven:
                    self._is_proven, self.failed_attempts = True, 0
                if frame.framing_extras:
                    self.server_time.note(frame.framing_extras)
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

    def lost(self, detail: str) -> Iterator[InFlightRequest]:
        """Record that the stream is gone, and return the requests that had no answer, oldest first."""
        if self.state is not ConnectionState.LOST:
            self.losses += 1
            if not self._is_proven:
                self.failed_attempts += 1
            self._move(ConnectionEvent.STREAM_LOST)
        self.is_in_use = False
        self.outgoing.clear()
        failure = self._bootstrap.failure if self._bootstrap is not None else None
        # Another address may lead to what this one does not.
        kind = failure.kind if failure is not None and self.has_tried_all else None
        self.is_unsupported = kind is FailureKind.NOT_COUCHBASE
        self.is_refused = kind is FailureKind.UNPROVEN_NODE
        self.last_error = detail
        self.config_asked_at = -math.inf
        self.questions.reset()
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
            epoch, revision = CONFIG_VERSION.unpack(frame.extras)
            self.announced = (epoch, revision)
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
        self.authenticator, self.negotiated.mechanism = again.exchange.authenticator, again.exchange.mechanism
        if again.failure is not None:
            return BecameUnusable(again.failure.text, again.failure)
        if question is None:
            self._again = None
            self._move(ConnectionEvent.AUTHENTICATED_AGAIN)
            news.append(AuthenticatedAgain())
            return None
        opcode, key, value = question
        data = encode_request(opcode, opaque=self.in_flight.next_opaque, key=key, value=value)
        self.in_flight.add(Purpose.AUTHENTICATION, data)
        news.append(BytesOrdered(data))
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
                self.xerror = False
            return BecameUnusable(bootstrap.failure.text, bootstrap.failure)
        if data:
            self.in_flight.skip(len(data), bootstrap.last_opaque)
            news.append(BytesOrdered(data))
        self.state = bootstrap.state
        if bootstrap.is_done:
            self.negotiated = bootstrap.negotiated
            self.dialect = replace(self.dialect, features=self.negotiated.features)
            news.append(self._become_ready(now))
        return None

    def _become_ready(self, now: float) -> BecameReady:
        self.is_in_use = True
        self._bootstrap = None
        self.was_ready = True
        self.is_unsupported = self.is_refused = False
        self.last_error = None
        losses, self.losses = self.losses, 0
        self.breaker.handle(BreakerEvent.RECONNECTED, now)
        return BecameReady(losses)

    def _move(self, event: ConnectionEvent) -> None:
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
