"""Resolver of SRV records: the nodes that DNS lists for the name of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triclinium.abc import Resolver
from triclinium_core.checks import check_flag
from triclinium_core.contract.couchbase import ServiceLookedUp

if TYPE_CHECKING:
    import dns.asyncresolver


class DnsResolver:
    """Resolver that looks up SRV records, by default at the name servers of the system's configuration.

    Args:
        resolver: replaces the system's configuration. None, the default, reads that configuration.
        search: also look a name up in the search domains, unless it ends with a dot. The local network often
            configures these domains, and can then redirect the lookup. They are tried before or after the name,
            depending on ``ndots`` in the system's configuration. Default: False.

    Raises:
        InvalidArgumentException: ``search`` is not a bool.
    """

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None, *, search: bool = False) -> None:
        self._resolver = resolver
        self._search = check_flag(search, "search")

    async def look_up(self, service: str) -> Sequence[tuple[str, int]]:
        """Return host and port of each SRV record; empty without records.

        Raises:
            OSError: the lookup failed, for example because no name server responded or none is configured.
        """
        # Most clients need no lookup, and this import takes half as long as importing the rest of the client.
        import dns.asyncresolver  # noqa: PLC0415
        from dns.rdtypes.IN.SRV import SRV  # noqa: PLC0415

        try:
            # Read the system's configuration for each lookup, because it may change, for example on a laptop.
            resolver = self._resolver or dns.asyncresolver.Resolver()
            answer = await resolver.resolve(service, "SRV", search=self._search)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except dns.exception.DNSException as error:
            raise OSError(str(error)) from error
        records = [record for record in answer if isinstance(record, SRV)]
        return [(record.target.to_text(omit_final_dot=True), record.port) for record in records]


async def looked_up(service: str, resolver: Resolver) -> ServiceLookedUp:
    """Return the result of a lookup, or its error message."""
    try:
        return ServiceLookedUp(service, tuple(await resolver.look_up(service)))
    except OSError as error:
        return ServiceLookedUp(service, text=str(error))
