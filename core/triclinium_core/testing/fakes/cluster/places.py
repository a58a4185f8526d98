"""Where the nodes of a fake cluster stand: under ports two apart, or where a test wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from triclinium_core.checks import check_integer
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.testing.fakes.options import FakeNodeOptions

NODES_MAX = 128
"""With more, some would have no vbucket where a bucket has 128."""

PORT_STRIDE = 2
"""From the ports of one node to those of the next: a port for TLS fits between two others."""


def placed(options: FakeNodeOptions, nodes: int | Sequence[tuple[str, int]]) -> list[FakeNodeOptions]:
    """Return the options of each node.

    Args:
        options: of the first, or of all but for where they stand.
        nodes: how many there are, or host and port of each.

    Raises:
        InvalidArgumentException: a number or an address that no node can have, or one that two would have.
    """
    places = _numbered(options, nodes) if isinstance(nodes, int) else _addressed(options, nodes)
    _check_distinct(places)
    return places


def _numbered(options: FakeNodeOptions, nodes: int) -> list[FakeNodeOptions]:
    check_integer(nodes, "nodes", 1, NODES_MAX)
    steps = range(0, nodes * PORT_STRIDE, PORT_STRIDE)
    return [
        replace(
            options,
            port=options.port + step,
            tls_port=None if options.tls_port is None else options.tls_port + step,
            alternate_addresses=_further(options, step),
        )
        for step in steps
    ]


def _addressed(options: FakeNodeOptions, nodes: Sequence[tuple[str, int]]) -> list[FakeNodeOptions]:
    if not isinstance(nodes, Sequence) or not 1 <= len(nodes) <= NODES_MAX or not all(map(_is_address, nodes)):
        raise InvalidArgumentException(
            f"nodes={nodes!r} must be a number, or 1 to {NODES_MAX} pairs of a host and a port", parameter="nodes"
        )
    return [
        replace(options, host=host, port=port, alternate_addresses=_further(options, PORT_STRIDE * place))
        for place, (host, port) in enumerate(nodes)
    ]


def _further(options: FakeNodeOptions, step: int) -> Mapping[str, tuple[str, int]]:
    return {network: (host, port + step) for network, (host, port) in options.alternate_addresses.items()}


def _is_address(address: object) -> bool:
    return isinstance(address, tuple) and len(address) == 2


def _check_distinct(places: Sequence[FakeNodeOptions]) -> None:
    taken: set[tuple[str, int]] = set()
    for options in places:
        own = [(options.host, port) for port in (options.port, options.tls_port) if port is not None]
        for host, port in (*own, *options.alternate_addresses.values()):
            if (host, port) in taken:
                raise InvalidArgumentException(
                    f"port {port} of {host} would be taken twice; give each node an address of its own",
                    parameter="nodes",
                )
            taken.add((host, port))
