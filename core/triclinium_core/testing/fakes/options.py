"""Options of a fake node, and the addresses of the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType

from triclinium_core import errors
from triclinium_core.checks import check_integer, check_number, check_type
from triclinium_core.kv.operation.validation import DEFAULT_NAME, REPLICAS_MAX, UINT32_MAX, check_bucket_name
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.options import (
    OAUTHBEARER,
    SASL_MECHANISMS,
    SCRAM_ITERATIONS_MAX,
    SCRAM_ITERATIONS_MIN,
    JwtAuthenticator,
    PasswordAuthenticator,
)
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.error_map import ERROR_MAP, ErrorMapDocument

IMPLEMENTED_FEATURES = frozenset(HelloFeature) - {
    HelloFeature.SUBDOC_DOCUMENT_MACRO,
    HelloFeature.REPORT_UNIT_USAGE,
    HelloFeature.NON_BLOCKING_THROTTLING,
}
"""Features that the node can grant, because it implements them."""

VBUCKET_COUNTS = (128, 1024)
"""Valid numbers of vbuckets of a bucket; on a server, 128 requires Magma storage."""

NODES_MAX = 128
"""Maximum number of nodes, so that each node has a vbucket even of a bucket with 128 vbuckets."""

PORT_STRIDE = 2
"""Distance between the KV ports of adjacent nodes: a TLS port fits between them."""

SERVICE_PORTS: Mapping[Service, int] = {
    Service.MANAGEMENT: 8091,
    Service.VIEWS: 8092,
    Service.QUERY: 8093,
    Service.SEARCH: 8094,
    Service.ANALYTICS: 8095,
}
"""Default ports of the services other than KV.

