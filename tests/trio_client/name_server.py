"""Local name server for tests of DNS lookups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import dns.asyncresolver
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset
import trio

from triclinium._cluster_driver.resolver import DnsResolver

DATAGRAM_SIZE_MAX = 4096
LOOKUP_SECONDS = 120.0
"""Seconds after which a lookup without a response fails. No test waits for that."""


@dataclass
class NameServer:
    """Server that answers queries for SRV records over UDP.

    Args:
        records: host and port of each record, by name without the final dot; any other name does not exist.
    """

    records: Mapping[str, Sequence[tuple[str, int]]]
    port: int = 0
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    """Response code for every query. With NOERROR, the response has the records, or NXDOMAIN for an unknown name."""
    is_mute: bool = False
    asked: list[str] = field(default_factory=list)
    """Names that clients have requested, in order."""

    def resolver(self, *domains: str, search: bool | None = None) -> DnsResolver:
        """Return a resolver that uses only this server.

        Args:
            domains: the search domains of its configuration.
            search: whether it may use them; None uses the default of ``DnsResolver``.
        """
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self.port
        resolver.lifetime = LOOKUP_SECONDS
        resolver.search = [dns.name.from_text(domain) for domain in domains]
        return DnsResolver(resolver) if search is None else DnsResolver(resolver, search=search)

    async def serve(self, socket: trio.socket.SocketType) -> None:
        """Receive queries until cancelled, and respond to them unless the server is mute."""
        while True:
            data, peer = await socket.recvfrom(DATAGRAM_SIZE_MAX)
            answer = self.answer(dns.message.from_wire(data))
            if not self.is_mute:
                await socket.sendto(answer.to_wire(), peer)

    def answer(self, query: dns.message.Message) -> dns.message.Message:
        """Return the response to a query."""
        (question,) = query.question
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        if self.rcode != dns.rcode.NOERROR or name not in self.records:
            response.set_rcode(self.rcode or dns.rcode.NXDOMAIN)
            return response
        texts = [f"0 0 {port} {host}." for host, port in self.records[name]]
        if texts:
            response.answer.append(dns.rrset.from_text(question.name, 60, "IN", "SRV", *texts))
        return response


@asynccontextmanager
async def open_name_server(records: Mapping[str, Sequence[tuple[str, int]]]) -> AsyncIterator[NameServer]:
    """Yield a name server, and close it at the end of the block."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
        await socket.bind(("127.0.0.1", 0))
        server = NameServer(records, socket.getsockname()[1])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve, socket)
            yield server
            nursery.cancel_scope.cancel()
