"""Replacement of a token on open connections."""

from __future__ import annotations

import ssl

import trio
import trustme

from triclinium import JwtAuthenticator, open_cluster
from triclinium.errors import AuthenticationFailureException
from triclinium.testing import FakeNodeOptions, FakeNodes, open_tcp_cluster

FIRST, SECOND, THIRD = (f"eyJhbGciOiJFUzI1NiJ9.e30.{name}" for name in ("first", "second", "third"))


async def main() -> None:
    """Replace a token with a second one, then with one that the nodes refuse, then with the second one again."""
    authority = trustme.CA()
    of_the_nodes = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(of_the_nodes)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    nodes = FakeNodes(FakeNodeOptions(tokens=(FIRST,)), nodes=3)
    async with open_tcp_cluster(nodes, ssl_context=of_the_nodes) as fake:
        assert fake.tls_connection_string is not None, "there is an ssl_context"
        async with open_cluster(fake.tls_connection_string, JwtAuthenticator(FIRST), ssl_context=trusting) as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", 1)

            nodes.set_credentials(tokens=[SECOND])
            cluster.set_authenticator(JwtAuthenticator(SECOND))
            await people.upsert("ada", 2)
            print("written with the second token, on the connections that were there")

            cluster.set_authenticator(JwtAuthenticator(THIRD))
            try:
                await people.upsert("ada", 3)
            except AuthenticationFailureException as error:
                print("refused:", error.context.refused_reason)

            cluster.set_authenticator(JwtAuthenticator(SECOND))
            print("and read again:", (await people.get("ada")).content)


if __name__ == "__main__":
    trio.run(main)
