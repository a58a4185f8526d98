"""Addresses at which the client seeks a node: the seeds, from the connection string or DNS, then the known nodes.

A single host without a port may be the DNS name of a complete cluster. The client looks up the name before it opens the
first connection, and again when it cannot find the cluster. Connections that seek any node wait for the result, but
only for ``LOOKUP_SECONDS``. If DNS lists only refused targets, or none so far, the client connects to the
host itself.

Source: SDK-RFC 0011 "SRV Records", "Additional Points".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from triclinium_core.contract.couchbase import Action, LookUpService, ServiceLookedUp, TimerKind
from triclinium_core.contract.neutral import ReportConnection, ReportLevel, StreamId, TimerId, Timers
from triclinium_core.kv.address import PORT_MAX, Address
from triclinium_core.kv.topology.cluster_config import HOST_SIZE_MAX, NODES_MAX
from triclinium_core.kv.topology.connection_string import ConnectionString
from triclinium_core.kv.topology.srv_targets import AcceptedDomains
from triclinium_core.options import ClientOptions
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.pool.routes import Routes
from triclinium_core.shown import one_line

LOOKUP_SECONDS = 0.5
"""Seconds for which connections wait for a lookup. A result that arrives later applies to later connections."""
LOOKUP_INTERVAL = 2.5
"""Minimum number of seconds between two lookups."""
SEARCH_INTERVAL = 2.5
"""Minimum number of seconds between two searches for a bucket. Without it, the client would search all the time if the
seeds list only unreachable nodes."""
REFUSED_NAMED_MAX = 4
"""Maximum number of refused targets that a warning or an error names. A user can recognise the domain from them."""
REFUSED_REMEMBERED_MAX = 4096
"""Number of recorded refused targets from which the client neither records nor reports further ones: four responses of
``NODES_MAX`` targets. It reports each recorded target once."""
NO_STREAM = StreamId(0)
"""Stream number in reports that concern no stream."""


class Seeds:
    """Addresses for connections to any node of the cluster."""

    def __init__(
        self,
        options: ClientOptions,
        connection_string: ConnectionString,
        routes: Routes,
        timers: Timers[TimerKind],
        emit: Callable[[Action], None],
    ) -> None:
        self.service: str | None = connection_string.service if options.enable_dns_srv else None
        """Service name to look up in DNS; None without lookups."""
        self._written = connection_string.addresses
        self._listed: Sequence[Address] = ()
        self._accepted = AcceptedDomains(self._written[0].host, options.dns_srv_domains)
        self._reported: set[Address] = set()
        """Refused targets that the client has reported in a warning."""
        self._refusal = ""
        """Text that names the refused targets and the rule. Empty if the newest DNS response has an accepted target."""
        self._routes = routes
        self._sought_at: dict[str | None, float] = {}
        """Time of the last search for each bucket without a reachable node."""
        self._timers = timers
        self._emit = emit
        self._looked_up_at = -math.inf
        self._timer: TimerId | None = None
        self._waiting: dict[Connection, None] = {}
        self._known: Sequence[Address] = ()
        self._all: tuple[Address, ...] = ()
        """Seeds and known nodes, without duplicates."""
        self._places: Mapping[Address, int] = {}
        """Index of each address in ``_all``."""
        self._collect()

    def addresses(self, bucket: str | None) -> tuple[Address, ...]:
        """Return the addresses to try: the seeds, then the known nodes.

        If the connection without a bucket is in use, its address comes first for the connections of buckets.
        """
        first = self._routes.get((None, None)) if bucket is not None else None
        if first is None or not first.is_in_use:
            return self._all
        place = self._places.get(first.address, len(self._all))
        return (first.address, *self._all[:place], *self._all[place + 1 :])

    def _collect(self) -> None:
        self._all = tuple(dict.fromkeys((*(self._listed or self._written), *self._known)))
        self._places = {address: place for place, address in enumerate(self._all)}

    def begin_search(self, bucket: str | None, now: float) -> bool:
        """Return whether to open one more connection now to search for a bucket without a reachable node.

        Return False soon after a search, during one, or if the bucket's connections already try all addresses and
        there is no name to look up in DNS.
        """
        if now - self._sought_at.get(bucket, -math.inf) < SEARCH_INTERVAL:
            return False
        self._sought_at[bucket] = now
        self.look_up(now, again=True)
        tried = {connection.address for connection in self._routes.all_of(bucket)}
        is_of_use = self.service is not None or not tried.issuperset(self.addresses(bucket))
        return is_of_use and self._routes.get((bucket, None)) is None

    def forget(self, bucket: str) -> None:
        """Drop the time of the last search for a bucket."""
        self._sought_at.pop(bucket, None)

    def know(self, nodes: Iterable[Address]) -> None:
        """Record the nodes of the newest global config. The client tries them if it reaches no seed."""
        self._known = tuple(nodes)
        self._collect()

    def look_up(self, now: float, *, again: bool) -> None:
        """Look up the seeds in DNS if the connection string has a service name, unless the last lookup is too recent.

        Args:
            again: whether the cluster cannot be found at the known seeds. Otherwise only the first call looks up.
        """
        if (
            self.service is None
            or (not again and self._looked_up_at > -math.inf)
            or now - self._looked_up_at < LOOKUP_INTERVAL
        ):
            return
        self._looked_up_at = now
        self._emit(LookUpService(self.service))
        self._timers.cancel(self._timer)
        self._timer = self._timers.schedule(now + LOOKUP_SECONDS, TimerKind.SERVICE_LOOKUP, self)

    def wait(self, connection: Connection) -> bool:
        """Return whether a connection must wait for the lookup. If so, ``answered`` or ``give_up`` returns it later."""
        if self._timer is not None:
            self._waiting[connection] = None
        return self._timer is not None

    def stop_waiting(self, connection: Connection) -> bool:
        """Remove a connection that waits for the lookup. Return whether it was waiting."""
        return connection in self._waiting and self._waiting.pop(connection) is None

    def names(self, address: Address) -> bool:
        """Return whether an address is a seed: listed in DNS, or, without such a list, in the connection string."""
        return address in (self._listed or self._written)

    def answered(self, event: ServiceLookedUp) -> Sequence[Connection]:
        """Process the result of a lookup. Return the connections that waited for it. Ignore another service's result."""
        if self.service is None or event.service.removesuffix(".") != self.service.removesuffix("."):
            return ()
        # SDK-RFC 0011: the targets replace the name itself as seeds. Ignore their priorities and weights.
        targets = [Address(host.removesuffix("."), port) for host, port in event.targets[:NODES_MAX]]
        possible = {target: self._accepted.accepts(target.host) for target in targets if _is_possible(target)}
        listed = tuple(target for target, is_accepted in possible.items() if is_accepted)
        refused = [target for target, is_accepted in possible.items() if not is_accepted]
        if possible:
            # Decision D66: if the client refuses every target, it connects to the name itself.
            self._listed = listed
            self._refusal = "" if listed else self._refusal_of(refused)
            self._collect()
        self._warn(event.service, refused)
        nothing = "no accepted target" if refused else f"nothing{f' ({one_line(event.text)})' if event.text else ''}"
        found = ", ".join(map(str, listed[:8])) or nothing
        self._emit(ReportConnection(NO_STREAM, event.service, f"looked up: {found}"))
        return self.give_up()

    def remark(self, address: Address) -> str:
        """Return the text for errors of connections to ``address``; empty unless it replaces refused targets."""
        return f"; DNS lists {self._refusal}" if self._refusal and address in self._written else ""

    def _warn(self, service: str, refused: Sequence[Address]) -> None:
        """Report the refused targets that were not reported before."""
        fresh = [target for target in refused if target not in self._reported]
        if fresh and len(self._reported) < REFUSED_REMEMBERED_MAX:
            self._reported.update(fresh)
            text = f"dropped targets of SRV records: {self._refusal_of(fresh)}"
            self._emit(ReportConnection(NO_STREAM, service, text, ReportLevel.WARNING))

    def _refusal_of(self, refused: Sequence[Address]) -> str:
        more = f" and {len(refused) - REFUSED_NAMED_MAX} more" if len(refused) > REFUSED_NAMED_MAX else ""
        return (
            f"{', '.join(map(str, refused[:REFUSED_NAMED_MAX]))}{more}, not at or below {self._accepted}; "
            "if they belong to the cluster, add their domain to dns_srv_domains"
        )

    def give_up(self) -> Sequence[Connection]:
        """Stop waiting for the lookup, and return the connections that waited."""
        self._timers.cancel(self._timer)
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        return tuple(waiting)


def _is_possible(target: Address) -> bool:
    return 1 <= len(target.host) <= HOST_SIZE_MAX and target.host.isprintable() and 1 <= target.port <= PORT_MAX
