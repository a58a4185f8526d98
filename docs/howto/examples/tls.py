"""TLS to a node with a certificate of a private authority."""

from __future__ import annotations

import ssl

import trio
import trustme

from triclinium import open_cluster
from triclinium.errors import TlsException
from triclinium.testing import FakeNode, open_tcp_cluster


async def main() -> None:
    """Connect with the authority's certificate, and without it."""
    authority = trustme.CA()
    of_the_node = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(of_the_node)

    async with open_tcp_cluster(FakeNode(), ssl_context=of_the_node) as fake:
        assert fake.tls_connection_string is not None, "there is an ssl_context"

        trusting = ssl.create_default_context()  # in production: create_default_context(cafile="authority.pem")
        authority.configure_trust(trusting)
        async with open_cluster(fake.tls_connection_string, fake.authenticator, ssl_context=trusting) as cluster:
            await cluster.bucket("default").default_collection().upsert("ada", {"born": 1815})
            print("written over TLS")

        async with open_cluster(fake.tls_connection_string, fake.authenticator) as cluster:
            try:
                await cluster.bucket("default").default_collection().get("ada")
            except TlsException as error:
                print("refused:", error.context.refused_reason)


if __name__ == "__main__":
    trio.run(main)
