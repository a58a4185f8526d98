"""Options of a client. They store all durations in seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import NoneType

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_flag, check_integer, is_ipv6
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, require_strategy
from triclinium_core.retry.couchbase import CircuitBreakerOptions, FastFailOnTerminalErrorRetryStrategy, Service
from triclinium_core.shown import shown
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer

SCRAM_ITERATIONS_MIN = 4_000
"""Default minimum number of SCRAM iterations: the number that older versions of Couchbase Server request.

A client that accepted a single iteration would send a proof with which a node could try passwords hundreds of times
faster.
"""
SCRAM_ITERATIONS_MAX = 30_000
"""Maximum number of SCRAM iterations that a client computes (decision D30).

The server chooses the number, and the computation blocks the event loop: for a microsecond per iteration with SHA-512,
and for several if hashlib lacks PBKDF2. Couchbase Server requests 15,000 iterations; its setting
``scramShaIterations`` permits ten million.
"""


@dataclass(frozen=True, slots=True)
class PasswordAuthenticator:
    """Authentication with a user name and a password.

    Args:
        allowed_sasl_mechanisms: mechanisms that the client may use. With None, the client uses only SCRAM, except over
            TLS that verifies the nodes, where it prefers PLAIN. A tuple with PLAIN permits PLAIN even without TLS and
            over TLS that does not verify the nodes, where anyone on the network can read the password. LDAP users need
            PLAIN.
        scram_iterations_min: minimum number of SCRAM iterations to accept from a node, 1 to ``SCRAM_ITERATIONS_MAX``.
            Default: 4,000. After one exchange, a node without the password can try passwords. Fewer
            iterations make each trial faster.

    Raises:
        InvalidArgumentException: the user name is empty, user name or password cannot be sent, the mechanisms are
            not a tuple of one or more of ``SASL_MECHANISMS``, or the number of iterations is out of range.
    """

    username: str
    password: str = field(repr=False)
    allowed_sasl_mechanisms: tuple[str, ...] | None = None
    scram_iterations_min: int = field(default=SCRAM_ITERATIONS_MIN, kw_only=True)

    def __post_init__(self) -> None:
        if not _can_travel(self.username) or not self.username:
            raise errors.InvalidArgumentException(
                f"username={shown(self.username)} must be a non-empty string of valid Unicode without NUL",
                parameter="username",
            )
        if not _can_travel(self.password):
            raise errors.InvalidArgumentException(
                "password must be a string of valid Unicode without NUL", parameter="password"
            )
        allowed = self.allowed_sasl_mechanisms
        # Require a tuple, because a caller may pass a single name by mistake.
        named = isinstance(allowed, tuple) and allowed and all(name in SASL_MECHANISMS for name in allowed)
        if allowed is not None and not named:
            raise errors.InvalidArgumentException(
                f"allowed_sasl_mechanisms={shown(allowed)} must be a tuple of one or more of {', '.join(SASL_MECHANISMS)}",
                parameter="allowed_sasl_mechanisms",
            )
        check_integer(self.scram_iterations_min, "scram_iterations_min", 1, SCRAM_ITERATIONS_MAX)


def _can_travel(text: object) -> bool:
    # RFC 4616 §2: NUL separates the parts of PLAIN. UTF-8 cannot encode lone surrogates.
    return isinstance(text, str) and not any(
        character == "\0" or "\ud800" <= character <= "\udfff" for character in text
    )


SASL_MECHANISMS = ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN")
"""SASL mechanisms for a password."""
OAUTHBEARER = "OAUTHBEARER"
"""SASL mechanism for a token."""

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""Pattern of a token (RFC 6750 §2.1, on which RFC 7628 is based)."""


