"""Bootstrap of a new stream: HELLO, error map, SASL, bucket and cluster config.

With SASL and the default options, one write sends the first four requests: HELLO, error map, list of mechanisms, first
SASL message. The last write selects the bucket, if any, and requests the config. Nodes respond in order, but the client
matches responses by opaque.

Source: kv_engine ``docs/BinaryProtocol.md``, ``docs/ErrorMap.md``; decisions C6, C7, C18, C26, C27, C35.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, unique

from triclinium_core import decoder_faults
from triclinium_core.kv.wire.config_version import encode_version
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame, encode_request
from triclinium_core.options import Authenticator, CertificateAuthenticator, ClientOptions
from triclinium_core.retry import couchbase
from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.sasl import SaslExchange, SaslMessage, SaslRefusal, mechanisms_of, user_of
from triclinium_core.runtime.kv.connection.scram import SaltedPasswords
from triclinium_core.runtime.kv.connection.states import ConnectionEvent

WANTED_FEATURES = (
    HelloFeature.TCP_NODELAY,
    HelloFeature.MUTATION_SEQNO,
    HelloFeature.XATTR,
    HelloFeature.SELECT_BUCKET,
    HelloFeature.JSON,
    HelloFeature.DUPLEX,
    HelloFeature.UNORDERED_EXECUTION,
    HelloFeature.TRACING,
    HelloFeature.ALT_REQUEST,
    HelloFeature.SYNC_REPLICATION,
    HelloFeature.COLLECTIONS,
    HelloFeature.PRESERVE_TTL,
    HelloFeature.SUBDOC_CREATE_AS_DELETED,
    HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION,
    HelloFeature.DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP,
    HelloFeature.SUBDOC_REPLICA_READ,
    HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF,
)
COMPRESSION_FEATURES = (HelloFeature.SNAPPY, HelloFeature.SNAPPY_EVERYWHERE)
USER_AGENT_SIZE_MAX = 200
"""Maximum number of characters of the user agent (SDK-RFC 0035)."""
HELLO_SIZE_MAX = 1024
"""Maximum size in bytes of the list of granted features. A server grants at most the requested features, which take
about forty bytes."""
MECHANISMS_SIZE_MAX = 1024
"""Maximum number of bytes of the list of mechanisms that the client parses. Servers send about fifty."""
MECHANISMS_MAX = 20
"""Maximum number of mechanism names that the client keeps. Servers offer four. Statistics and ``ping`` show them."""
_MECHANISM = re.compile(r"[A-Z0-9_-]{1,20}")
"""Pattern of valid names of SASL mechanisms (RFC 4422 §3.1). The client drops other names."""


@unique
class FailureKind(Enum):
    """Cause of a failed bootstrap."""

    CREDENTIALS = "the credentials were refused"
    BUCKET = "the bucket could not be selected"
    BUCKET_TYPE = "the client does not support the type of the bucket"
    NO_CONFIG = "the bucket exists, but has no cluster config, or none yet"
    NO_VBUCKETS = "the bucket exists, but its cluster config has no vbuckets yet"
    UNPROVEN_NODE = "the client refused the node: it did not authenticate itself, or its request is not permitted"
    NOT_COUCHBASE = "the server does not speak Couchbase's protocol"
    TLS = "the server uses TLS, and the client does not"
    CORRUPT_ERROR_MAP = "the error map is corrupt, and renegotiation is enabled"
    PROTOCOL = "the server sent an invalid response"


@dataclass(frozen=True, slots=True)
class BootstrapFailure:
    """Reason why a connection is unusable. ``status`` is that of the response that caused it; None without one."""

    kind: FailureKind
    text: str
    status: int | None = None
    advice: str = ""
    """Next step for the user, with which ``text`` ends, or an empty string. One warning per client gives it."""
    fault: decoder_faults.DecoderFault | None = None
    """Exception of a decoder that failed on the node's bytes, if this caused the failure; otherwise None."""

    @classmethod
    def of_fault(cls, fault: decoder_faults.DecoderFault) -> BootstrapFailure:
        """Return the failure of a connection after a decoder failed on its bytes."""
        return cls(FailureKind.PROTOCOL, str(fault), fault=fault)

    @classmethod
    def of_bucket(cls, bucket: str, authenticator: Authenticator, status: int) -> BootstrapFailure | None:
        """Return the failure for the status of a SELECT_BUCKET response, or None if the bucket is selected."""
        if status == couchbase.Status.SUCCESS:
            return None
        text = f"bucket {bucket!r}: {_named(status)}"
        if status == couchbase.Status.NO_ACCESS:
            text = f"bucket {bucket!r} does not exist, or {user_of(authenticator)} may not open it"
        elif status == couchbase.Status.KEY_NOT_FOUND:
            text = f"bucket {bucket!r} is not on this node yet"
        return cls(FailureKind.BUCKET, text, status)

    @classmethod
    def of_sasl(cls, refusal: SaslRefusal) -> BootstrapFailure:
        """Return the failure of an authentication that the node or the client has refused."""
        kind = FailureKind.CREDENTIALS if refusal.is_of_credentials else FailureKind.PROTOCOL
        kind = FailureKind.UNPROVEN_NODE if refusal.is_ours else kind
        return cls(kind, refusal.text, refusal.status, refusal.advice)

    @property
    def lacks_bucket(self) -> bool:
        """Whether the node does not have the bucket, or does not permit the user to open it."""
        return self.kind is FailureKind.BUCKET and self.status in {
            couchbase.Status.NO_ACCESS,
            couchbase.Status.KEY_NOT_FOUND,
        }

    @property
    def is_denial(self) -> bool:
        """Whether the bucket does not exist or the user may not open it.

        Only an administrator or other credentials can change this.
        """
        return self.kind is FailureKind.BUCKET and self.status == couchbase.Status.NO_ACCESS


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapPlan:
    """Settings for the bootstrap of one connection."""

    authenticator: Authenticator
    bucket: str | None
    tls: bool
    """Whether the stream has TLS that verifies the node."""
    nonce: str
    user_agent: str
    connection_id: str
    compression: bool = True
    xerror: bool = True
    hello_after_auth: bool = False
    renegotiate_on_corrupt_error_map: bool = False
    known_config: tuple[int, int] | None = None
    """Epoch and revision of the known cluster config. The node may omit a config that is not newer. With None, the node
    must send its config."""
    salted_passwords: SaltedPasswords = field(default_factory=SaltedPasswords, repr=False, compare=False)
    """Salted passwords that connections with the same authenticator have computed."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """SASL mechanisms in order of preference; empty without SASL."""
        return mechanisms_of(self.authenticator, tls=self.tls)

    @property
    def begins_with_hello(self) -> bool:
        """Whether HELLO is the first request."""
        return not self.hello_after_auth or isinstance(self.authenticator, CertificateAuthenticator)


def plan_of(
    options: ClientOptions,
    authenticator: Authenticator | None,
    *,
    bucket: str | None,
    xerror: bool,
    tls: bool,
    nonce: str,
    connection_id: str,
    known_config: tuple[int, int] | None = None,
    salted_passwords: SaltedPasswords,
) -> BootstrapPlan:
    """Return the plan for a client with these options and the credentials of ``authenticator``."""
    assert authenticator is not None, "only a plain memcached needs no credentials, and there is no bootstrap with it"
    return BootstrapPlan(
        authenticator=authenticator,
        bucket=bucket,
        tls=tls,
        nonce=nonce,
        user_agent=options.user_agent,
        connection_id=connection_id,
        compression=options.compression,
        xerror=xerror,
        hello_after_auth=options.hello_after_auth,
        renegotiate_on_corrupt_error_map=options.renegotiate_on_corrupt_error_map,
        known_config=known_config,
        salted_passwords=salted_passwords,
    )


@dataclass(slots=True)
class Negotiated:
    """Results of a bootstrap: credentials, features, mechanisms, error map and cluster config."""

    authenticator: Authenticator | None = None
    """Credentials of the stream, including during authentication; None without authentication."""
    features: frozenset[int] = frozenset()
    offered_mechanisms: tuple[str, ...] = ()
    mechanism: str | None = None
    error_map: couchbase.ErrorMap | None = None
    error_map_problem: str | None = None
    """Reason, for the log, why the node sent no valid error map; None if it did, or if none was requested."""
    config: bytes | None = None

    def share(self, error_map: couchbase.ErrorMap) -> None:
        """Replace the error map with an equal error map, which other connections share."""
        self.error_map = error_map

    @property
    def announces_configs(self) -> bool:
        """Whether the node announces each new cluster config without a request for it."""
        return HelloFeature.CLUSTERMAP_NOTIFICATION_BRIEF in self.features

    @property
    def sends_only_new_config(self) -> bool:
        """Whether the node omits the cluster config from its response if the request has the version of that config."""
        return HelloFeature.GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION in self.features


class Bootstrap:
    """Bootstrap of one stream. Feed each response that it ``awaits`` to ``receive``, until ``is_done`` or ``failure``.

    Args:
        move: function that changes the state of the connection at each step.
        nonces: source of the nonces of the stream.
    """

    def __init__(
        self, plan: BootstrapPlan, move: Callable[[ConnectionEvent], None], nonces: ExchangeNonces | None = None
    ) -> None:
        self._plan = plan
        self._move = move
        self._steps: dict[int, tuple[Opcode, Callable[[Frame], bytes]]] = {}
        self._opaque = 0
        self._sasl = SaslExchange(
            plan.authenticator,
            tls=plan.tls,
            nonce=plan.nonce,
            salted_passwords=plan.salted_passwords,
            nonces=nonces,
        )
        self.has_responded: bool = False
        """Whether the server has responded, which proves that it speaks the protocol."""
        self.negotiated: Negotiated = Negotiated(plan.authenticator)
        self.failure: BootstrapFailure | None = None
        self.sasl_status: int | None = None
        """Final status of SASL; None before SASL has ended."""
        self.bucket_status: int | None = None
        """Status of the SELECT_BUCKET response; None before the response."""
        self.is_done: bool = False
        """Whether the node has responded to all requests, so that the connection is ready."""
        self._is_joining = False
        """Whether the requests for the bucket and the cluster config have been sent."""

    @property
    def unanswered(self) -> Opcode | None:
        """Opcode of the oldest unanswered request, or None if no request is unanswered."""
        return next((opcode for opcode, _ in self._steps.values()), None)

    @property
    def last_opaque(self) -> int:
        """Opaque of the newest request. The opaques of a bootstrap start at 1."""
        return self._opaque

    def awaits(self, opaque: int) -> bool:
        """Return whether the request with this opaque is unanswered."""
        return opaque in self._steps

    def start(self) -> bytes:
        """Return the bytes of the first requests."""
        self._move(ConnectionEvent.HELLO_SENT if self._plan.begins_with_hello else ConnectionEvent.SASL_SENT)
        burst = self._hello() if self._plan.begins_with_hello else b""
        if self._plan.mechanisms:
            burst += self._request(Opcode.SASL_LIST_MECHS, self._on_mechanisms)
            burst += self._message_frame(self._sasl.start())
        return burst

    def receive(self, frame: Frame) -> bytes:
        """Process a response that the bootstrap ``awaits``. Return the bytes to send next, which may be empty.

        Set ``failure`` if the bootstrap cannot continue after the response.
        """
        opcode, step = self._steps.pop(frame.opaque)
        if opcode != frame.opcode:
            return self._fail(
                f"sent a response with opcode 0x{frame.opcode:02x} to a request with opcode 0x{opcode:02x}"
            )
        self.has_responded = True
        data = step(frame)
        if self._is_joining and not self._steps and self.failure is None:
            # Wait for all responses: the config may arrive before the responses to earlier requests.
            self.is_done = True
            self._move(ConnectionEvent.ALL_ANSWERED)
        return data

    def _request(
        self,
        opcode: Opcode,
        step: Callable[[Frame], bytes],
        *,
        extras: bytes = b"",
        key: bytes = b"",
        value: bytes = b"",
    ) -> bytes:
        self._opaque += 1
        self._steps[self._opaque] = opcode, step
        return encode_request(opcode, opaque=self._opaque, extras=extras, key=key, value=value)

    def _fail(self, text: str, kind: FailureKind = FailureKind.PROTOCOL, status: int | None = None) -> bytes:
        self.failure = BootstrapFailure(kind, text, status)
        self._steps.clear()
        return b""

    def _hello(self) -> bytes:
        features = [*WANTED_FEATURES]
        if self._plan.compression:
            features += COMPRESSION_FEATURES
        if self._plan.xerror:
            features.append(HelloFeature.XERROR)
        # SDK-RFC 0035 "Client / Connection IDs" requires JSON without whitespace.
        agent = json.dumps(
            {"a": self._plan.user_agent[:USER_AGENT_SIZE_MAX], "i": self._plan.connection_id}, separators=(",", ":")
        )
        value = struct.pack(f">{len(features)}H", *features)
        burst = self._request(Opcode.HELLO, self._on_hello, key=agent.encode(), value=value)
        if self._plan.xerror:
            version = struct.pack(">H", couchbase.ERROR_MAP_VERSION_MAX)
            burst += self._request(Opcode.GET_ERROR_MAP, self._on_error_map, value=version)
        return burst

    def _on_hello(self, frame: Frame) -> bytes:
        if frame.status == couchbase.Status.UNKNOWN_COMMAND:
            # Decision C27: a plain memcached responds with this status, and then misreads the rest of the stream.
            text = "does not know HELLO; if it is a plain memcached, connect with memcached:// instead"
            return self._fail(text, FailureKind.NOT_COUCHBASE, frame.status)
        if frame.status != couchbase.Status.SUCCESS:
            return self._fail(f"refused HELLO: {_named(frame.status)}", status=frame.status)
        if len(frame.value) % 2 or len(frame.value) > HELLO_SIZE_MAX:
            return self._fail(f"sent an invalid list of features, of {len(frame.value)} bytes")
        self.negotiated.features = frozenset(struct.unpack(f">{len(frame.value) // 2}H", frame.value))
        if self._is_joining:
            return b""
        self._move(ConnectionEvent.HELLO_ANSWERED)
        # Without mechanisms, the client has presented a certificate in the TLS handshake, and the server accepts no
        # SASL after that.
        return b"" if self._plan.mechanisms else self._join()

    def _on_error_map(self, frame: Frame) -> bytes:
        if frame.status != couchbase.Status.SUCCESS:
            self.negotiated.error_map_problem = f"the node has no error map: {_named(frame.status)}"
            return b""
        try:
            self.negotiated.error_map = couchbase.parse_error_map(frame.value)
        except couchbase.MalformedErrorMap as error:
            self.negotiated.error_map_problem = f"the node's error map is corrupt: {error}"
            if self._plan.renegotiate_on_corrupt_error_map:
                return self._fail(self.negotiated.error_map_problem, FailureKind.CORRUPT_ERROR_MAP)
        except Exception as error:
            self.failure = BootstrapFailure.of_fault(decoder_faults.unexpected(decoder_faults.Decoder.ERROR_MAP, error))
            self._steps.clear()
        return b""

    def _on_mechanisms(self, frame: Frame) -> bytes:
        if frame.status == couchbase.Status.SUCCESS:
            listed = frame.value[:MECHANISMS_SIZE_MAX].decode("ascii", "replace").split()
            names = [name for name in listed if _MECHANISM.fullmatch(name)][:MECHANISMS_MAX]
            self.negotiated.offered_mechanisms = self._sasl.offered = tuple(names)
        return b""

    def _message_frame(self, message: SaslMessage | None) -> bytes:
        """Return the frame for a SASL message, or set ``failure`` if the exchange was refused."""
        self.negotiated.mechanism = self._sasl.mechanism
        refusal = self._sasl.refusal
        if refusal is not None:
            self.failure = BootstrapFailure.of_sasl(refusal)
            self._steps.clear()
            return b""
        assert message is not None
        return self._request(message.opcode, self._on_sasl, key=message.mechanism.encode(), value=message.payload)

    def _on_sasl(self, frame: Frame) -> bytes:
        message = self._sasl.receive(frame)
        self.sasl_status = self._sasl.status
        return self._join() if self._sasl.is_done else self._message_frame(message)

    def _join(self) -> bytes:
        self._is_joining = True
        self._move(ConnectionEvent.AUTHENTICATED)
        burst = b"" if self._plan.begins_with_hello else self._hello()
        if self._plan.bucket is not None:
            burst += self._request(Opcode.SELECT_BUCKET, self._on_bucket, key=self._plan.bucket.encode())
        extras = encode_version(self._plan.known_config) if self.negotiated.sends_only_new_config else b""
        return burst + self._request(Opcode.GET_CLUSTER_CONFIG, self._on_config, extras=extras)

    def _on_bucket(self, frame: Frame) -> bytes:
        self.bucket_status = frame.status
        failure = BootstrapFailure.of_bucket(self._plan.bucket or "", self._plan.authenticator, frame.status)
        return b"" if failure is None else self._fail(failure.text, failure.kind, failure.status)

    def _on_config(self, frame: Frame) -> bytes:
        if frame.status == couchbase.Status.SUCCESS:
            self.negotiated.config = frame.value
        elif frame.status == couchbase.Status.KEY_NOT_FOUND and self.bucket_status == couchbase.Status.SUCCESS:
            text = (
                f"bucket {self._plan.bucket!r} has no cluster config: either it was just created, or it is a "
                "memcached bucket, which this client does not support; use a couchbase or ephemeral bucket"
            )
            return self._fail(text, FailureKind.NO_CONFIG, frame.status)
        elif self._plan.bucket is not None:
            # Fail only for a bucket: the client needs the bucket's config to locate documents, but can work without a
            # global config.
            return self._fail(f"sent no cluster config: {_named(frame.status)}", status=frame.status)
        return b""


def _named(status: int) -> str:
    return f"{couchbase.status_name(status) or 'unknown status'} [0x{status:02x}]"
