"""Mutual TLS: nodes identify clients by certificates, without a password."""

from __future__ import annotations

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
import trustme

from triclinium import CertificateAuthenticator, open_cluster
from triclinium.errors import TlsException
from triclinium.testing import open_tcp_cluster


async def main(folder: Path) -> None:
    """Connect with a certificate that the nodes trust, and with one that they do not trust."""
    authority = trustme.CA()
    of_the_nodes = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(of_the_nodes)
    authority.configure_trust(of_the_nodes)
    of_the_nodes.verify_mode = ssl.CERT_REQUIRED
    for name, issuer in (("ada", authority), ("eve", trustme.CA())):
        issuer.issue_cert(f"{name}@example.org").private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")

    async with open_tcp_cluster(nodes=3, ssl_context=of_the_nodes) as fake:
        assert fake.tls_connection_string is not None, "there is an ssl_context"
        for name in ("ada", "eve"):
            trusting = ssl.create_default_context()  # in production: create_default_context(cafile="authority.pem")
            authority.configure_trust(trusting)
            shown = CertificateAuthenticator(str(folder / f"{name}.pem"))
            async with open_cluster(fake.tls_connection_string, shown, ssl_context=trusting) as cluster:
                try:
                    await cluster.bucket("default").default_collection().upsert("ada", {"born": 1815})
                    print(name, "has written a document")
                except TlsException as error:
                    print(name, "was refused:", error.context.refused_reason)


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        trio.run(main, Path(name))