@dataclass(frozen=True, slots=True)
class JwtAuthenticator:
    """Authentication with a JSON Web Token from the cluster's identity provider. ``repr`` does not show the token.

    Before the token expires, pass the next one to ``set_authenticator``.

    Args:
        token: token as the provider issued it.
        allow_unencrypted: whether the client may send the token without TLS, or over TLS that does not verify the
            nodes. Anyone on the network can then read and use the token. Default: False.

    Raises:
        InvalidArgumentException: ``token`` is not a valid token, or ``allow_unencrypted`` is not a bool.
    """

    token: str = field(repr=False)
    allow_unencrypted: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        # The argument may be a secret, so the error does not quote it.
        if not isinstance(self.token, str) or not _TOKEN.fullmatch(self.token):
            raise errors.InvalidArgumentException(
                "token must be a string of one or more of A-Z a-z 0-9 - . _ ~ + /, with = only at its end",
                parameter="token",
            )
        check_flag(self.allow_unencrypted, "allow_unencrypted")


@dataclass(frozen=True, slots=True)
class CertificateAuthenticator:
    """Authentication with a client certificate in the TLS handshake, without SASL. It needs ``couchbases://``.

    The driver reads the files when the client is opened and when ``set_authenticator`` is called. Without arguments,
    the client uses the certificate of your own ``ssl_context`` or ``connector``.

    Args:
        cert_path: path of a PEM file with the client's certificate, followed by the certificates of its authorities.
            Default: None, for the certificate of the ``ssl_context`` or ``connector``.
        key_path: path of a PEM file with the private key. Default: None, for a key in the file ``cert_path``.
        key_password: password of an encrypted key. ``repr`` does not show it. Default: None, for a key that is not
            encrypted.

    Raises:
        InvalidArgumentException: an argument is invalid, or a key is given without ``cert_path``.
    """

    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("cert_path", "key_path"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value and "\0" not in value):
                raise errors.InvalidArgumentException(
                    f"{name}={shown(value)} must be a string with the path of a file, or None", parameter=name
                )
        if not isinstance(self.key_password, str | None):
            raise errors.InvalidArgumentException("key_password must be a string or None", parameter="key_password")
        for name in ("key_path", "key_password"):
            if self.cert_path is None and getattr(self, name) is not None:
                raise errors.InvalidArgumentException(
                    f"{name} has no effect without cert_path; pass both", parameter=name
                )


Authenticator = PasswordAuthenticator | JwtAuthenticator | CertificateAuthenticator
"""Any kind of credentials that the client accepts."""
AUTHENTICATORS: tuple[type[Authenticator], ...] = (
    PasswordAuthenticator,
    JwtAuthenticator,
    CertificateAuthenticator,
)
AUTHENTICATOR_NAMES = "PasswordAuthenticator, JwtAuthenticator or CertificateAuthenticator"