Source: Couchbase Server documentation, "Couchbase Server Ports".
"""

TLS_SERVICE_PORTS: Mapping[Service, int] = {service: port + 10_000 for service, port in SERVICE_PORTS.items()}
"""Default ports of the services over TLS."""

SERVICE_PORT_STRIDE = 10
"""Distance between the service ports of adjacent nodes."""

HTTP_SERVICES = frozenset(SERVICE_PORTS)
"""All services except KV; they use HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeNodeOptions:
    """Initial state of a node. Times are in seconds.

    Raises:
        InvalidArgumentException: a value is invalid; ``parameter`` names it.
    """

    host: str = "127.0.0.1"
    """Host of the node in configs; for ``$HOST`` a client substitutes the host to which it connected."""
    port: int = 11210
    """KV port of the node in configs: the port on which the driver serves it."""
    tls_port: int | None = None
    alternate_addresses: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Host and KV port in other networks, by network name such as ``external``. KV over TLS has the same port.

    The other services have the same ports there.
    """
    services: frozenset[Service] = field(default_factory=lambda: frozenset(Service))
    """Services of the node; a service that is not listed has no port and is not in configs."""
    service_ports: Mapping[Service, int] = field(default_factory=lambda: SERVICE_PORTS)
    tls_service_ports: Mapping[Service, int] = field(default_factory=lambda: TLS_SERVICE_PORTS)
    """Ports over TLS, used only with a ``tls_port``: a node offers TLS for all of its services or for none."""
    enhanced_prepared_statements: bool = True
    """Whether the query service prepares and executes a statement in one step; servers before 6.5 do not."""
    announces_revival: bool = True
    """Whether buckets announce that a mutation can revive a removed document; servers before 7.1 do not.

    Servers of version 7.0 accept the flag nevertheless, as does every node with REPLACE_BODY_WITH_XATTR.
    """
    username: str = "Administrator"
    password: str = field(default="password", repr=False)
    tokens: tuple[str, ...] = field(default=(), repr=False)
    """JSON Web Tokens that the node accepts from any client; with tokens, the node offers OAUTHBEARER."""
    certificate_users: tuple[str, ...] | None = None
    """Users that a client certificate can authenticate; None accepts a certificate with any name."""
    buckets: tuple[str, ...] = ("default",)
    memcached_buckets: tuple[str, ...] = ()
    """Memcached buckets: they can be selected, and have no cluster config."""
    vbuckets: int = 1024
    replicas: int = 0
    """Number of replicas of each vbucket, 0 to 3; fewer if there are too few nodes."""
    features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES
    """Features that HELLO grants on request."""
    sasl_mechanisms: tuple[str, ...] = SASL_MECHANISMS
    scram_iterations: int = SCRAM_ITERATIONS_MIN
    """SCRAM iterations. Default: the minimum that clients accept. A process computes them once for each password and
    mechanism."""
    error_map: ErrorMapDocument | None = ERROR_MAP
    """Error map; None for a node that does not support GET_ERROR_MAP."""
    cluster_uuid: str | None = None
    """UUID of the cluster in configs; None omits it. Servers before 7.6.4 send neither it nor the name."""
    cluster_name: str | None = None
    config_epoch: int = 1
    config_revision: int = 1
    collections: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: {DEFAULT_NAME: {DEFAULT_NAME: 0}})
    """Collection ids by scope and collection, the same in every initial bucket."""
    wall_seconds_at_zero: float = 1_750_000_000.0
    """Unix time at ``now=0``."""

    @property
    def offered_mechanisms(self) -> tuple[str, ...]:
        """Mechanisms in the reply to SASL_LIST_MECHS; a server lists OAUTHBEARER last."""
        return (*self.sasl_mechanisms, OAUTHBEARER) if self.tokens else self.sasl_mechanisms

    def ports(self, *, tls: bool) -> dict[Service, int]:
        """Return the port of each service of the node; no ports over TLS if the node does not support TLS."""
        if tls and self.tls_port is None:
            return {}
        kv_port = self.tls_port if tls else self.port
        assert kv_port is not None
        ports = {Service.KV: kv_port, **(self.tls_service_ports if tls else self.service_ports)}
        return {service: port for service, port in ports.items() if service in self.services}

    def service_at(self, port: int, *, tls: bool) -> Service | None:
        """Return the service at a port of the node, or None if the port is unused."""
        return next((service for service, at in self.ports(tls=tls).items() if at == port), None)

    def __post_init__(self) -> None:
        _check_text("host", self.host)
        PasswordAuthenticator(self.username, self.password)
        _check_tokens(self.tokens)
        check_type(self.certificate_users, "certificate_users", tuple, NoneType)
        for user in self.certificate_users or ():
            _check_text("certificate_users", user)
        check_integer(self.port, "port", 1, 0xFFFF)
        if self.tls_port is not None:
            check_integer(self.tls_port, "tls_port", 1, 0xFFFF)
        _check_addresses(self.alternate_addresses)
        check_type(self.services, "services", frozenset)
        _check_choice("services", self.services, tuple(Service))
        _check_service_ports("service_ports", self.service_ports)
        _check_service_ports("tls_service_ports", self.tls_service_ports)
        check_integer(self.scram_iterations, "scram_iterations", 1, SCRAM_ITERATIONS_MAX)
        for parameter, label in (("cluster_uuid", self.cluster_uuid), ("cluster_name", self.cluster_name)):
            check_type(label, parameter, str, NoneType)
        check_integer(self.config_epoch, "config_epoch", 1, UINT32_MAX)
        check_integer(self.config_revision, "config_revision", 1, UINT32_MAX)
        for parameter, buckets in (("buckets", self.buckets), ("memcached_buckets", self.memcached_buckets)):
            # Refuse a lone string, which Python treats as a sequence of characters.
            check_type(buckets, parameter, tuple)
            for bucket in buckets:
                check_bucket_name(bucket)
        _check_choice("vbuckets", (self.vbuckets,), VBUCKET_COUNTS)
        check_integer(self.replicas, "replicas", 0, REPLICAS_MAX)
        check_type(self.features, "features", frozenset)
        _check_choice("features", self.features, IMPLEMENTED_FEATURES)
        check_type(self.sasl_mechanisms, "sasl_mechanisms", tuple)
        _check_choice("sasl_mechanisms", self.sasl_mechanisms, SASL_MECHANISMS)
        check_type(self.error_map, "error_map", ErrorMapDocument, NoneType)
        check_type(self.collections, "collections", Mapping)
        for ids in self.collections.values():
            check_type(ids, "collections", Mapping)
        check_number(self.wall_seconds_at_zero, "wall_seconds_at_zero", 0, UINT32_MAX)


def _check_choice(parameter: str, chosen: Iterable[object], offered: Collection[object]) -> None:
    for item in chosen:
        if item not in offered:
            found, *names = (str(getattr(each, "name", each)) for each in (item, *offered))
            raise errors.InvalidArgumentException(
                f"{parameter} has {found}; choose from {', '.join(sorted(names))}", parameter=parameter
            )


def _check_service_ports(parameter: str, ports: object) -> None:
    check_type(ports, parameter, Mapping)
    assert isinstance(ports, Mapping)
    for service, port in ports.items():
        _check_choice(parameter, (service,), HTTP_SERVICES)
        check_integer(port, parameter, 1, 0xFFFF)


def _check_addresses(addresses: object) -> None:
    check_type(addresses, "alternate_addresses", Mapping)
    assert isinstance(addresses, Mapping)
    for network, address in addresses.items():
        _check_text("alternate_addresses", network)
        if not _is_address(address):
            raise errors.InvalidArgumentException(
                f"alternate_addresses={addresses!r} must map names of networks to pairs of a host and a port",
                parameter="alternate_addresses",
            )
        _check_text("alternate_addresses", address[0])
        check_integer(address[1], "alternate_addresses", 1, 0xFFFF)


def _check_tokens(tokens: object) -> None:
    # The values may be secrets, so the errors do not quote them.
    if not isinstance(tokens, tuple):
        raise errors.InvalidArgumentException("tokens must be a tuple of strings", parameter="tokens")
    for token in tokens:
        try:
            JwtAuthenticator(token)
        except errors.InvalidArgumentException as error:
            raise errors.InvalidArgumentException(f"tokens: each {error.message}", parameter="tokens") from error


def _check_text(parameter: str, value: str) -> None:
    if not isinstance(value, str) or not value:
        raise errors.InvalidArgumentException(f"{parameter}={value!r} must be a non-empty string", parameter=parameter)


def placed(options: FakeNodeOptions, nodes: int | Sequence[tuple[str, int]]) -> list[FakeNodeOptions]:
    """Return the options of each node.

    Args:
        options: options of all nodes, except for the addresses that ``nodes`` or the position of a node changes.
        nodes: number of nodes, or host and port of each.

    Raises:
        InvalidArgumentException: a number or an address is invalid, or two nodes have the same address.
    """
    if isinstance(nodes, int):
        steps = range(0, check_integer(nodes, "nodes", 1, NODES_MAX) * PORT_STRIDE, PORT_STRIDE)
        addresses: Sequence[tuple[str, int]] = [(options.host, options.port + step) for step in steps]
    elif isinstance(nodes, Sequence) and 1 <= len(nodes) <= NODES_MAX and all(map(_is_address, nodes)):
        addresses = nodes
    else:
        raise errors.InvalidArgumentException(
            f"nodes={nodes!r} must be a number, or 1 to {NODES_MAX} pairs of a host and a port", parameter="nodes"
        )
    places = []
    for place, (host, port) in enumerate(addresses):
        step = PORT_STRIDE * place
        tls_port = options.tls_port
        if tls_port is not None and isinstance(nodes, int):
            tls_port += step
        further = {network: (other, at + step) for network, (other, at) in options.alternate_addresses.items()}
        places.append(
            replace(
                options,
                host=host,
                port=port,
                tls_port=tls_port,
                alternate_addresses=further,
                service_ports=_shifted(options.service_ports, place),
                tls_service_ports=_shifted(options.tls_service_ports, place),
            )
        )
    _check_distinct(places)
    return places


def _shifted(ports: Mapping[Service, int], place: int) -> dict[Service, int]:
    return {service: port + SERVICE_PORT_STRIDE * place for service, port in ports.items()}


def _is_address(address: object) -> bool:
    return isinstance(address, tuple) and len(address) == 2


def _check_distinct(places: Sequence[FakeNodeOptions]) -> None:
    taken: set[tuple[str, int]] = set()
    for options in places:
        own = [(options.host, port) for tls in (False, True) for port in options.ports(tls=tls).values()]
        for host, port in (*own, *options.alternate_addresses.values()):
            if (host, port) in taken:
                raise errors.InvalidArgumentException(
                    f"port {port} of {host} is given twice; give each service of each node a different address",
                    parameter="nodes",
                )
            taken.add((host, port))
