"""Options of a fake node, and the addresses of the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType

from triclinium_core import errors
from triclinium_core.checks import check_integer, check_number, check_type
from triclinium_core.kv.operation.validation import DEFAULT_NAME, REPLICAS_MAX, UINT32_MAX, check_name
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
    HelloFeature.REPLACE_BODY_WITH_XATTR,
    HelloFeature.REPORT_UNIT_USAGE,
    HelloFeature.NON_BLOCKING_THROTTLING,
}
"""Features that the node can grant, since it does what they say."""

VBUCKET_COUNTS = (128, 1024)
"""How many vbuckets a bucket has: 128 with small-bucket storage."""

NODES_MAX = 128
"""With more, some would have no vbucket where a bucket has 128."""

PORT_STRIDE = 2
"""From the KV port of one node to that of the next: a port for TLS fits between two others."""

SERVICE_PORTS: Mapping[Service, int] = {
    Service.MANAGEMENT: 8091,
    Service.VIEWS: 8092,
    Service.QUERY: 8093,
    Service.SEARCH: 8094,
    Service.ANALYTICS: 8095,
}
"""Where a Couchbase node has its services, beside KV.

Source: Couchbase Server documentation, "Couchbase Server Ports".
"""

TLS_SERVICE_PORTS: Mapping[Service, int] = {service: port + 10_000 for service, port in SERVICE_PORTS.items()}
"""The same over TLS."""

SERVICE_PORT_STRIDE = 10
"""From these ports of one node to those of the next."""

HTTP_SERVICES = frozenset(SERVICE_PORTS)
"""All services but KV: those that speak HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeNodeOptions:
    """A node as it is when it starts. Times are seconds.

    Raises:
        InvalidArgumentException: a value that no node can have; ``parameter`` names it.
    """

    host: str = "127.0.0.1"
    """Under which the node stands in configs; ``$HOST`` leaves it to the client to put in the host it connected to."""
    port: int = 11210
    """Under which the node stands in configs: the one that it is really served on."""
    tls_port: int | None = None
    alternate_addresses: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Host and KV port in other networks, by their names, such as ``external``; with TLS and without.

    The other services have the same ports there.
    """
    services: frozenset[Service] = field(default_factory=lambda: frozenset(Service))
    """Those that the node has; a service that is not among them has no port, and does not stand in configs."""
    service_ports: Mapping[Service, int] = field(default_factory=lambda: SERVICE_PORTS)
    tls_service_ports: Mapping[Service, int] = field(default_factory=lambda: TLS_SERVICE_PORTS)
    """Of meaning only with a ``tls_port``: a node speaks TLS for all of its services, or for none."""
    enhanced_prepared_statements: bool = True
    """Whether the query service prepares and executes a statement in one step; servers before 6.5 do not."""
    username: str = "Administrator"
    password: str = field(default="password", repr=False)
    tokens: tuple[str, ...] = field(default=(), repr=False)
    """JSON Web Tokens that are accepted from anybody; OAUTHBEARER is offered where there are any."""
    certificate_users: tuple[str, ...] | None = None
    """Names of which a client's certificate must have one, where TLS asks for it; None for any name."""
    buckets: tuple[str, ...] = ("default",)
    memcached_buckets: tuple[str, ...] = ()
    """Buckets of the type memcached: they can be selected, and have no cluster config."""
    vbuckets: int = 1024
    replicas: int = 0
    """How many replicas of each vbucket there are to be, 0 to 3; fewer where the nodes are too few."""
    features: frozenset[HelloFeature] = IMPLEMENTED_FEATURES
    """What HELLO grants where a client asks for it."""
    sasl_mechanisms: tuple[str, ...] = SASL_MECHANISMS
    scram_iterations: int = SCRAM_ITERATIONS_MIN
    """SCRAM iterations. Default: the fewest that clients accept. A process computes them once for each password."""
    error_map: ErrorMapDocument | None = ERROR_MAP
    """None for a node that does not know GET_ERROR_MAP."""
    cluster_uuid: str | None = None
    """What configs call the cluster, as its name; None for a server before 7.6.4, which does not tell."""
    cluster_name: str | None = None
    config_epoch: int = 1
    config_revision: int = 1
    collections: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: {DEFAULT_NAME: {DEFAULT_NAME: 0}})
    """Collection ids by scope and collection, the same in every bucket."""
    wall_seconds_at_zero: float = 1_750_000_000.0
    """Unix time at ``now=0``."""

    @property
    def offered_mechanisms(self) -> tuple[str, ...]:
        """What SASL_LIST_MECHS answers; a server lists OAUTHBEARER last."""
        return (*self.sasl_mechanisms, OAUTHBEARER) if self.tokens else self.sasl_mechanisms

    def ports(self, *, tls: bool) -> dict[Service, int]:
        """Return the port of each service that the node has; none over TLS where it does not speak that."""
        if tls and self.tls_port is None:
            return {}
        kv_port = self.tls_port if tls else self.port
        assert kv_port is not None
        ports = {Service.KV: kv_port, **(self.tls_service_ports if tls else self.service_ports)}
        return {service: port for service, port in ports.items() if service in self.services}

    def service_at(self, port: int, *, tls: bool) -> Service | None:
        """Return which service a client reaches at a port of the node; None where there is none."""
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
            # A lone string is a tuple of letters to Python.
            check_type(buckets, parameter, tuple)
            for bucket in buckets:
                check_name(bucket, "bucket")
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
                f"{parameter} has {found}; there is {', '.join(sorted(names))}", parameter=parameter
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
    # What was passed may be secrets, so the errors quote none.
    if not isinstance(tokens, tuple):
        raise errors.InvalidArgumentException("tokens must be a tuple of strings", parameter="tokens")
    for token in tokens:
        try:
            JwtAuthenticator(token)
        except errors.InvalidArgumentException as error:
            raise errors.InvalidArgumentException(f"tokens: each {error.message}", parameter="tokens") from error


def _check_text(parameter: str, value: str) -> None:
    if not isinstance(value, str) or not value:
        raise errors.InvalidArgumentException(
            f"{parameter}={value!r} must be a string that is not empty", parameter=parameter
        )


def placed(options: FakeNodeOptions, nodes: int | Sequence[tuple[str, int]]) -> list[FakeNodeOptions]:
    """Return the options of each node.

    Args:
        options: of the first, or of all but for where they stand.
        nodes: how many there are, or host and port of each.

    Raises:
        InvalidArgumentException: a number or an address that no node can have, or one that two would have.
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
                    f"port {port} of {host} would be taken twice; give each node an address of its own",
                    parameter="nodes",
                )
            taken.add((host, port))