HTTP_CONNECTIONS_MAX = 65_535
"""Maximum of ``max_http_connections``: the number of ports of a host, each of which permits one connection to an
endpoint."""
SECONDS_MAX = 1e9
"""Maximum timeout in seconds, about thirty years. ``math.inf`` means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class TimeoutOptions:
    """Timeouts of operations and connections; ``math.inf`` means no limit (SDK-RFC 0059 "Configuration").

    Each argument is a duration. The attributes are in seconds.

    Raises:
        InvalidArgumentException: a timeout is not a duration, is not above 0, or is above ``SECONDS_MAX`` and not
            ``math.inf``; or ``config_poll_interval`` is less than ``config_poll_floor``.
    """

    kv: float = 2.5
    kv_durable: float = 10.0
    """Timeout of a durable operation. The client uses 1.5 s instead of a shorter timeout."""
    kv_scan: float = 75.0
    """Timeout of each request that a range scan sends, not of the complete scan."""
    connect: float = 10.0
    """Maximum time from the start of opening a stream to the end of its bootstrap."""
    keep_alive_interval: float = 20.0
    """Time without a received frame after which a connection sends a NOOP."""
    keep_alive: float = 2.5
    """Time without a response to a NOOP after which the client closes the connection."""
    config_poll_interval: float = 2.5
    """Interval of config polls to a node that does not push new cluster configs (SDK-RFC 0024)."""
    query: float = 75.0
    """Timeout of a request to the query service. It limits the wait for the first rows, and then each wait for further
    rows that the reader requests. ``analytics``, ``search``, ``views`` and ``management`` do the same for requests to
    their services. ``management`` also limits most calls that make several requests."""
    analytics: float = 75.0
    search: float = 75.0
    views: float = 75.0
    management: float = 75.0
    idle_http_connection: float = 1.0
    """Time after which the client closes an idle HTTP connection, so that the node does not close it first."""
    config_poll_floor: float = 0.05
    """Minimum time between two config polls on one connection, whatever caused them."""

    def __init__(
        self,
        *,
        kv: Duration = 2.5,
        kv_durable: Duration = 10.0,
        kv_scan: Duration = 75.0,
        connect: Duration = 10.0,
        keep_alive_interval: Duration = 20.0,
        keep_alive: Duration = 2.5,
        query: Duration = 75.0,
        analytics: Duration = 75.0,
        search: Duration = 75.0,
        views: Duration = 75.0,
        management: Duration = 75.0,
        idle_http_connection: Duration = 1.0,
        config_poll_interval: Duration = 2.5,
        config_poll_floor: Duration = 0.05,
    ) -> None:
        for name, duration in (
            ("kv", kv),
            ("kv_durable", kv_durable),
            ("kv_scan", kv_scan),
            ("connect", connect),
            ("keep_alive_interval", keep_alive_interval),
            ("keep_alive", keep_alive),
            ("query", query),
            ("analytics", analytics),
            ("search", search),
            ("views", views),
            ("management", management),
            ("idle_http_connection", idle_http_connection),
            ("config_poll_interval", config_poll_interval),
            ("config_poll_floor", config_poll_floor),
        ):
            object.__setattr__(self, name, require_timeout(name, duration))
        if self.config_poll_interval < self.config_poll_floor:
            raise errors.InvalidArgumentException(
                f"config_poll_interval={self.config_poll_interval!r} must be at least "
                f"config_poll_floor={self.config_poll_floor!r}",
                parameter="config_poll_interval",
            )

    def of_service(self, service: Service) -> float:
        """Return the timeout of a request to ``service`` in seconds; for key-value, that of non-durable operations."""
        timeout: float = getattr(self, service.value)
        return timeout


def require_timeout(name: str, duration: Duration) -> float:
    """Return the timeout ``name`` in seconds.

    Raises:
        InvalidArgumentException: ``duration`` is not a duration, is not above 0, or is above ``SECONDS_MAX`` and not
            ``math.inf``.
    """
    return check_duration(duration, name, above_zero=True, most=SECONDS_MAX, endless=True)


_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?")
"""Pattern of a domain: labels of letters, digits, ``-`` and ``_``, as in a connection string."""
DOMAIN_SIZE_MAX = 255
"""Maximum length of a domain in characters. Names have at most 253 (RFC 1035 §2.3.4)."""


def require_domains(name: str, domains: Sequence[str]) -> tuple[str, ...]:
    """Return the domains of the option ``name`` as a tuple.

    Raises:
        InvalidArgumentException: ``domains`` is a single string, is not a sequence, or has an entry that is not a
            domain.
    """
    # Python regards a single string as a sequence of characters, but a caller who passes one has made a mistake.
    if not isinstance(domains, str | bytes) and isinstance(domains, Sequence):
        found = tuple(domains)
        if all(isinstance(each, str) and len(each) <= DOMAIN_SIZE_MAX and _is_domain(each) for each in found):
            return found
    raise errors.InvalidArgumentException(
        f"{name}={shown(domains)} must be a sequence of domain names, such as ('nodes.example',)", parameter=name
    )


def _is_domain(text: str) -> bool:
    return _DOMAIN.fullmatch(text) is not None or is_ipv6(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options of the client and its state machine ``ClientMachine``."""

    connection_string: str
    authenticator: Authenticator | None = None
    """Credentials of the client; None only for a ``memcached://`` connection string."""
    timeouts: TimeoutOptions = field(default_factory=TimeoutOptions)
    retry_strategy: AnyRetryStrategy = field(default_factory=FastFailOnTerminalErrorRetryStrategy)
    circuit_breaker: CircuitBreakerOptions = field(default_factory=CircuitBreakerOptions)
    compression: bool = True
    """Whether the client may compress values with Snappy before it sends them to a server that supports this."""
    hello_after_auth: bool = False
    """Whether to send HELLO after authentication, for servers that refuse an earlier HELLO (SDK-RFC 0013
    "Negotiation")."""
    renegotiate_on_corrupt_error_map: bool = False
    """Whether to reconnect without XERROR if the error map is corrupt, as RFC 0013 requires. Decision C18 describes the
    disadvantage."""
    max_http_connections: int = 64
    """Maximum number of connections to each HTTP service of each node. Further requests wait in a queue. 0 means no
    limit (SDK-RFC 0059)."""
    user_agent: str = "triclinium/0.1"
    network: str = "auto"
    """Network whose node addresses the client uses: ``default``, ``external``, or the name of another network. ``auto``
    selects the network of the seed address."""
    enable_dns_srv: bool = True
    """Whether to look up SRV records in DNS for a connection string with a single host and no port (SDK-RFC 0011 "SRV
    Records")."""
    dns_srv_domains: Sequence[str] = ()
    """Further domains and addresses that the client accepts as SRV targets. It always accepts the host of the
    connection string, the names below it, and, for a host of at least four labels, all names in its parent domain."""
    tls_is_verified: bool = True
    """Whether TLS verifies certificates and host names; the driver sets this. If it is False, the client uses PLAIN or
    a token only if the authenticator permits that, as without TLS (decision D67)."""
    tracer: ThresholdLoggingTracer | None = field(default_factory=ThresholdLoggingTracer)
    """Settings of the log reports on slow operations; None logs no slow operations (SDK-RFC 0067)."""
    meter: LoggingMeter | None = field(default_factory=LoggingMeter)
    """Settings of the log reports on how long operations take; None logs no durations."""
    orphans: OrphanReporter | None = field(default_factory=OrphanReporter)
    """Settings of the log reports on orphans, the responses whose operations have ended; None logs no orphans."""

    def __post_init__(self) -> None:
        for name, kinds, meaning in (
            ("connection_string", (str,), "a string such as couchbase://127.0.0.1"),
            ("authenticator", (*AUTHENTICATORS, NoneType), f"a {AUTHENTICATOR_NAMES}, or None"),
            ("timeouts", (TimeoutOptions,), "a TimeoutOptions"),
            ("circuit_breaker", (CircuitBreakerOptions,), "a CircuitBreakerOptions"),
            ("compression", (bool,), "True or False"),
            ("hello_after_auth", (bool,), "True or False"),
            ("renegotiate_on_corrupt_error_map", (bool,), "True or False"),
            ("user_agent", (str,), "a string"),
            ("network", (str,), "a string such as 'external'"),
            ("enable_dns_srv", (bool,), "True or False"),
            ("tls_is_verified", (bool,), "True or False"),
            ("tracer", (ThresholdLoggingTracer, NoneType), "a ThresholdLoggingTracer or None"),
            ("meter", (LoggingMeter, NoneType), "a LoggingMeter or None"),
            ("orphans", (OrphanReporter, NoneType), "an OrphanReporter or None"),
        ):
            value: object = getattr(self, name)
            if not isinstance(value, kinds):
                # The error does not show the authenticator or the connection string: either may contain a password.
                is_secret = name in ("authenticator", "connection_string")
                given = f", not {type(value).__name__}" if is_secret else ""
                argument = name if is_secret else f"{name}={shown(value)}"
                raise errors.InvalidArgumentException(f"{argument} must be {meaning}{given}", parameter=name)
        object.__setattr__(self, "dns_srv_domains", require_domains("dns_srv_domains", self.dns_srv_domains))
        check_integer(self.max_http_connections, "max_http_connections", 0, HTTP_CONNECTIONS_MAX)
        require_strategy(self.retry_strategy)
        if not self.network:
            raise errors.InvalidArgumentException(
                "network='' must be 'auto' or the name of a network, such as 'default' or 'external'",
                parameter="network",
            )
