"""How ``triclinium serve`` speaks TLS: from files to a server's context."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Files in PEM format, each None where it was not given."""

    cert: str | None = None
    key: str | None = None
    client_ca: str | None = None
    port: int = 0

    def context(self) -> ssl.SSLContext | None:
        """Return the context of the nodes; None where they speak no TLS.

        Raises:
            click.UsageError: a file cannot be read, or makes no sense without the certificate.
        """
        if self.cert is None:
            for option, given in (("--tls-key", self.key), ("--client-ca", self.client_ca), ("--tls-port", self.port)):
                if given:
                    raise click.UsageError(f"{option} has no effect without --tls-cert")
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without any password OpenSSL would ask for it on the terminal.
            context.load_cert_chain(self.cert, self.key, password="")
        except (OSError, ValueError) as error:
            files = self.cert if self.key is None else f"{self.cert} and {self.key}"
            raise click.UsageError(f"a certificate and its key cannot be read from {files}: {error}") from error
        if self.client_ca is not None:
            self._demand_certificates(context)
        return context

    def _demand_certificates(self, context: ssl.SSLContext) -> None:
        try:
            context.load_verify_locations(self.client_ca)
        except (OSError, ValueError) as error:
            raise click.UsageError(f"no authority can be read from {self.client_ca}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
