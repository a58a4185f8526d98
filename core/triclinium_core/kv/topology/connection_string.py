"""Connection strings: scheme, hosts and options.

The form is ``scheme://host[:port][,host[:port]…][/][?option=value&…]``. ``;`` may also separate hosts. Brackets enclose
an IPv6 address. ``memcached://`` connects to a plain memcached and permits one host (decision C27).

Source: SDK-RFC 0011.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import Any
from urllib.parse import parse_qsl

from triclinium_core import errors
from triclinium_core.checks import is_ipv6
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology.srv_targets import is_literal
from triclinium_core.kv.topology.string_options import OPTIONS
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.shown import shown

CONNECTION_STRING_SIZE_MAX = 8192
"""Maximum number of characters of a connection string, enough for hundreds of hosts."""


@unique
class Scheme(StrEnum):
    """Scheme of a connection string. It determines the protocol and whether the client uses TLS."""

    COUCHBASE = "couchbase"
    COUCHBASES = "couchbases"
    MEMCACHED = "memcached"


DEFAULT_PORTS: Mapping[Scheme, int] = {Scheme.COUCHBASE: 11210, Scheme.COUCHBASES: 11207, Scheme.MEMCACHED: 11211}

HTTP_PORTS = frozenset({8091, 18091})
"""Ports of the web console, without and with TLS. Users often confuse them with the ports of the key-value service."""

_WITHOUT_BOTH_SLASHES = re.compile(
    # A scheme name before a colon and digits is a host with a port, so the pattern does not match it.
    rf"(?:(?P<scheme>{'|'.join(Scheme)})(?::/?(?!\d+(?:[/?,;]|$))|//?)|[a-z]+:/)(?P<rest>[^/:].*)",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\[(?P<host>[0-9A-Fa-f:.%\w]+)\](?::(?P<port>[0-9]+))?")
_DOTTED_MAPPED = re.compile(r"::ffff\.(?=[0-9.]+$)", re.IGNORECASE)
"""Prefix of an IPv4-mapped address in an example in SDK-RFC 0011. The prefix in RFC 4291 §2.2 is ``::ffff:``."""
_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+)*\.?")
"""Pattern of numbers and dots, which no resolver accepts as a name."""
_WITH_PROTOCOL = re.compile(r"(?P<host>.*?)(?P<port>:[0-9]+)?=(?P<protocol>\w+)")
"""Pattern of a host with the protocol of its port, a form that other Couchbase clients accept."""
_PORT = re.compile(r":[0-9]+$")
# ``\w`` matches letters of all scripts, because a host name may be internationalized.
_NAMED = re.compile(r"(?P<host>[\w.-]+)(?::(?P<port>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class ConnectionString:
    """Parts of a connection string."""

    scheme: Scheme
    addresses: tuple[Address, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    has_port: bool = field(default=False, compare=False)
    """Whether any host has an explicit port."""

    @property
    def tls(self) -> bool:
        """Whether the scheme requires TLS."""
        return self.scheme is Scheme.COUCHBASES

    def timeouts(self, given: TimeoutOptions) -> TimeoutOptions:
        """Return ``given`` with the timeouts from the connection string."""
        return replace(given, **self._named(TimeoutOptions))

    def over(self, given: ClientOptions) -> ClientOptions:
        """Return ``given`` with all options from the connection string.

        Raises:
            InvalidArgumentException: options contradict each other.
        """
        return replace(given, timeouts=self.timeouts(given.timeouts), **self._named(ClientOptions))

    def _named(self, group: type) -> dict[str, Any]:
        return {
            option.field: option.read(self.options[name])
            for name, option in OPTIONS.items()
            if option.group is group and name in self.options
        }

    @property
    def service(self) -> str | None:
        """Name of the SRV records to look up in DNS; None if the client must not look up any."""
        if self.scheme is Scheme.MEMCACHED or len(self.addresses) > 1 or self.has_port:
            return None
        host = self.addresses[0].host
        # RFC 6761 §6.3: localhost and names below it refer to this machine, so the client must not query a name server.
        is_local = host.lower().removesuffix(".").rpartition(".")[2] == "localhost"
        # Keep a final dot, because it excludes search domains.
        return None if is_local or is_literal(host) else f"_{self.scheme}._tcp.{host}"


def parse_connection_string(text: object) -> ConnectionString:
    """Return the parts of a connection string.

    Raises:
        InvalidArgumentException: ``text`` is not a valid connection string. The message gives the reason and, in most
            cases, a correction.
    """
    if not isinstance(text, str) or len(text) > CONNECTION_STRING_SIZE_MAX:
        kind = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise _wrong(f"expected a string of at most {CONNECTION_STRING_SIZE_MAX} characters, got {kind}")
    name, separator, rest = text.strip().partition("://")
    if not separator:
        match = _WITHOUT_BOTH_SLASHES.fullmatch(text.strip())
        if match is not None:
            meant = (match["scheme"] or Scheme.COUCHBASE).lower()
            raise _wrong(f"{_shown(text)!r} lacks '://'; write {meant}://{_shown(match['rest'])}")
        before, colon, after = text.strip().partition(":")
        if colon and not after.strip("/:") and before.lower() in tuple(Scheme):
            raise _wrong(f"{_shown(text)!r} has no host; write {before.lower()}://127.0.0.1")
        raise _wrong(f"{_shown(text)!r} has no scheme; write couchbase://{_shown(text).strip(' /:') or '127.0.0.1'}")
    if "@" in text:
        # Check for user names and passwords before splitting ``rest``, because a password may contain any separator.
        behind, beside = f"@{_shown(text)}", "pass the user name and password separately from the connection string"
        raise _wrong(f"nothing is allowed before {behind!r}; {beside}")
    if name.lower() not in tuple(Scheme):
        raise _wrong(f"scheme {name[:40]!r} is not one of {', '.join(Scheme)}")
    scheme = Scheme(name.lower())
    place, _, query = rest.partition("?")
    hosts, _, path = place.partition("/")
    written = [host.strip() for host in re.split("[,;]", hosts)]
    addresses = tuple(_parse_address(host, scheme) for host in written)
    if path.strip():
        # SDK-RFC 0011 permits the name of a bucket here, so refer to the method that opens a bucket.
        hint = "" if scheme is Scheme.MEMCACHED else "; cluster.bucket(name) opens a bucket"
        raise _wrong(f"remove {f'/{path.strip()}'[:40]!r} after the hosts{hint}")
    if scheme is Scheme.MEMCACHED and len(addresses) > 1:
        raise _wrong("memcached:// takes one host; there is no cluster in which to find others")
    has_port = any(_PORT.search(host) for host in written)
    return ConnectionString(scheme, addresses, _parse_options(query), has_port)


def _parse_address(text: str, scheme: Scheme) -> Address:
    match = _BRACKETED.fullmatch(text) or _NAMED.fullmatch(text)
    if match is None:
        raise _wrong(_no_address(text, scheme))
    port = int(match["port"]) if match["port"] and len(match["port"]) <= 5 else DEFAULT_PORTS[scheme]
    if (match["port"] and len(match["port"]) > 5) or not 1 <= port <= 65535:
        raise _wrong(f"port {match['port'][:20]} of {match['host'][:80]!r} is not from 1 to 65535")
    host = _DOTTED_MAPPED.sub("::ffff:", match["host"])
    if match.re is _BRACKETED and not is_ipv6(host):
        raise _wrong(f"{text[:80]!r} is not an IPv6 address; brackets enclose IPv6 addresses only")
    if _IPV4.fullmatch(host) and not _is_ipv4(host):
        raise _wrong(f"{text[:80]!r} is not an IPv4 address")
    return Address(host, port)


def _no_address(text: str, scheme: Scheme) -> str:
    """Return the message for a string that is neither a host nor ``host:port``."""
    suffixed = _WITH_PROTOCOL.fullmatch(text)
    if suffixed is not None:
        # Suggest removing the port together with an HTTP protocol, because an HTTP port is not a key-value port.
        port = suffixed["port"] or "" if suffixed["protocol"].lower().startswith("http") else ""
        surplus = f"{port}={suffixed['protocol']}"[:40]
        return (
            f"remove {surplus!r} from {text[:80]!r}; each host is a key-value node, at port "
            f"{DEFAULT_PORTS[scheme]} by default"
        )
    hint = "; put an IPv6 address in brackets" if text.count(":") > 1 else ""
    return f"{text[:80]!r} is not host or host:port{hint}"


def _is_ipv4(text: str) -> bool:
    """Return whether numbers and dots are an IPv4 address in a form that resolvers accept, such as ``127.1``."""
    *first, last = text.removesuffix(".").split(".")
    # Longer numbers are out of range, or have leading zeros. ``int`` raises for more than 4,300 digits.
    if len(first) > 3 or max(map(len, (*first, last))) > 10:
        return False
    return all(int(number) <= 0xFF for number in first) and int(last) < 0x100 ** (4 - len(first))


def check_bucket(scheme: Scheme, bucket: str | None) -> None:
    """Check that ``bucket`` fits the scheme: None for ``memcached://``, a name for all other schemes.

    Raises:
        InvalidArgumentException: ``bucket`` is a name over ``memcached://``, or None over another scheme.
    """
    if scheme is Scheme.MEMCACHED and bucket is not None:
        raise errors.InvalidArgumentException(
            f"bucket={shown(bucket)}: a plain memcached has no buckets; use cluster.default_collection()",
            parameter="bucket",
        )
    if scheme is not Scheme.MEMCACHED and bucket is None:
        raise errors.InvalidArgumentException(
            f"bucket=None: over {scheme}:// each document is in a bucket; use "
            "cluster.bucket(name).default_collection()",
            parameter="bucket",
        )


def _parse_options(query: str) -> Mapping[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=100)
    except ValueError as error:
        raise _wrong(f"the options {query[:80]!r} must be at most 100 name=value pairs joined by &") from error
    options: dict[str, str] = {}
    for name, value in pairs:
        option = OPTIONS.get(name)
        if option is None:
            raise _wrong(f"option {name[:40]!r} is not known; known options: {', '.join(OPTIONS)}")
        if name in options:
            raise _wrong(f"option {name} is given twice; keep one")
        try:
            option.read(value)
        except ValueError as error:
            raise _wrong(f"option {name}={value[:40]} {error}") from error
        options[name] = value
    return options


def _shown(text: str) -> str:
    """Return the first 80 characters for an error, without the part before the last ``@``: it may have a password."""
    return text[text.rfind("@") + 1 :][:80]


def _wrong(text: str) -> errors.InvalidArgumentException:
    return errors.InvalidArgumentException(f"connection string: {text}", parameter="connection_string")
